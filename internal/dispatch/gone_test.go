package dispatch_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/store/storetest"
)

// An executor whose directory a user deleted ends with all its processes, found
// by a sweep or by the next turn, and the thread goes on from what was stored.
func TestAnExecutorWithoutItsDirectory(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	r := newWorld(t).rig(t, storetest.SQLite(t))
	id := r.thread()
	r.settled(id, r.start(id, "sim: run echo kept > file.txt"))
	for _, who := range []string{"sweep", "turn"} {
		row, err := r.db.Executors().OfThread(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(r.root, "x", string(row.ID))); err != nil {
			t.Fatal(err)
		}
		if who == "sweep" {
			waitFor(t, func() bool { // it passes over a thread whose worker has not let go yet
				if err := r.disp.Sweep(ctx); err != nil {
					t.Fatal(err)
				}
				got, err := r.db.Executors().Get(ctx, row.ID)
				return err == nil && got.State == executor.RowDeleted
			})
		}
		turn := r.start(id, "sim: run cat file.txt")
		if r.settled(id, turn); !strings.Contains(r.said(id, turn), "kept") {
			t.Errorf("%s: said %q", who, r.said(id, turn))
		}
		if left := processes(row.ID); len(left) > 0 {
			t.Errorf("%s: processes %v still run", who, left)
		}
	}
}

// late is a driver whose List was asked before anything was made.
type late struct{ *local.Driver }

func (late) List(context.Context) ([]executor.Info, error) { return nil, nil }

func TestASweepLooksTwiceBeforeItGivesUpAnExecutor(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w, db := newWorld(t), storetest.SQLite(t)
	r := w.rig(t, db)
	id := r.thread()
	r.settled(id, r.start(id, "sim: say hi"))
	r.halt()
	r = w.rig(t, db, func(c *dispatch.Config) { c.Driver = late{c.Driver.(*local.Driver)} })
	if err := r.disp.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	if row, err := r.db.Executors().OfThread(ctx, id); err != nil || row.State != executor.RowRunning {
		t.Errorf("%+v, %v", row, err)
	}
}
