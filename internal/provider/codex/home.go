package codex

import (
	"os"
	"path/filepath"

	thole "github.com/tholehq/thole"
)

// homeMark holds the path under which codex last used its home.
const homeMark = ".thole-home"

// prepareHome makes Data fit for codex: login outside, index not stale.
func (s *session) prepareHome() error {
	if err := s.linkAuth(); err != nil {
		return err
	}
	// Left by a codex that ran without our switches: they hold its environment.
	if err := os.RemoveAll(filepath.Join(s.cfg.Data, "shell_snapshots")); err != nil {
		return thole.Errorf(thole.CodeInternal, "remove codex's shell snapshots: %w", err)
	}
	mark := filepath.Join(s.cfg.Data, homeMark)
	if last, err := os.ReadFile(mark); err == nil && string(last) == s.cfg.Data {
		return nil
	}
	// Codex's index holds absolute paths: in a home that moved it finds no thread.
	// It is an index only and is made again from the threads' own files.
	for _, pattern := range []string{"state_*.sqlite*", "thread_history_*.sqlite*"} {
		files, _ := filepath.Glob(filepath.Join(s.cfg.Data, pattern))
		for _, f := range files {
			if err := os.Remove(f); err != nil {
				return thole.Errorf(thole.CodeInternal, "drop codex's stale index: %w", err)
			}
		}
	}
	if err := os.WriteFile(mark, []byte(s.cfg.Data), 0o600); err != nil {
		return thole.Errorf(thole.CodeUnavailable, "mark codex's home: %w", err)
	}
	return nil
}

// linkAuth makes codex keep its login outside of Data: it reads and refreshes
// auth.json through the link. A file in its place, from a CLI that replaced the
// link, is moved out.
func (s *session) linkAuth() error {
	if s.cfg.Auth == "" {
		return nil
	}
	link, target := filepath.Join(s.cfg.Data, "auth.json"), filepath.Join(s.cfg.Auth, "auth.json")
	if to, err := os.Readlink(link); err == nil && to == target {
		return nil
	}
	err := os.MkdirAll(s.cfg.Auth, 0o700)
	if info, serr := os.Lstat(link); err == nil && serr == nil {
		if info.Mode().IsRegular() {
			var data []byte
			if data, err = os.ReadFile(link); err == nil {
				err = os.WriteFile(target, data, 0o600)
			}
		}
		if err == nil {
			err = os.Remove(link)
		}
	}
	if err == nil {
		err = os.Symlink(target, link)
	}
	if err != nil {
		return thole.Errorf(thole.CodeInternal, "keep codex's login outside of its data: %w", err)
	}
	return nil
}
