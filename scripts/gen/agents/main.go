// Command agents writes the tables of docs/agents.md from those of internal/provider/ownconfig.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/tholehq/thole/internal/provider/ownconfig"
)

func main() {
	root := "."
	for range 8 { // go generate runs it in the package's directory
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		root = filepath.Join(root, "..")
	}
	path := filepath.Join(root, "docs", "agents.md")
	text, err := os.ReadFile(path)
	if err == nil {
		text, err = ownconfig.Fill(text)
	}
	if err == nil {
		err = os.WriteFile(path, text, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
