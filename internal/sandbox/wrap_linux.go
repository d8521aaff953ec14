//go:build linux

package sandbox

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/internal/sandbox/seccomp"
)

// scanLimit bounds the search for files that glob patterns deny.
const scanLimit = 50_000

// Wrapper runs programs in a sandbox.
type Wrapper struct {
	helper []string

	once  sync.Once
	bwrap string
	flags []string // what this bubblewrap and kernel can do beyond the least
	err   error
}

// NewWrapper makes a Wrapper. helper executes a program under another argv[0];
// it may be empty.
func NewWrapper(helper []string) *Wrapper { return &Wrapper{helper: helper} }

// Program is what runs in a sandbox. Argv[0] is replaced by Arg0 unless that is empty.
type Program struct {
	Path, Dir string
	Argv      []string
	Arg0      string
	Env       []string
}

// Wrapped is a command line that enters the sandbox. It is started with an empty
// environment: the program's is among the files, because bubblewrap, which is not confined
// yet, would obey it. Files become descriptors 3 and up; the caller closes them after the
// start. Stays is what must be there for as long as the sandbox is.
type Wrapped struct {
	Path  string
	Argv  []string
	Files []*os.File
	Stays *Stays
}

// Wrap returns the command that runs a program under p.
func (w *Wrapper) Wrap(p *Policy, program Program) (_ *Wrapped, err error) {
	w.once.Do(w.probe)
	if w.err != nil {
		return nil, w.err
	}
	box, stays := NewBox("--die-with-parent").Add(w.flags...), &Stays{}
	defer func() {
		if err != nil {
			for _, f := range box.Files() {
				f.Close()
			}
			stays.End()
		}
	}()
	profile := seccomp.Networked
	if !p.network {
		box.Add("--unshare-net")
		profile = seccomp.Restricted
	}
	if err := p.mounts(box, stays); err != nil {
		return nil, err
	}
	if err := box.Filter(profile); err != nil {
		return nil, refuse("%v", err)
	}
	if err := box.environ(program.Env); err != nil {
		return nil, err
	}
	if err := stays.watch(box); err != nil {
		return nil, refuse("%v", err)
	}
	var run []string
	if program.Arg0 != "" {
		if len(w.helper) == 0 {
			return nil, refuse("arg0 needs a helper")
		}
		run = append(append(run, w.helper...), program.Arg0)
	}
	run = append(append(run, program.Path), program.Argv[1:]...)
	return &Wrapped{Path: w.bwrap, Argv: append([]string{"bwrap"}, box.Command(program.Dir, run...)...), Files: box.Files(), Stays: stays}, nil
}

// maxVariables is how many variables bubblewrap takes in addition to the mounts: it
// counts its arguments.
const maxVariables = 2500

// environ gives the program its environment. It goes by a file, since command lines are
// everybody's to read.
func (b *Box) environ(env []string) error {
	if len(env) > maxVariables {
		return refuse("%d variables: a sandboxed program gets at most %d", len(env), maxVariables)
	}
	text := []byte("--clearenv\x00")
	for _, kv := range env {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || name == "" || strings.IndexByte(kv, 0) >= 0 {
			return refuse("invalid variable %q", name)
		}
		text = append(text, "--setenv\x00"+name+"\x00"+value+"\x00"...)
	}
	fd, err := unix.MemfdCreate("environment", unix.MFD_CLOEXEC)
	if err != nil {
		return refuse("make a file for the environment: %v", err)
	}
	f := os.NewFile(uintptr(fd), "environment")
	if _, err := f.WriteAt(text, 0); err != nil {
		f.Close()
		return refuse("write the environment: %v", err)
	}
	b.Add("--args", b.Pass(f))
	return nil
}

// extras are tried in this order: older versions of bubblewrap cannot refuse user
// namespaces inside, which the filter refuses anyway.
var extras = [][]string{{"--unshare-cgroup-try", "--disable-userns"}, {"--unshare-cgroup-try"}}

// probe looks for bubblewrap and sees whether namespaces are permitted here.
func (w *Wrapper) probe() {
	path, err := exec.LookPath("bwrap")
	if err != nil {
		w.err = refuse("bubblewrap (bwrap) is not installed")
		return
	}
	w.bwrap = path
	for _, w.flags = range extras {
		args := NewBox("--die-with-parent", "--unshare-net", "--ro-bind", "/", "/").Add(w.flags...).Kernel().First().Command("/", "/bin/true")
		out, err := exec.Command(path, args...).CombinedOutput()
		if err == nil {
			w.err = nil
			return
		}
		w.err = refuse("bubblewrap does not work here: %s", strings.TrimSpace(string(out)))
	}
}

