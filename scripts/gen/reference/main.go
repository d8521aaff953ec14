// Command reference writes the documents that are tables of the program itself: commands,
// configuration, errors, exit codes, the manifest and the HTTP interface.
package main

import (
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) < 3 {
		log.Fatal("usage: reference DOCS PAGE…")
	}
	for file, page := range map[string]func(docs string) string{
		"operate/exit-codes.md":      exitCodes,
		"reference/commands.md":      commands,
		"reference/configuration.md": configuration,
		"reference/errors.md":        errorCodes,
		"reference/http.md":          httpReference,
		"reference/manifest.md":      manifest,
	} {
		if !slices.Contains(os.Args[2:], strings.TrimSuffix(filepath.Base(file), ".md")) {
			continue
		}
		path := filepath.Join(os.Args[1], file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			log.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(page(os.Args[1])), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

// written is the second line of each page: where to change it.
func written(source string) string {
	return "<!-- written by scripts/gen/reference; edit " + source + " instead -->\n\n"
}

// cell is a text inside of a table.
func cell(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "|", `\|`), "\n", " ")
}
