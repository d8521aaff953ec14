package codex

import (
	"io/fs"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/base"
)

// homeMark holds the path under which codex last used its home.
const homeMark = ".thole-home"

// prepareHome makes Data fit for codex: its index is not stale.
func prepareHome(cfg provider.SessionConfig) error {
	data, err := base.OpenFiles(cfg, cfg.Data)
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "open codex's home: %w", err)
	}
	defer data.Close()
	// Left by a codex that ran without our switches: they hold its environment.
	if err := data.RemoveAll("shell_snapshots"); err != nil {
		return thole.Errorf(thole.CodeInternal, "remove codex's shell snapshots: %w", err)
	}
	if last, err := data.Read(homeMark); err == nil && string(last) == cfg.Data {
		return nil
	}
	// Codex's index holds absolute paths: in a home that moved it finds no thread.
	// It is an index only and is made again from the threads' own files.
	for _, pattern := range []string{"state_*.sqlite*", "thread_history_*.sqlite*"} {
		files, _ := fs.Glob(data.FS(), pattern)
		for _, f := range files {
			if err := data.RemoveAll(f); err != nil {
				return thole.Errorf(thole.CodeInternal, "drop codex's stale index: %w", err)
			}
		}
	}
	if err := data.Write(homeMark, []byte(cfg.Data)); err != nil {
		return thole.Errorf(thole.CodeUnavailable, "mark codex's home: %w", err)
	}
	return nil
}
