// Package inbox publishes and reads the files by which the bridge of a Desktop app learns
// what awaits its threads: a manifest and the files of one revision. The manifest is written
// last, so that a reader finds the files of one revision or an error. Reading opens
// no store and no socket; nothing in the files is content of a result.
package inbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/atomicfile"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/strictjson"
)

const (
	manifestName = "current-snapshot.json"
	stateName    = "desktop-installation-state.json"
	snapshots    = "snapshots"
	readyName    = "ready-threads.json"
	armingName   = "arm-pending-bindings.json"
	pauseName    = "pause-due-bindings.json"

	// grace is how long a revision stays that a reader may still hold the manifest of.
	grace = 10 * time.Minute
	// maxFile bounds what is read: the inbox lists at most some hundred threads.
	maxFile = 4 << 20
)

// Disk is where an inbox is written.
type Disk interface {
	Create(path string, perm os.FileMode) (File, error)
	Rename(from, to string) error
	Remove(path string) error
	SyncDir(dir string) error
}

// File is a file being written.
type File interface {
	io.WriteCloser
	Sync() error
}

type osDisk struct{}

func (osDisk) Create(path string, perm os.FileMode) (File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, perm)
}
func (osDisk) Rename(from, to string) error { return os.Rename(from, to) }
func (osDisk) Remove(path string) error     { return os.Remove(path) }
func (osDisk) SyncDir(dir string) error     { return atomicfile.SyncDir(dir) }

// Inbox is the directory of a home. One process publishes at a time.
type Inbox struct {
	Dir  string
	Disk Disk // nil: the real one
}

// In returns the inbox of a home.
func In(home string) Inbox { return Inbox{Dir: filepath.Join(home, "inbox")} }

// Manifest is the path of the file that is read first.
func (b Inbox) Manifest() string { return filepath.Join(b.Dir, manifestName) }

// SnapshotPath is where the ready threads of a revision are.
func (b Inbox) SnapshotPath(revision int64) string {
	return filepath.Join(b.Dir, snapshots, strconv.FormatInt(revision, 10), readyName)
}

func (b Inbox) disk() Disk {
	if b.Disk == nil {
		return osDisk{}
	}
	return b.Disk
}

// listed is a file of a revision.
type listed[T any] struct {
	SnapshotRevision int64 `json:"snapshot_revision"`
	List             []T   `json:"list"`
}

// Publish writes a snapshot: its files, then the manifest. What an earlier Publish of the same
// revision left half done is replaced.
func (b Inbox) Publish(s wire.DesktopSnapshot, now time.Time) error {
	if s.SnapshotRevision <= 0 {
		return thole.Errorf(thole.CodeInternal, "publish inbox: no revision")
	}
	rel := filepath.Join(snapshots, strconv.FormatInt(s.SnapshotRevision, 10))
	dir := filepath.Join(b.Dir, rel)
	if err := b.makeDirs(dir); err != nil {
		return fmt.Errorf("publish inbox: %w", err)
	}
	s.Installation.SnapshotRevision = s.SnapshotRevision
	m := wire.DesktopManifest{
		SnapshotRevision: s.SnapshotRevision, PreflightID: s.PreflightID, BridgeThreadID: s.BridgeThreadID, PublishedAt: s.PublishedAt,
		ReadyThreads: filepath.Join(rel, readyName), ArmPending: filepath.Join(rel, armingName), PauseDue: filepath.Join(rel, pauseName),
		Installation: filepath.Join(rel, stateName),
	}
	for _, f := range []struct {
		path string
		v    any
	}{
		{m.ReadyThreads, listed[wire.DesktopReady]{s.SnapshotRevision, s.Ready}}, {m.ArmPending, listed[wire.DesktopArming]{s.SnapshotRevision, s.Arming}},
		{m.PauseDue, listed[wire.DesktopPause]{s.SnapshotRevision, s.PauseDue}}, {m.Installation, s.Installation},
		{manifestName, m},
	} {
		if err := b.write(filepath.Join(b.Dir, f.path), f.v); err != nil {
			return fmt.Errorf("publish inbox: %w", err)
		}
	}
	return b.collect(s.SnapshotRevision, now)
}

