package dispatch_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/executord/terminal"
	"github.com/tholehq/thole/internal/store/storetest"
)

// unheard is a driver whose executords do not answer for a number of looks.
type unheard struct {
	*local.Driver
	looks atomic.Int64
}

func (d *unheard) Inspect(ctx context.Context, id thole.ExecutorID) (executor.Info, error) {
	if d.looks.Add(-1) >= 0 {
		return executor.Info{ID: id}, errors.New("it has processes but does not answer")
	}
	return d.Driver.Inspect(ctx, id)
}

// Who does not answer whether a user has a terminal open is asked again and not
// stopped.
func TestAnExecutorThatMissesOneLookIsNotStopped(t *testing.T) {
	t.Parallel()
	d := &unheard{}
	r := newWorld(t).rig(t, storetest.SQLite(t), func(c *dispatch.Config) {
		c.IdleStop = time.Nanosecond
		d.Driver = c.Driver.(*local.Driver)
		c.Driver = d
	})
	ctx := context.Background()
	id := r.thread()
	r.settled(id, r.start(id, "sim: say hi"))
	row := r.row(id)
	conn, err := r.client(id).Terminal(ctx, terminal.DefaultSize)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	d.looks.Store(1)
	waitFor(t, func() bool {
		if err := r.disp.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		got := r.row(id)
		if got.State != executor.RowRunning {
			t.Fatalf("it was stopped under an open terminal: %+v", got)
		}
		return got.LastActive.After(row.LastActive)
	})
}

// An idle executor whose executord is stuck is stopped by the sweep, after a few
// looks, and its files are stored.
func TestAStuckExecutorIsStoppedByTheSweep(t *testing.T) {
	t.Parallel()
	r := newWorld(t).rig(t, storetest.SQLite(t), func(c *dispatch.Config) { c.IdleStop = time.Nanosecond })
	ctx := context.Background()
	id := r.thread()
	r.settled(id, r.start(id, "sim: run echo kept > f"))
	row := r.row(id)
	stopped := 0
	for _, pid := range processes(row.ID) {
		if exe, _ := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe"); filepath.Base(exe) == filepath.Base(binary) && syscall.Kill(pid, syscall.SIGSTOP) == nil {
			stopped++
		}
	}
	if stopped == 0 {
		t.Fatal("there is no executord")
	}
	if err := os.WriteFile(filepath.Join(r.root, "x", string(row.ID), "workspace", "late"), []byte("late"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.disp.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return r.row(id).State == executor.RowStopped })
	if left := processes(row.ID); len(left) > 0 {
		t.Errorf("processes %v still run", left)
	}
	turn := r.start(id, "sim: run cat f late")
	if r.settled(id, turn); !strings.Contains(r.said(id, turn), "kept\nlate") {
		t.Errorf("said %q", r.said(id, turn))
	}
}
