package config_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/config"
)

const module = "github.com/tholehq/thole/"

// TestEveryKeyIsRead walks the keys and requires code that reads each: checking a value
// is no use of it. A key that nobody reads is a promise to the user that nobody keeps.
func TestEveryKeyIsRead(t *testing.T) {
	exports := map[string]string{}
	sources := map[string][]string{}
	readers := []string{"internal/config", "internal/cli", "internal/doctor", "internal/system"}
	list := exec.Command("go", "list", "-deps", "-export", "-json=ImportPath,Export,Dir,GoFiles", "./internal/cli", "./internal/doctor", "./internal/system")
	list.Dir = filepath.Join("..", "..")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Export, Dir string
			GoFiles                 []string
		}
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		for _, f := range p.GoFiles {
			sources[p.ImportPath] = append(sources[p.ImportPath], filepath.Join(p.Dir, f))
		}
	}
	read := map[string]bool{}
	for _, pkg := range readers {
		fset := token.NewFileSet()
		var files []*ast.File
		for _, name := range sources[module+pkg] {
			f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}
		check := types.Config{Importer: importer.ForCompiler(fset, "gc", func(p string) (io.ReadCloser, error) { return os.Open(exports[p]) })}
		if _, err := check.Check(module+pkg, fset, files, info); err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && pkg == "internal/config" && checks(fn.Name.Name) {
					continue
				}
				ast.Inspect(d, func(n ast.Node) bool {
					if e, ok := n.(*ast.SelectorExpr); ok && info.Selections[e] != nil {
						read[field(info.Selections[e])] = true
					}
					return true
				})
			}
		}
	}
	cfg := config.Default()
	for _, e := range cfg.Entries() {
		if e.Key == "executor.kind" {
			continue // there is one kind, and Validate refuses every other
		}
		if name := cfg.FieldOf(e.Key); !read[name] {
			t.Errorf("nothing reads %s (%s)", e.Key, name)
		}
	}
}

// checks names what looks at values only to refuse them.
func checks(name string) bool { return name == "Validate" || strings.HasPrefix(name, "check") }

// field is a selected field with the type it is declared in: Daemon.IdleExit.
func field(s *types.Selection) string {
	owner := s.Recv()
	if p, ok := owner.(*types.Pointer); ok {
		owner = p.Elem()
	}
	return path.Base(owner.String()) + "." + s.Obj().Name()
}
