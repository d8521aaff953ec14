package arch

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"strings"
	"testing"
)

const module = "github.com/tholehq/thole"

// pkg is one package of the module. Names are relative to the module: "" is the
// root package.
type pkg struct {
	name    string
	dir     string
	files   []string
	imports []string // direct, without tests
	deps    []string // all, without tests
	command bool
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Name,Dir,GoFiles,CgoFiles,TestGoFiles,XTestGoFiles,IgnoredGoFiles,Imports,Deps", module+"/...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath, Name, Dir                                        string
			GoFiles, CgoFiles, TestGoFiles, XTestGoFiles, IgnoredGoFiles []string
			Imports, Deps                                                []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		files := append(append(append(append(p.GoFiles, p.CgoFiles...), p.TestGoFiles...), p.XTestGoFiles...), p.IgnoredGoFiles...)
		all = append(all, pkg{
			name: relative(p.ImportPath), dir: p.Dir, files: files, command: p.Name == "main",
			imports: p.Imports, deps: p.Deps,
		})
	}
}

func relative(importPath string) string {
	return strings.TrimPrefix(strings.TrimPrefix(importPath, module), "/")
}

// ours turns import paths into names of our packages and drops the rest.
func ours(paths []string) []string {
	var names []string
	for _, p := range paths {
		if p == module || strings.HasPrefix(p, module+"/") {
			names = append(names, relative(p))
		}
	}
	return names
}

// matches reports whether a package is named by a pattern: a name, or a name with
// "/..." for everything below it as well.
func matches(name, pattern string) bool {
	base, below := strings.CutSuffix(pattern, "/...")
	return name == base || below && strings.HasPrefix(name, base+"/")
}

func matchesAny(name string, patterns []string) bool {
	for _, p := range patterns {
		if matches(name, p) {
			return true
		}
	}
	return false
}

// forTests reports whether a package exists for tests: it lies in test or testkit,
// or is a harness, which Go's own custom names with the ending "test".
func forTests(name string) bool {
	return matches(name, "test/...") || matches(name, "internal/testkit/...") || strings.HasSuffix(path.Base(name), "test")
}

// standard reports whether an import path belongs to the standard library.
func standard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}
