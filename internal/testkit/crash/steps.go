package crash

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Steps finds the durable steps of the program in the non-test files under root:
// the second argument of every Update(ctx, step, fn), followed back through
// functions that hand on a parameter, also after a constant prefix. It maps a
// step's name to a place that uses it. It reads syntax only, so a step that
// reaches Update in another way is an error in a file that uses the store.
func Steps(root string) (map[string]token.Position, error) {
	s := &scan{files: token.NewFileSet(), steps: map[string]token.Position{}, carriers: map[carrier]bool{}}
	s.named = regexp.MustCompile(`^[a-z]+(\.[a-z_]+)+$`)
	if err := filepath.WalkDir(root, s.load); err != nil {
		return nil, err
	}
	s.carriers[carrier{name: "Update", arg: 1, args: 3}] = true
	for before := 0; before != len(s.carriers); { // until no new carrier is found
		before = len(s.carriers)
		for _, f := range s.funcs {
			if err := s.visit(f); err != nil {
				return nil, err
			}
		}
	}
	return s.steps, nil
}

type scan struct {
	files    *token.FileSet
	funcs    []function
	carriers map[carrier]bool
	steps    map[string]token.Position
	named    *regexp.Regexp
}

// carrier is a function whose argument becomes a step, after prefix. Unexported
// ones are known in their own directory only.
type carrier struct {
	dir, name, prefix string
	arg, args         int
}

type function struct {
	dir      string
	strict   bool // the file uses the store: every step must be found
	decl     *ast.FuncDecl
	position map[string]int // of its string parameters
	count    int
}

func (s *scan) load(path string, d fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	if d.IsDir() {
		if n := d.Name(); n == "node_modules" || n == "testkit" || strings.HasPrefix(n, ".") && n != "." {
			return filepath.SkipDir
		}
		return nil
	}
	if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
		return nil
	}
	file, err := parser.ParseFile(s.files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, d := range file.Decls {
		decl, ok := d.(*ast.FuncDecl)
		if !ok || decl.Body == nil {
			continue
		}
		f := function{dir: filepath.Dir(path), strict: usesStore(file), decl: decl, position: map[string]int{}}
		for _, field := range decl.Type.Params.List {
			t, isIdent := field.Type.(*ast.Ident)
			for _, n := range field.Names {
				if isIdent && t.Name == "string" {
					f.position[n.Name] = f.count
				}
				f.count++
			}
		}
		s.funcs = append(s.funcs, f)
	}
	return nil
}

func usesStore(file *ast.File) bool {
	for _, imp := range file.Imports {
		if strings.HasSuffix(imp.Path.Value, `/internal/store"`) {
			return true
		}
	}
	return file.Name.Name == "store"
}

func (s *scan) visit(f function) (err error) {
	ast.Inspect(f.decl.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || err != nil {
			return err == nil
		}
		for c := range s.carriers {
			if c.name == calleeOf(call) && (c.dir == "" || c.dir == f.dir) && len(call.Args) >= c.args {
				if err = s.argument(f, c, call.Args[c.arg]); err != nil {
					return false
				}
			}
		}
		return true
	})
	return err
}

// argument notes what a carrier is called with: a step, or a parameter that makes
// the calling function a carrier too.
func (s *scan) argument(f function, c carrier, arg ast.Expr) error {
	at := s.files.Position(arg.Pos())
	prefix := c.prefix
	if sum, ok := arg.(*ast.BinaryExpr); ok && sum.Op == token.ADD {
		if lit, ok := sum.X.(*ast.BasicLit); ok {
			text, _ := strconv.Unquote(lit.Value)
			prefix, arg = prefix+text, sum.Y
		}
	}
	switch a := arg.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(a.Value)
		if err != nil || !s.named.MatchString(prefix+text) {
			return fmt.Errorf("%s: %s does not name a durable step (want noun.verb)", at, a.Value)
		}
		s.steps[prefix+text] = at
		return nil
	case *ast.Ident:
		if i, ok := f.position[a.Name]; ok {
			own := carrier{dir: f.dir, name: f.decl.Name.Name, prefix: prefix, arg: i, args: f.count}
			if ast.IsExported(own.name) {
				own.dir = ""
			}
			s.carriers[own] = true
			return nil
		}
	}
	if f.strict && c.name == "Update" {
		return fmt.Errorf("%s: write the durable step as a string literal or hand on a parameter", at)
	}
	return nil
}

func calleeOf(call *ast.CallExpr) string {
	switch fn := call.Fun.(type) {
	case *ast.Ident:
		return fn.Name
	case *ast.SelectorExpr:
		return fn.Sel.Name
	}
	return ""
}
