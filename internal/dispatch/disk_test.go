package dispatch_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// small gives executors little disk, and looks often.
func small(c *dispatch.Config) { c.Room.Disk, c.DiskEvery = 32<<20, 10*time.Millisecond }

// boxed gives the rig's executors their walls.
func boxed(t *testing.T, w *world) func(*dispatch.Config) {
	bwrap := lab.Bwrap(t)
	return func(c *dispatch.Config) {
		c.Driver = local.New(local.Config{Root: filepath.Join(w.root, "x"), Binary: binary, Bwrap: bwrap})
	}
}

const big = "head -c 40000000 /dev/zero"

// Whatever an agent does to keep its files from being counted, its turn ends, and the
// next one works: the home is not harmed.
func TestDiskThatHides(t *testing.T) {
	t.Parallel()
	lab.EveryUser(t, func(t *testing.T) {
		for name, attack := range map[string]string{
			"in a directory without permissions": `mkdir shut && exec 9> shut/big && chmod 000 shut && ` + big + ` >&9`,
			"deep":                               `n=0; while [ $n -lt 300 ]; do mkdir d && cd d; n=$((n+1)); done; ` + big + ` > big`,
			"without a name":                     `exec 9> big && rm big && ` + big + ` >&9`,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				r := w.rig(t, storetest.SQLite(t), small, boxed(t, w))
				id := r.thread()
				// The turn ends by itself where nobody counts what it takes.
				turn := r.start(id, "sim: run "+attack+"; echo written; n=0; while [ $n -lt 200 ]; do sleep 0.1; n=$((n+1)); done")
				got := r.settled(id, turn)
				if got.Outcome != thole.OutcomeFailed || got.Error == nil || got.Error.Code != thole.ErrLimit {
					t.Fatalf("the turn ended %s: %+v", got.Outcome, got.Error)
				}
				turn = r.start(id, "sim: run chmod -R u+rwx . ; rm -rf * && echo cleaned")
				if got = r.settled(id, turn); got.Outcome != thole.OutcomeCompleted || !strings.Contains(r.said(id, turn), "cleaned") {
					t.Errorf("cleaning up ended %s: %+v", got.Outcome, got.Error)
				}
			})
		}
	})
}

// A turn that is followed by another process than the one that began it has no more
// room than before.
func TestDiskIsHeldAcrossARestart(t *testing.T) {
	w, db := newWorld(t), storetest.SQLite(t)
	r := w.rig(t, db, small)
	id := r.thread()
	turn := r.start(id, "sim: say begun ;; run while ! test -e go; do sleep 0.05; done; "+big+" > big; touch written ;; hang")
	r.until(id, func(e event.Event) bool { return e.Kind == event.ItemDelta && e.Turn == turn })
	r.halt() // and what the agent writes now nobody sees
	dir := workspaceOf(t, r, id)
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "the agent's files", func() bool { _, err := os.Stat(filepath.Join(dir, "written")); return err == nil })
	again := w.rig(t, db, small)
	if got := again.settled(id, turn); got.Error == nil || got.Error.Code != thole.ErrLimit {
		t.Errorf("the turn ended %s: %+v", got.Outcome, got.Error)
	}
}

// What a process that a turn left behind writes counts too: the executor is stopped
// and saved, and the next turn says why.
func TestDiskIsHeldBetweenTurns(t *testing.T) {
	w := newWorld(t)
	r := w.rig(t, storetest.SQLite(t), small)
	id := r.thread()
	r.settled(id, r.start(id, "sim: say done"))
	dir := workspaceOf(t, r, id)
	if err := os.WriteFile(filepath.Join(dir, "big"), make([]byte, 40_000_000), 0o600); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "the executor's stop", func() bool {
		row, err := r.db.Executors().OfThread(context.Background(), id)
		return err == nil && row.State == executor.RowStopped && row.SyncStatus == executor.SyncSuccess
	})
	turn := r.start(id, "sim: hang")
	if got := r.settled(id, turn); got.Error == nil || got.Error.Code != thole.ErrLimit || !strings.Contains(got.Error.Hint, "executor.disk_mb") {
		t.Errorf("the next turn ended %s: %+v", got.Outcome, got.Error)
	}
	turn = r.start(id, "sim: run rm big && echo cleaned")
	if got := r.settled(id, turn); got.Outcome != thole.OutcomeCompleted {
		t.Errorf("cleaning up ended %s: %+v", got.Outcome, got.Error)
	}
}

func workspaceOf(t *testing.T, r *rig, id thole.ThreadID) string {
	t.Helper()
	row, err := r.db.Executors().OfThread(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := r.driver.WorkspaceDir(row.ID)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
