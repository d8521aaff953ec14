package provider

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tholehq/thole/internal/strictjson"
)

// Shown lists what a box must show to run a CLI, given by the path to which its
// links lead: the program, its own package, what that package depends on and the
// interpreter of a script. Never what lies next to them: with a user's home or
// ~/.local as prefix of a package manager that is everything the user has.
func Shown(binary string) []string {
	s := &shown{}
	s.add(binary)
	pkg := packageOf(binary)
	if pkg != "" {
		s.add(pkg)
	}
	// Codex brings its helpers (rg, bwrap) next to its bin directory.
	for _, name := range []string{"codex-path", "codex-resources"} {
		if dir := filepath.Join(filepath.Dir(filepath.Dir(binary)), name); isDir(dir) {
			s.add(dir)
		}
	}
	if line := scriptLine(binary); line != "" {
		s.depend(pkg)
		s.add(interpreter(binary, line))
	}
	return s.paths
}

type shown struct{ paths []string }

// add takes a path, unless it lies in one that is shown already.
func (s *shown) add(path string) bool {
	if path == "" || slices.ContainsFunc(s.paths, func(p string) bool { return p == path || strings.HasPrefix(path, p+"/") }) {
		return false
	}
	s.paths = append(s.paths, path)
	return true
}

// packageOf is the directory of the package that holds a file: the one below the
// last node_modules. "" for a file that no package manager put there.
func packageOf(path string) string {
	i := strings.LastIndex(path, "/node_modules/")
	if i < 0 {
		return ""
	}
	above, rest := path[:i+len("/node_modules")], strings.Split(path[i+len("/node_modules/"):], "/")
	n := 1
	if strings.HasPrefix(rest[0], "@") {
		n = 2
	}
	if len(rest) < n || !packageName(strings.Join(rest[:n], "/")) {
		return ""
	}
	return filepath.Join(append([]string{above}, rest[:n]...)...)
}

func packageName(name string) bool {
	scope, rest, scoped := strings.Cut(name, "/")
	if scoped && !strings.HasPrefix(scope, "@") {
		return false
	}
	for _, part := range []string{scope, rest} {
		if strings.HasPrefix(part, ".") || strings.ContainsAny(part, "/\\\x00") {
			return false
		}
	}
	return scope != "" && (rest != "" || !scoped)
}

// depend adds the packages that one depends on, where its interpreter looks for
// them, and where links there lead: package managers put them inside, next to and
// above it.
func (s *shown) depend(pkg string) {
	if pkg == "" {
		return
	}
	var about struct {
		Dependencies         map[string]string `json:"dependencies"`
		OptionalDependencies map[string]string `json:"optionalDependencies"`
	}
	f, err := os.Open(filepath.Join(pkg, "package.json"))
	if err != nil {
		return // a package without it depends on nothing we could find
	}
	defer f.Close()
	if strictjson.Read(io.LimitReader(f, 1<<20), &about) != nil {
		return
	}
	for _, names := range []map[string]string{about.Dependencies, about.OptionalDependencies} {
		for name := range names {
			at := lookUp(pkg, name)
			real, err := filepath.EvalSymlinks(at)
			if at == "" || err != nil || packageOf(real) != real {
				continue // one for another platform, or a link into a user's work
			}
			fresh := s.add(at)
			if s.add(real) || fresh {
				s.depend(real)
			}
		}
	}
}

// lookUp finds a package as the interpreter does: in the node_modules of each
// directory above.
func lookUp(from, name string) string {
	if !packageName(name) {
		return ""
	}
	for dir := from; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if filepath.Base(dir) == "node_modules" {
			continue
		}
		if at := filepath.Join(dir, "node_modules", name); isDir(at) {
			return at
		}
	}
	return ""
}

// scriptLine is what follows #! in a script, "" for anything else.
func scriptLine(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, 256)).ReadString('\n')
	line, ok := strings.CutPrefix(line, "#!")
	if !ok {
		return ""
	}
	return strings.TrimSpace(line)
}

// interpreter is the program that runs a script: the one that was installed with
// it, or the user's.
func interpreter(script, line string) string {
	words := strings.Fields(line)
	if len(words) == 0 {
		return ""
	}
	if filepath.Base(words[0]) != "env" {
		return words[0]
	}
	for _, name := range words[1:] {
		if strings.HasPrefix(name, "-") || strings.Contains(name, "=") {
			continue
		}
		if prefix, _, ok := strings.Cut(script, "/lib/node_modules/"); ok {
			if own := filepath.Join(prefix, "bin", name); runnable(own) {
				return own
			}
		}
		path, err := exec.LookPath(name)
		if err != nil {
			return "" // its start says so
		}
		if path, err = filepath.Abs(path); err != nil {
			return ""
		}
		return path
	}
	return ""
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}