// mounts lays the file system out: general rules first, specific ones over them.
func (p *Policy) mounts(box *Box, stays *Stays) error {
	if !p.restricted {
		box.Add("--bind", "/", "/").Kernel().First()
		for _, path := range p.own {
			if err := hide(path, box); err != nil {
				return err
			}
		}
		return nil
	}
	switch p.Access("/") {
	case Write:
		box.Add("--bind", "/", "/")
	case Read:
		box.Add("--ro-bind", "/", "/")
	default:
		box.Add("--tmpfs", "/")
	}
	box.Kernel().First()
	var seal []string // what is denied but for places in it, which are laid first
	for i, r := range p.rules {
		if r.path == "/" || i+1 < len(p.rules) && p.rules[i+1].path == r.path {
			continue // the root is laid; of equals the last one decides
		}
		if machine(r.path) && r.access != None {
			continue // the program has its own
		}
		writable := p.above(r.path, i) == Write
		if r.link {
			if writable {
				return refuse("%s is a link in a writable directory", r.path)
			}
			continue // what it leads to has a rule of its own
		}
		if writable && r.access != Write {
			at, err := stays.hold(r.path)
			if err != nil {
				return err
			}
			if at != "" {
				box.Add("--ro-bind", at, at)
				continue
			}
		}
		if _, err := os.Lstat(r.path); err != nil {
			continue
		}
		switch r.access {
		case Write:
			box.Add("--bind", r.path, r.path)
		case Read:
			box.Add("--ro-bind", r.path, r.path)
		case None:
			if p.shownIn(r.path, i) {
				box.Add("--perms", "0111", "--tmpfs", r.path)
				seal = append(seal, r.path)
				continue
			}
			if err := hide(r.path, box); err != nil {
				return err
			}
		}
	}
	for _, path := range seal {
		box.Add("--remount-ro", path)
	}
	for _, l := range p.links { // /bin is a link on many systems
		if p.Access("/") == None && p.Access(filepath.Dir(l.path)) == None {
			box.Add("--symlink", l.real, l.path)
		}
	}
	return p.hideGlobs(box)
}

// above is the access that rules before the i-th give to the path's parent.
func (p *Policy) above(path string, i int) Access {
	access := None
	for _, r := range p.rules[:i] {
		if r.path != path && within(path, r.path) {
			access = r.access
		}
	}
	return access
}

// shownIn reports whether rules after the i-th show something that is in a directory.
func (p *Policy) shownIn(dir string, i int) bool {
	return slices.ContainsFunc(p.rules[i+1:], func(r rule) bool {
		return r.access != None && !r.link && r.exists && r.path != dir && within(r.path, dir)
	})
}

// hide covers a path with something unreadable.
func hide(path string, box *Box) error {
	fi, err := os.Stat(path)
	if err != nil {
		return refuse("cannot hide %s: %v", path, err)
	}
	if fi.IsDir() {
		box.Add("--perms", "0000", "--tmpfs", path, "--remount-ro", path)
		return nil
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return refuse("cannot hide %s: %v", path, err)
	}
	box.Add("--perms", "0000", "--ro-bind-data", box.Pass(null), path)
	return nil
}

// hideGlobs covers what matches a pattern now, below the fixed part of the
// pattern. A tree too large to search is refused.
func (p *Policy) hideGlobs(box *Box) error {
	hidden := []string{}
	cover := func(path string) error {
		if decide(p.rules, path) == None || slices.ContainsFunc(hidden, func(dir string) bool { return within(path, dir) }) {
			return nil // nothing of it is shown
		}
		hidden = append(hidden, path)
		return hide(path, box)
	}
	for _, g := range p.globs {
		base := g.base()
		seen := 0
		err := filepath.WalkDir(base, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil //nolint:nilerr // unreadable for us is unreadable for the program
			}
			if seen++; seen > scanLimit {
				return refuse("too many files below %s to apply `%s`", base, g.pattern)
			}
			ok, _ := doublestar.Match(g.pattern, path)
			switch {
			case ok && d.Type()&fs.ModeSymlink != 0: // a file is not read under another name either
				real, err := filepath.EvalSymlinks(path)
				if fi, serr := os.Stat(real); err == nil && serr == nil && fi.Mode().IsRegular() {
					return cover(real)
				}
			case ok:
				if err := cover(path); err != nil {
					return err
				}
				if d.IsDir() {
					return fs.SkipDir
				}
			case d.IsDir() && strings.Count(strings.TrimPrefix(path, base), "/") >= p.scanDepth:
				return fs.SkipDir
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
