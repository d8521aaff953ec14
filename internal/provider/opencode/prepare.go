package opencode

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"github.com/tholehq/thole/internal/strictjson"
)

// prepareConfig fills the configuration directory that the driver chose itself
// with what the server would install into it at every first start: the types of
// its plugin interface, tens of megabytes from a package registry that a turn has
// no use for. A directory that has packages already is left alone.
func prepareConfig(dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, "node_modules"), 0o700); err != nil {
		return err
	}
	wants := map[string]any{"dependencies": map[string]string{"@opencode-ai/plugin": pinned}}
	for name, v := range map[string]any{
		"package.json":      wants,
		"package-lock.json": map[string]any{"lockfileVersion": 3, "packages": map[string]any{"": wants}},
	} {
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			continue
		}
		raw, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// dropDeadLocks removes the locks of servers that are gone. A server ends without
// cleaning up, and the next one on the same state waits a minute for each lock it
// needs. One whose owner may live, or does not say, is kept.
func dropDeadLocks(state string) {
	locks, _ := filepath.Glob(filepath.Join(state, name, "locks", "*.lock"))
	host, err := os.Hostname()
	if err != nil {
		return
	}
	for _, lock := range locks {
		var owner struct {
			PID      int    `json:"pid"`
			Hostname string `json:"hostname"`
		}
		raw, err := os.ReadFile(filepath.Join(lock, "meta.json"))
		if err != nil || strictjson.Unmarshal(raw, &owner) != nil || owner.PID <= 0 {
			continue
		}
		// A thread runs in one place at a time: an owner elsewhere has moved here.
		if owner.Hostname != host || errors.Is(syscall.Kill(owner.PID, 0), syscall.ESRCH) {
			os.RemoveAll(lock)
		}
	}
}
