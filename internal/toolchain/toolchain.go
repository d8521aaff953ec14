// Package toolchain finds what a developer's shell has and the box of an agent lacks:
// the programs on PATH outside of the system's directories with what they need to run,
// the variables that programs read, registries, certificates and the git identity. It
// says of each thing that is left out why. It shows nothing itself and writes nothing;
// whether a path may be shown at all is for its caller to judge.
package toolchain

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Config is the shell to look at.
type Config struct {
	// Path are the directories of PATH in order. Those in Typed were named by a person in
	// a setting of thole's.
	Path  []string
	Typed []string
	// Home is the user's home directory, Environ the variables as in os.Environ.
	Home    string
	Environ []string
	// Names are further variables that a person lets pass.
	Names []string
	// Bare leaves out everything but Path and Names: registries, caches, certificates, the
	// git identity and the variables of the allow list.
	Bare bool
	// System reports a path that every box shows, Judge why another may not be shown.
	System func(path string) bool
	Judge  func(path string) error
}

// Plan is what the box gets.
type Plan struct {
	Entries []Entry `json:"path"`
	// Path is PATH in the box, Show the files and directories that it shows read-only at
	// their own paths, parents first.
	Path []string `json:"-"`
	Show []string `json:"shown"`
	// Env are variables of programs in the box. Files are to be laid read-only, and the
	// variables of FileVars name them.
	Env      map[string]string `json:"-"`
	Files    map[string]string `json:"-"`
	FileVars map[string]string `json:"-"`
	// Seeds are laid in the agent's home, where it may change them.
	Seeds []Seed `json:"-"`
	// Certificates are files with authorities that programs trust besides the system's.
	Certificates []string `json:"certificates"`
	// Variables says of each variable that counts how it does.
	Variables []Passed `json:"variables"`
	// Author is what commits are made as, "" where git knows nobody.
	Author string `json:"author,omitempty"`
}

// Entry is one directory of PATH and what became of it.
type Entry struct {
	Dir string `json:"dir"`
	// Shown are the paths that it needs; none where the system's directories show it.
	Shown []string `json:"shown,omitempty"`
	// LeftOut is why it is not on PATH in the box.
	LeftOut string `json:"left_out,omitempty"`
	Typed   bool   `json:"typed,omitempty"`
}

// Seed is a file or, with Link, a symbolic link at a path below the agent's home.
type Seed struct {
	Path string `json:"path"`
	Text string `json:"text,omitempty"`
	Link string `json:"link,omitempty"`
}

// Passed is a variable that counts in the box. Secret is one whose name says that it
// holds a secret, and that a person typed.
type Passed struct {
	Name    string `json:"name"`
	Use     Use    `json:"use"`
	Secret  bool   `json:"secret,omitempty"`
	LeftOut string `json:"left_out,omitempty"`
}

// Look looks at a shell.
func Look(ctx context.Context, cfg Config) Plan {
	l := &look{Config: cfg, vars: variables(cfg.Environ), judged: map[string]error{}}
	l.plan.Env, l.plan.Files, l.plan.FileVars = map[string]string{}, map[string]string{}, map[string]string{}
	for _, dir := range cfg.Path {
		if !slices.ContainsFunc(l.plan.Entries, func(e Entry) bool { return e.Dir == dir }) {
			l.entry(dir)
		}
	}
	if !cfg.Bare {
		l.modules()
		l.registries()
		l.git(ctx)
	}
	l.tidy()
	l.environ()
	return l.plan
}

type look struct {
	Config
	vars   map[string]string
	plan   Plan
	judged map[string]error
}

func variables(environ []string) map[string]string {
	vars := map[string]string{}
	for _, v := range environ {
		if name, value, ok := strings.Cut(v, "="); ok && value != "" {
			vars[name] = value
		}
	}
	return vars
}

