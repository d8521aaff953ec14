// Command contract writes the JSON Schema and the TypeScript types of the thread
// contract from its Go types. go generate runs it; make verify fails when its
// output is stale.
package main

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: contract DIRECTORY")
	}
	m := collect()
	for name, data := range map[string][]byte{"app.schema.json": m.schema(), "app.ts": m.typescript()} {
		path := filepath.Join(os.Args[1], name)
		if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
			continue
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			log.Fatal(fmt.Errorf("write %s: %w", name, err))
		}
	}
}
