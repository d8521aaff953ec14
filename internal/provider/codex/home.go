package codex

import (
	"os"
	"path/filepath"

	thole "github.com/tholehq/thole"
)

// homeMark holds the path under which codex last used its home.
const homeMark = ".thole-home"

// prepareHome makes Data fit for codex: its index is not stale.
func prepareHome(data string) error {
	// Left by a codex that ran without our switches: they hold its environment.
	if err := os.RemoveAll(filepath.Join(data, "shell_snapshots")); err != nil {
		return thole.Errorf(thole.CodeInternal, "remove codex's shell snapshots: %w", err)
	}
	mark := filepath.Join(data, homeMark)
	if last, err := os.ReadFile(mark); err == nil && string(last) == data {
		return nil
	}
	// Codex's index holds absolute paths: in a home that moved it finds no thread.
	// It is an index only and is made again from the threads' own files.
	for _, pattern := range []string{"state_*.sqlite*", "thread_history_*.sqlite*"} {
		files, _ := filepath.Glob(filepath.Join(data, pattern))
		for _, f := range files {
			if err := os.Remove(f); err != nil {
				return thole.Errorf(thole.CodeInternal, "drop codex's stale index: %w", err)
			}
		}
	}
	if err := os.WriteFile(mark, []byte(data), 0o600); err != nil {
		return thole.Errorf(thole.CodeUnavailable, "mark codex's home: %w", err)
	}
	return nil
}
