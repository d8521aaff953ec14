package inbox_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/inbox"
	"github.com/tholehq/thole/internal/testkit/powerloss"
)

type recorded struct{ *powerloss.Disk }

func (r recorded) Create(path string, perm os.FileMode) (inbox.File, error) {
	return r.Disk.Create(path, perm)
}

// snapshot says its revision in every list, so that a mixture shows.
func snapshot(revision int64) wire.DesktopSnapshot {
	id := strconv.FormatInt(revision, 10)
	return wire.DesktopSnapshot{
		SnapshotRevision: revision, PreflightID: id, BridgeThreadID: "b", Ready: []wire.DesktopReady{{DesktopToken: wire.DesktopToken{BatchID: id}}},
		Arming: []wire.DesktopArming{{AutomationID: id}}, PauseDue: []wire.DesktopPause{{AutomationID: id}}, Installation: wire.DesktopInstall{Fingerprint: id},
	}
}

func whole(s wire.DesktopSnapshot) error {
	id := strconv.FormatInt(s.SnapshotRevision, 10)
	if s.PreflightID != id || len(s.Ready) != 1 || s.Ready[0].BatchID != id || len(s.Arming) != 1 || s.Arming[0].AutomationID != id ||
		len(s.PauseDue) != 1 || s.PauseDue[0].AutomationID != id || s.Installation.Fingerprint != id {
		return fmt.Errorf("a mixture: %+v", s)
	}
	return nil
}

func published(b inbox.Inbox) (m wire.DesktopManifest, err error) {
	body, err := os.ReadFile(b.Manifest())
	if err == nil {
		err = json.Unmarshal(body, &m)
	}
	return m, err
}

// TestPowerLoss cuts the power at every operation: what can be read is one revision, and one
// that was acknowledged is there or a later one.
func TestPowerLoss(t *testing.T) {
	now := time.Now()
	powerloss.Enumerate(t, 4, func(d *powerloss.Disk) error {
		b := inbox.Inbox{Dir: filepath.Join(d.Dir, "inbox"), Disk: recorded{d}}
		for revision := int64(1); revision <= 3; revision++ {
			if err := b.Publish(snapshot(revision), now); err != nil {
				return err
			}
			d.Ack(strconv.FormatInt(revision, 10))
		}
		return nil
	}, func(dir string, acked []string) error {
		b := inbox.Inbox{Dir: filepath.Join(dir, "inbox")}
		m, err := published(b)
		if os.IsNotExist(err) && len(acked) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		s, err := b.Read(m.SnapshotRevision)
		if err != nil {
			return err
		}
		if n := int64(len(acked)); s.SnapshotRevision < n {
			return fmt.Errorf("revision %d was acknowledged and %d is there", n, s.SnapshotRevision)
		}
		if err := whole(s); err != nil {
			return err
		}
		next := snapshot(s.SnapshotRevision + 1) // what is half done is no obstacle
		if err := b.Publish(next, now); err != nil {
			return err
		}
		_, err = b.Read(next.SnapshotRevision)
		return err
	})
}

// A bridge that holds another revision than this wake-up's, or finds files of another one,
// reads nothing.
func TestOnlyThisWakeUp(t *testing.T) {
	b := inbox.In(t.TempDir())
	if err := b.Publish(snapshot(7), time.Now()); err != nil {
		t.Fatal(err)
	}
	if s, err := b.Read(7); err != nil || whole(s) != nil {
		t.Fatal(s, err)
	}
	for _, other := range []int64{0, 6, 8} {
		if _, err := b.Read(other); thole.CodeOf(err) != thole.CodeConflict {
			t.Errorf("read revision %d: %v", other, err)
		}
	}
	ready := b.SnapshotPath(7)
	body, err := os.ReadFile(ready)
	if err != nil {
		t.Fatal(err)
	}
	put := func(content string) {
		t.Helper()
		if err := os.WriteFile(ready, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for what, spoil := range map[string]func(){
		"other revision": func() { put(strings.Replace(string(body), `:7,`, `:6,`, 1)) },
		"cut off":        func() { put(string(body[:len(body)/2])) },
		"too large":      func() { put(strings.Repeat(" ", 5<<20) + string(body)) },
		"gone":           func() { _ = os.Remove(ready) },
		"a link":         func() { _ = os.Remove(ready); _ = os.Symlink("/dev/zero", ready) },
		"a pipe":         func() { _ = os.Remove(ready); _ = syscall.Mkfifo(ready, 0o600) },
	} {
		spoil()
		if s, err := b.Read(7); err == nil {
			t.Errorf("%s: %+v", what, s)
		}
		_ = os.Remove(ready)
		put(string(body))
	}
	if _, err := b.Read(7); err != nil {
		t.Fatal(err)
	}
}

// Files are their owner's alone, and old revisions go when nobody can read them any more.
func TestModesAndCollection(t *testing.T) {
	home := t.TempDir()
	b := inbox.In(home)
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	now := time.Now()
	for revision := int64(1); revision <= 2; revision++ {
		if err := b.Publish(snapshot(revision), now); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.PublishInstallation(wire.DesktopInstall{}); err != nil {
		t.Fatal(err)
	}
	files := 0
	err := filepath.WalkDir(b.Dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		want := os.FileMode(0o600)
		if e.IsDir() {
			want = 0o700
		} else {
			files++
		}
		if fi.Mode().Perm() != want {
			t.Errorf("%s has mode %o", path, fi.Mode().Perm())
		}
		return nil
	})
	if err != nil || files != 10 {
		t.Errorf("%d files, %v", files, err)
	}
	if err := b.Publish(snapshot(3), now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Join(b.Dir, "snapshots"))
	if err != nil || len(left) != 1 || left[0].Name() != "3" {
		t.Errorf("%v, %v", left, err)
	}
}