// PublishInstallation writes what is known of the installation outside any snapshot.
func (b Inbox) PublishInstallation(v wire.DesktopInstall) error {
	if err := b.makeDirs(b.Dir); err != nil {
		return fmt.Errorf("publish inbox: %w", err)
	}
	return b.write(filepath.Join(b.Dir, stateName), v)
}

// makeDirs makes the directories down to dir, its owner's alone from the first moment.
func (b Inbox) makeDirs(dir string) error {
	made := false
	for _, d := range []string{b.Dir, filepath.Join(b.Dir, snapshots), dir} {
		if len(d) > len(dir) {
			continue
		}
		switch err := os.Mkdir(d, 0o700); {
		case err == nil:
			made = true
		case !errors.Is(err, fs.ErrExist):
			return err
		}
		fi, err := os.Lstat(d)
		if err != nil {
			return err
		}
		if !fi.IsDir() {
			return thole.Errorf(thole.CodeUnavailable, "%s is not a directory", d)
		}
		if fi.Mode().Perm() != 0o700 {
			if err := os.Chmod(d, 0o700); err != nil { //nolint:gosec // narrower, not wider
				return err
			}
		}
	}
	if !made {
		return nil
	}
	return errors.Join(b.disk().SyncDir(filepath.Dir(b.Dir)), b.disk().SyncDir(b.Dir), b.disk().SyncDir(filepath.Dir(dir)))
}

// write replaces a file whole.
func (b Inbox) write(path string, v any) (err error) {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	temp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	if err := b.disk().Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a process that died
		return err
	}
	f, err := b.disk().Create(temp, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(body, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := b.disk().Rename(temp, path); err != nil {
		return err
	}
	return b.disk().SyncDir(filepath.Dir(path))
}

// collect removes revisions that no reader can be at any more.
func (b Inbox) collect(current int64, now time.Time) error {
	root := filepath.Join(b.Dir, snapshots)
	all, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	for _, e := range all {
		n, err := strconv.ParseInt(e.Name(), 10, 64)
		if err != nil || n == current || !e.IsDir() {
			continue
		}
		fi, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) || err == nil && now.Sub(fi.ModTime()) < grace {
			continue
		}
		if err != nil {
			return err
		}
		if err := os.RemoveAll(filepath.Join(root, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// Read reads the snapshot that the manifest names. revision is the one that the preflight of
// this wake-up returned: any other one is of another wake-up, and an error.
func (b Inbox) Read(revision int64) (s wire.DesktopSnapshot, err error) {
	bad := func(format string, args ...any) (wire.DesktopSnapshot, error) {
		return wire.DesktopSnapshot{}, thole.Errorf(thole.CodeConflict, "read inbox: "+format, args...).WithHint("thole desktop bridge-preflight")
	}
	var m wire.DesktopManifest
	if err := read(b.Manifest(), &m); err != nil {
		return bad("%w", err)
	}
	if m.SnapshotRevision != revision || revision <= 0 {
		return bad("the manifest is of revision %d, not of %d", m.SnapshotRevision, revision)
	}
	s = wire.DesktopSnapshot{
		SnapshotRevision: m.SnapshotRevision, ManifestPath: b.Manifest(), PreflightID: m.PreflightID, BridgeThreadID: m.BridgeThreadID, PublishedAt: m.PublishedAt,
	}
	var ready listed[wire.DesktopReady]
	var arming listed[wire.DesktopArming]
	var pause listed[wire.DesktopPause]
	for _, f := range []struct {
		path     string
		v        any
		revision *int64
	}{
		{m.ReadyThreads, &ready, &ready.SnapshotRevision}, {m.ArmPending, &arming, &arming.SnapshotRevision}, {m.PauseDue, &pause, &pause.SnapshotRevision},
		{m.Installation, &s.Installation, &s.Installation.SnapshotRevision},
	} {
		if !filepath.IsLocal(f.path) {
			return bad("the manifest names %q", f.path)
		}
		if err := read(filepath.Join(b.Dir, f.path), f.v); err != nil {
			return bad("%w", err)
		}
		if *f.revision != revision {
			return bad("%s is of revision %d, not of %d", filepath.Base(f.path), *f.revision, revision)
		}
	}
	s.Ready, s.Arming, s.PauseDue = ready.List, arming.List, pause.List
	return s, nil
}

func read(path string, v any) error {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	if !fi.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	}
	body, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return err
	}
	if len(body) > maxFile {
		return fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	return strictjson.Unmarshal(body, v)
}
