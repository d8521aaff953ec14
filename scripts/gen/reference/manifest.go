package main

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"path/filepath"
	"reflect"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/workspace"
)

func manifest(docs string) string {
	var b strings.Builder
	b.WriteString("# Runtime manifest\n\n" + written("internal/workspace/manifest.go"))
	b.WriteString("A JSON file that `workspace.manifest` names: what threads' files are made of ([workspace.md](../workspace.md) says how it is used). Unknown members are refused;\n" +
		"`thole manifest validate FILE` names everything that is wrong and prints the plan.\n")
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(docs, "..", "internal", "workspace", "manifest.go"), nil, parser.ParseComments)
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range []reflect.Type{reflect.TypeFor[workspace.Manifest](), reflect.TypeFor[workspace.SeedFile](), reflect.TypeFor[workspace.MountPoint](), reflect.TypeFor[workspace.CleanupRule]()} {
		doc, fields := comments(file, t.Name())
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| member | type | |\n|---|---|---|\n", t.Name(), doc)
		for i := range t.NumField() {
			f := t.Field(i)
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Tag.Get("json"), cell(typeName(f.Type)), cell(fields[f.Name]))
		}
	}
	b.WriteString("\n## Words\n\n")
	for _, kind := range []string{"ConflictPolicy", "CleanupAction"} {
		fmt.Fprintf(&b, "- %s: %s\n", kind, strings.Join(values(file, kind), ", "))
	}
	m, err := workspace.BuiltIn{}.Manifest(context.Background(), thole.DefaultOwner.App, "")
	if err != nil {
		log.Fatal(err)
	}
	text, err := json.MarshalIndent(m, "    ", "  ")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprintf(&b, "\n## Example\n\nThe built-in one:\n\n    %s\n", text)
	return b.String()
}

func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice:
		return "list of " + typeName(t.Elem())
	case reflect.Bool:
		return "true or false"
	case reflect.Struct:
		return "[" + t.Name() + "](#" + strings.ToLower(t.Name()) + ")"
	}
	return t.Name()
}

// comments are those of a struct and of its fields.
func comments(file *ast.File, name string) (doc string, fields map[string]string) {
	fields = map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		decl, ok := n.(*ast.GenDecl)
		if !ok {
			return true
		}
		for _, spec := range decl.Specs {
			t, ok := spec.(*ast.TypeSpec)
			if !ok || t.Name.Name != name {
				continue
			}
			doc = flat(decl.Doc.Text())
			for _, f := range t.Type.(*ast.StructType).Fields.List {
				fields[f.Names[0].Name] = flat(f.Doc.Text() + f.Comment.Text())
			}
		}
		return true
	})
	return doc, fields
}

func values(file *ast.File, kind string) (out []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			if t, ok := spec.Type.(*ast.Ident); ok && t.Name == kind {
				one := "`" + strings.Trim(spec.Values[0].(*ast.BasicLit).Value, `"`) + "`"
				if c := flat(spec.Comment.Text()); c != "" {
					one += " (" + c + ")"
				}
				out = append(out, one)
			}
		}
		return true
	})
	return out
}

func flat(s string) string { return strings.Join(strings.Fields(s), " ") }
