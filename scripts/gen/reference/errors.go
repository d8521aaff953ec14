package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"path/filepath"
	"strconv"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/cli"
	"github.com/tholehq/thole/internal/jsonhttp"
)

func exitCodes(string) string {
	var b strings.Builder
	b.WriteString("# Exit codes\n\n" + written("internal/cli/exit.go"))
	b.WriteString("| code | meaning | what to do |\n|---:|---|---|\n")
	for _, row := range cli.ExitCodes() {
		fmt.Fprintf(&b, "| %d | %s | %s |\n", row.Number, cell(row.Meaning), cell(row.Help))
	}
	b.WriteString("\n`thole job run`, `thole job wait`, `thole codex run` and `thole thread terminal` pass on the exit status of the program that ran.\n" +
		"Errors are one line on standard error, `thole: …`, and where it helps a second one, `try: …`. With `--json` they are one JSON object, whose\n" +
		"[code](../reference/errors.md) says the class.\n")
	return b.String()
}

func errorCodes(docs string) string {
	var b strings.Builder
	b.WriteString("# Error codes\n\n" + written("error.go"))
	b.WriteString("Every error has a class, a sentence and, where a human must act, a hint. With `--json` the command line prints on standard error\n\n" +
		"    {\"error\": {\"code\": \"not_found\", \"message\": \"no token x\", \"hint\": \"thole token list shows them\"}}\n\n" +
		"and the HTTP interface answers with the [same code](../protocol/http.md) in its problem document.\n\n")
	b.WriteString("| code | meaning | exit code | HTTP status |\n|---|---|---:|---:|\n")
	exit := map[thole.Code]int{}
	for _, row := range cli.ExitCodes() {
		for _, c := range row.Codes {
			exit[c] = row.Number
		}
	}
	for _, c := range codes(filepath.Join(docs, "..", "error.go")) {
		fmt.Fprintf(&b, "| `%s` | %s | %d | %d |\n", c[0], cell(c[1]), exit[thole.Code(c[0])], jsonhttp.Status(thole.Code(c[0])))
	}
	b.WriteString("\nTwo more are of the command line alone: `failed`, an agent's turn, a job or a check failed (9), and `interrupted`, Ctrl-C (130).\n")
	return b.String()
}

// codes are the values of thole.Code with what their comments say.
func codes(file string) (out [][2]string) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		log.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if t, ok := spec.Type.(*ast.Ident); !ok || t.Name != "Code" {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			log.Fatal(err)
		}
		meaning := spec.Comment.Text()
		if meaning == "" {
			_, meaning, _ = strings.Cut(spec.Doc.Text(), ": ")
		}
		if meaning == "" {
			log.Fatalf("%s: %s has no comment", file, value)
		}
		out = append(out, [2]string{value, strings.TrimSpace(meaning)})
		return true
	})
	return out
}
