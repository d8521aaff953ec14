package local

import (
	"os"
	"path/filepath"

	"github.com/tholehq/thole/internal/provider/table"
)

// agentLink is a name of an agent's configuration that leads into a directory or above it, as
// in repositories of dotfiles: an agent that works there would write what agents obey, and
// where their keys are sent. "" where there is no such name.
func agentLink(home, dir string) string {
	var names []string
	for _, row := range table.CLIs {
		if row.Login.Dir != "" {
			names = append(append(names, row.Login.Dir), row.Configs...)
		}
	}
	leads := func(path string) bool {
		real, err := filepath.EvalSymlinks(path)
		return err == nil && (within(real, dir) || within(dir, real))
	}
	for _, name := range names {
		at := filepath.Join(home, name)
		if leads(at) {
			return at
		}
		entries, _ := os.ReadDir(at)
		for _, e := range entries {
			if inside := filepath.Join(at, e.Name()); e.Type()&os.ModeSymlink != 0 && leads(inside) {
				return inside
			}
		}
	}
	return ""
}
