package dispatch_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/thread"
)

// Two dispatchers with clocks ten minutes apart share one database, and one of
// them loses it in the middle: it can neither renew nor release nor write.
// Every turn still ends once, with every event once.
func TestTwoDispatchersFightAndOneDies(t *testing.T) {
	t.Parallel()
	dsn := lab.Postgres(t)
	w := newWorld(t)
	skewed := func(by time.Duration) *rig {
		db, err := store.Open(context.Background(), sqldb.Config{DSN: dsn})
		if err != nil {
			t.Fatal(err)
		}
		now := func() time.Time { return time.Now().Add(by) }
		r := w.rig(t, db, func(c *dispatch.Config) { c.Now, c.Owner = now, fmt.Sprint(by) })
		t.Cleanup(func() {
			r.halt()
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
		return r
	}
	survivor := skewed(-10 * time.Minute)
	// The one that dies is no test's cleanup: nothing of it can be stopped in order.
	victimDB, err := store.Open(context.Background(), sqldb.Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	victim := w.rig(t, victimDB, func(c *dispatch.Config) {
		c.Now, c.Owner = func() time.Time { return time.Now().Add(10 * time.Minute) }, "victim"
	})
	die := sync.OnceFunc(func() {
		if err := victimDB.Close(); err != nil {
			t.Error(err)
		}
		_ = victim.disp.Stop(context.Background())
	})
	const threads, turns = 8, 3
	const prompt = "sim: say one ;; run echo x >> f ;; slow 5ms 1 ;; say two and some more ;; run wc -l < f"
	var wg sync.WaitGroup
	var mu sync.Mutex
	victims := 0 // leases of the one that dies, seen by their owner
	for n := range threads {
		id, first := survivor.thread(), thole.TurnID("")
		if n <= threads/2 { // a turn is mostly claimed where it was started
			first = victim.start(id, prompt)
		}
		wg.Go(func() {
			for i := range turns {
				turn := first
				if i > 0 || turn == "" {
					turn = survivor.start(id, prompt)
				}
				survivor.until(id, func(e event.Event) bool {
					return e.Turn == turn && e.Kind == event.ItemCompleted && e.Data.Item.Text == "one"
				})
				if row, err := survivor.db.Queue().Get(context.Background(), turn); err == nil && row.Owner == "victim" {
					mu.Lock()
					victims++
					mu.Unlock()
				}
				if n == threads/2 && i == 1 {
					die()
				}
				survivor.settled(id, turn)
			}
			checkLog(t, survivor, id, turns)
		})
	}
	wg.Wait()
	die()
	if victims == 0 {
		t.Error("the dispatcher that died never had a turn")
	}
}

// checkLog reads a thread's whole log: contiguous, no event twice, one start and
// one end per turn, and what was said and done in each said and done once.
func checkLog(t *testing.T, r *rig, id thole.ThreadID, turns int) {
	events, err := r.Events(context.Background(), me, id, 0, 10000)
	if err != nil {
		t.Error(err)
		return
	}
	seen, ended, items := map[thole.EventID]bool{}, map[thole.TurnID]int{}, map[string]int{}
	for i, e := range events {
		if e.Seq != uint64(i+1) || e.ID != "" && seen[e.ID] {
			t.Errorf("event %d has seq %d, id %q", i, e.Seq, e.ID)
		}
		seen[e.ID] = true
		switch e.Kind {
		case event.TurnEnded:
			if ended[e.Turn]++; e.Data.Outcome != thole.OutcomeCompleted {
				t.Errorf("turn %s ended %s: %+v", e.Turn, e.Data.Outcome, e.Data.Error)
			}
		case event.ItemCompleted:
			items[string(e.Turn)+e.Data.Item.Text]++
		}
	}
	page, err := r.Turns(context.Background(), me, id, thread.PageParams{Limit: 100})
	if err != nil || len(page.Items) != turns {
		t.Errorf("%d turns, %v", len(page.Items), err)
	}
	for n, turn := range page.Items {
		if ended[turn.ID] != 1 || turn.Run != 0 {
			t.Errorf("turn %s ended %d times in run %d", turn.ID, ended[turn.ID], turn.Run)
		}
		if items[string(turn.ID)+"one"] != 1 || items[string(turn.ID)+"two and some more"] != 1 {
			t.Errorf("turn %s said %v", turn.ID, items)
		}
		if said := r.said(id, turn.ID); !strings.Contains(said, fmt.Sprintln(n+1)) {
			t.Errorf("turn %d of %s said %q", n, id, said)
		}
	}
}

// A dispatcher dies with leases that run for an hour. Its successor in the home
// need not wait for them.
func TestAloneTakesOverAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "thole.db")
	w := newWorld(t)
	open := func() *rig {
		db, err := store.Open(context.Background(), sqldb.Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		return w.rig(t, db, func(c *dispatch.Config) { c.Lease, c.Alone = time.Hour, true })
	}
	victim := open()
	id := victim.thread()
	turn := victim.start(id, "sim: say one ;; slow 5ms 1 ;; say two and some more ;; run echo 1")
	victim.until(id, func(e event.Event) bool {
		return e.Turn == turn && e.Kind == event.ItemCompleted && e.Data.Item.Text == "one"
	})
	if err := victim.db.Close(); err != nil {
		t.Fatal(err)
	}
	_ = victim.disp.Stop(context.Background())
	next := open()
	defer func() { next.halt(); _ = next.db.Close() }()
	next.settled(id, turn)
	checkLog(t, next, id, 1)
}
