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

// Steps finds the durable steps of the program: the second argument of every
// Update call in the non-test files under root that belong to the store or
// import it. The step must be a string literal there, unless it is handed through
// as a variable called step. It maps a step's name to a place that uses it.
func Steps(root string) (map[string]token.Position, error) {
	steps := map[string]token.Position{}
	named := regexp.MustCompile(`^[a-z]+(\.[a-z_]+)+$`)
	files := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != root || d.Name() == "node_modules" || d.Name() == "testkit") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if !usesStore(file) {
			return nil
		}
		var bad error
		ast.Inspect(file, func(n ast.Node) bool {
			arg, ok := stepArgument(n)
			if !ok {
				return true
			}
			at := files.Position(arg.Pos())
			switch a := arg.(type) {
			case *ast.BasicLit:
				step, err := strconv.Unquote(a.Value)
				if err != nil || !named.MatchString(step) {
					bad = fmt.Errorf("%s: %s is no name of a durable step (want noun.verb)", at, a.Value)
				}
				steps[step] = at
			case *ast.Ident:
				if a.Name != "step" {
					bad = fmt.Errorf("%s: write the durable step as a string literal", at)
				}
			default:
				bad = fmt.Errorf("%s: write the durable step as a string literal", at)
			}
			return bad == nil
		})
		return bad
	})
	return steps, err
}

func usesStore(file *ast.File) bool {
	if file.Name.Name == "store" {
		return true
	}
	for _, imp := range file.Imports {
		if strings.HasSuffix(imp.Path.Value, `/internal/store"`) {
			return true
		}
	}
	return false
}

// stepArgument returns the step of a call x.Update(ctx, step, fn).
func stepArgument(n ast.Node) (ast.Expr, bool) {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) != 3 {
		return nil, false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !strings.EqualFold(sel.Sel.Name, "update") {
		return nil, false
	}
	return call.Args[1], true
}
