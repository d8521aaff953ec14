package thread_test

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
)

// TestLargeThreadStaysCheap compares a thread with a long past to a short one:
// first page, resume, append and memory must not grow with the past.
func TestLargeThreadStaysCheap(t *testing.T) {
	items := 10_000
	if os.Getenv("THOLE_SOAK") != "" {
		items = 100_000
	}
	db := storetest.SQLite(t)
	b := newBench(t, db, nil)
	grow := func(n int) thole.ThreadID {
		id := b.create(thread.Create{}).ID
		for done := 0; done < n; {
			_, report := b.turn(id, "go")
			var events []event.Event
			for range min(500, n-done) {
				done++
				events = append(events, said(fmt.Sprint("i", done), "some text that an agent says in a turn"))
			}
			report(append(events, ends(thole.OutcomeCompleted))...)
		}
		return id
	}
	small, large := grow(500), grow(items)

	// A fresh machine, as after a restart.
	b = newBench(t, db, nil)
	// The least of several: what else runs in this process, and next to it, adds.
	cost := func(id thole.ThreadID) (best work) {
		for i := range 7 {
			start := worked(t)
			sub, err := b.Subscribe(bg, me, id, thread.SubscribeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			page, err := b.Items(bg, me, id, "", thread.PageParams{Desc: true, Limit: 100})
			if err != nil || len(page.Items) != 100 {
				t.Fatalf("%d items, %v", len(page.Items), err)
			}
			if _, err := b.Turns(bg, me, id, thread.PageParams{Desc: true, Limit: 5, Cursor: thread.CursorAt(uint64(sub.Snapshot.Thread.Turns) + 1)}); err != nil {
				t.Fatal(err)
			}
			turn, err := b.StartTurn(bg, me, thread.StartTurn{Thread: id, Input: thole.Text("x")})
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Interrupt(bg, me, id, turn.ID); err != nil {
				t.Fatal(err)
			}
			sub.Close()
			if d := worked(t).since(start); i == 0 {
				best = d
			} else {
				best = work{min(best.objects, d.objects), min(best.processor, d.processor)}
			}
		}
		return best
	}
	fast := cost(small)
	before := heap()
	slow := cost(large)
	grown := int64(heap()) - int64(before)
	t.Logf("%d items: %v against %v for 500; heap grew by %d KiB", items, slow, fast, grown>>10)
	if slow.objects > 2*fast.objects || slow.processor > 5*fast.processor+5*time.Millisecond {
		t.Errorf("a past of %d items makes a thread cost %v instead of %v", items, slow, fast)
	}
	if grown > 4<<20 {
		t.Errorf("a past of %d items costs %d KiB of memory", items, grown>>10)
	}
}

// work is what this process did, however slow the machine was meanwhile: what it read
// into memory, and what the engine searched.
type work struct {
	objects   uint64
	processor time.Duration
}

func worked(t *testing.T) work {
	t.Helper()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return work{m.Mallocs, time.Duration(u.Utime.Nano() + u.Stime.Nano())}
}

func (w work) since(start work) work {
	return work{w.objects - start.objects, w.processor - start.processor}
}

func (w work) String() string { return fmt.Sprintf("%d objects and %v", w.objects, w.processor) }

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
