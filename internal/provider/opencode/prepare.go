package opencode

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/base"
	"github.com/tholehq/thole/internal/strictjson"
)

// installed are the files of a configuration directory that has what the server would
// install into it at every first start: the types of its plugin interface, tens of
// megabytes from a package registry that a turn has no use for.
func installed() map[string]string {
	const wants = `{"dependencies":{"@opencode-ai/plugin":"` + pinned + `"}}`
	return map[string]string{
		".gitignore": "node_modules\n", "package.json": wants, "node_modules/.keep": "",
		"package-lock.json": `{"lockfileVersion":3,"packages":{"":` + wants + `}}`,
	}
}

// prepareConfig fills the configuration directory that the driver chose itself. What is
// there already is left alone. The instructions of the project are text and count
// also where its settings do not.
func prepareConfig(cfg provider.SessionConfig, dir string) error {
	files, err := base.OpenFiles(cfg, dir)
	if err != nil {
		return err
	}
	defer files.Close()
	if err := files.MkdirAll("node_modules", 0o700); err != nil {
		return err
	}
	lays := installed()
	own, err := json.Marshal(map[string]any{"instructions": []string{filepath.Join(cfg.Dir, instructions(cfg.Dir))}})
	if err != nil {
		return err
	}
	lays["opencode.json"] = string(own)
	for file, text := range lays {
		if _, err := files.Lstat(file); !errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err := files.Write(file, []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// instructions is the file of a project that opencode would take: it reads CLAUDE.md where
// there is no other.
func instructions(dir string) string {
	for _, name := range []string{"AGENTS.md", "CLAUDE.md"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return name
		}
	}
	return "AGENTS.md"
}

// dropDeadLocks removes the locks of servers that are gone. A server ends without
// cleaning up, and the next one on the same state waits a minute for each lock it
// needs. One whose owner may live, or does not say, is kept.
func dropDeadLocks(cfg provider.SessionConfig, state string) {
	host, err := os.Hostname()
	if err != nil {
		return
	}
	files, err := base.OpenFiles(cfg, state)
	if err != nil {
		return // the server waits for them
	}
	defer files.Close()
	locks, _ := fs.Glob(files.FS(), name+"/locks/*.lock")
	for _, lock := range locks {
		var owner struct {
			PID      int    `json:"pid"`
			Hostname string `json:"hostname"`
		}
		raw, err := files.Read(lock + "/meta.json")
		if err != nil || strictjson.Unmarshal(raw, &owner) != nil || owner.PID <= 0 {
			continue
		}
		// A thread runs in one place at a time: an owner elsewhere has moved here.
		if owner.Hostname != host || errors.Is(syscall.Kill(owner.PID, 0), syscall.ESRCH) {
			_ = files.RemoveAll(lock)
		}
	}
}