// entry decides about one directory of PATH. One that is a link, or lies below one, is
// shown where the link leads and, if that may be, under its own name too.
func (l *look) entry(dir string) {
	e := Entry{Dir: dir, Typed: slices.Contains(l.Typed, dir)}
	defer func() { l.plan.Entries = append(l.plan.Entries, e) }()
	if e.LeftOut = unfit(dir); e.LeftOut != "" {
		return
	}
	if l.System(dir) {
		l.plan.Path = append(l.plan.Path, dir)
		return
	}
	real, err := filepath.EvalSymlinks(dir)
	if err == nil {
		_, err = os.ReadDir(real)
	}
	if err != nil {
		e.LeftOut = reason(err)
		return
	}
	var why error
	for _, at := range slices.Compact([]string{dir, real}) {
		need := l.needs(at)
		if err := l.mayShow(need); err != nil {
			why = errors.Join(err, why)
			continue
		}
		if len(e.Shown) == 0 {
			l.plan.Path = append(l.plan.Path, at)
		}
		e.Shown = append(e.Shown, need...)
	}
	if len(e.Shown) == 0 {
		e.LeftOut = reason(why)
		return
	}
	e.Shown = append(e.Shown, l.links(real, e.Shown)...)
	e.Shown = append(e.Shown, l.seed(real)...)
	l.plan.Show = append(l.plan.Show, e.Shown...)
}

// unfit is why an entry of PATH can never be of use in a box.
func unfit(dir string) string {
	switch {
	case !filepath.IsAbs(dir):
		return "it is no absolute path"
	case strings.HasPrefix(dir, "/snap/"):
		return "programs of snap start through snapd only"
	case len(dir) > len("/mnt/c/") && strings.HasPrefix(dir, "/mnt/") && dir[6] == '/':
		return "it is a directory of Windows"
	}
	return ""
}

func reason(err error) string {
	var path *os.PathError
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "it is not there"
	case errors.As(err, &path):
		return path.Err.Error()
	case err == nil:
		return ""
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return first
}

func (l *look) mayShow(paths []string) error {
	for _, p := range paths {
		err, known := l.judged[p]
		if !known {
			if err = l.Judge(p); err != nil && !strings.Contains(err.Error(), p) {
				err = errors.New(p + " " + err.Error())
			}
			l.judged[p] = err
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// maxLinks bounds how many links of one directory are followed.
const maxLinks = 512

// links are what the programs of a directory need that are links out of it: those of
// pipx, uv, npm and their like lie elsewhere. What may not be shown stays a link that
// leads nowhere.
func (l *look) links(dir string, shown []string) (need []string) {
	list, _ := os.ReadDir(dir)
	for i, f := range list {
		if f.Type()&os.ModeSymlink == 0 || i >= maxLinks {
			continue
		}
		to, err := filepath.EvalSymlinks(filepath.Join(dir, f.Name()))
		if err != nil || l.System(to) || covered(to, slices.Concat(shown, need, l.plan.Show)) {
			continue
		}
		if st, err := os.Stat(to); err != nil || !st.Mode().IsRegular() || st.Mode()&0o111 == 0 {
			continue
		}
		want := l.root(filepath.Dir(to))
		if len(want) == 0 {
			want = []string{to}
		}
		if l.mayShow(want) == nil {
			need = append(need, want...)
		}
	}
	return need
}

// tidy sorts what is shown, parents first, without what another path shows.
func (l *look) tidy() {
	slices.Sort(l.plan.Show)
	var out []string
	for _, p := range slices.Compact(l.plan.Show) {
		if !covered(p, out) && !l.System(p) {
			out = append(out, p)
		}
	}
	l.plan.Show = out
	slices.SortFunc(l.plan.Seeds, func(a, b Seed) int { return strings.Compare(a.Path, b.Path) })
	l.plan.Seeds = slices.CompactFunc(l.plan.Seeds, func(a, b Seed) bool { return a.Path == b.Path })
}

// covered reports whether a path is one of dirs or lies in one.
func covered(path string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") })
}
