// Package heartbeat looks at what the Codex Desktop app leaves on the disk: the files of the
// heartbeats that wake threads, and what the installation is made of. It writes nothing and
// starts nothing; a heartbeat is armed by the app's own bridge. No real app was seen: the
// format of the files is that of public reports.
package heartbeat

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/BurntSushi/toml"
	thole "github.com/tholehq/thole"
)

// surface is the revision of our helper commands: a validation counts for one of them.
const surface = 1

const maxFile = 1 << 20

// File is what the file of a heartbeat says.
type File struct {
	Status thole.AutomationStatus
	Kind   string
	Target thole.ThreadID
}

// Look reads $CODEX_HOME/automations/<id>/automation.toml. What cannot be read is unclear,
// which is never paused; a heartbeat is gone only if the directory of all of them is there.
func Look(codexHome, id string) (File, error) {
	unclear := File{Status: thole.AutomationUnclear}
	if id == "" || id == "." || id == ".." || strings.ContainsAny(id, "/\\\x00") {
		return unclear, thole.Errorf(thole.CodeInvalid, "automation id %q is not a name", id)
	}
	root := filepath.Join(codexHome, "automations")
	all, err := os.ReadDir(root)
	if err != nil {
		return unclear, fmt.Errorf("list automations: %w", err)
	}
	there := false
	for _, e := range all {
		there = there || e.Name() == id
	}
	if !there {
		return File{Status: thole.AutomationGone}, nil
	}
	f, err := os.OpenFile(filepath.Join(root, id, "automation.toml"), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return unclear, fmt.Errorf("read automation: %w", err)
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return unclear, errors.Join(err, fmt.Errorf("read automation: %s is not a regular file", f.Name()))
	}
	body, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return unclear, fmt.Errorf("read automation: %w", err)
	}
	var said struct {
		ID     string `toml:"id"`
		Kind   string `toml:"kind"`
		Status string `toml:"status"`
		Target string `toml:"target_thread_id"`
	}
	if err := toml.Unmarshal(body, &said); err != nil {
		return unclear, fmt.Errorf("read automation %s: %w", id, err)
	}
	out := File{Status: thole.AutomationUnclear, Kind: said.Kind, Target: thole.ThreadID(said.Target)}
	if said.ID != "" && said.ID != id {
		return out, fmt.Errorf("automation %s says that it is %q", id, said.ID)
	}
	switch said.Status {
	case "ACTIVE":
		out.Status = thole.AutomationActive
	case "PAUSED":
		out.Status = thole.AutomationPaused
	}
	return out, nil
}

// Fingerprint is of everything that a validation depends on: the app's program, our helper
// commands, and who may read what. "" if that cannot be seen.
func Fingerprint(home, codex, release string) string {
	h := sha256.New()
	put := func(parts ...any) { fmt.Fprintln(h, parts...) }
	put("surface", surface, "thole", release, "system", runtime.GOOS, runtime.GOARCH, "uid", os.Getuid())
	program, err := exec.LookPath(codex)
	if err == nil {
		program, err = filepath.EvalSymlinks(program)
	}
	if err != nil {
		return ""
	}
	fi, err := os.Stat(program)
	if err != nil {
		return ""
	}
	put("program", program, fi.Size(), fi.ModTime().UnixNano())
	for _, dir := range []string{home, filepath.Join(home, "inbox"), filepath.Join(home, "run")} {
		mode := fs.FileMode(0)
		if fi, err := os.Lstat(dir); err == nil {
			mode = fi.Mode()
		} else if !errors.Is(err, fs.ErrNotExist) {
			return ""
		}
		put("dir", filepath.Base(dir), mode)
	}
	return hex.EncodeToString(h.Sum(nil))
}
