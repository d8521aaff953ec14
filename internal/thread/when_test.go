package thread_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/thread/threadtest"
)

var errSeenOther = errors.New("not what was seen")

// Of many who change what they have seen, in one process or two, one wins; the
// others are refused and have changed nothing.
func TestOneOfManyConditionalChangesWins(t *testing.T) {
	race := func(t *testing.T, a, b *thread.Machine) {
		th, err := a.Create(bg, me, thread.Create{Name: "seen"})
		if err != nil {
			t.Fatal(err)
		}
		msg, err := a.Enqueue(bg, me, thread.Enqueue{Thread: th.ID, Input: thole.Text("seen")})
		if err != nil {
			t.Fatal(err)
		}
		var named, edited atomic.Int32
		count := func(n *atomic.Int32, err error) {
			switch {
			case err == nil:
				n.Add(1)
			case !errors.Is(err, errSeenOther):
				t.Error(err)
			}
		}
		var wg sync.WaitGroup
		for i, m := range []*thread.Machine{a, b, a, b, a, b, a, b} {
			wg.Go(func() {
				name := fmt.Sprint("mine ", i)
				_, err := m.Update(bg, me, th.ID, thread.Update{Name: &name}, func(now fold.Thread) error {
					if now.Name != "seen" {
						return errSeenOther
					}
					return nil
				})
				count(&named, err)
				_, err = m.EditQueued(bg, me, th.ID, msg.ID, thole.Text(name), func(now event.Message) error {
					if now.Input[0].Text != "seen" {
						return errSeenOther
					}
					return nil
				})
				count(&edited, err)
			})
		}
		wg.Wait()
		if named.Load() != 1 || edited.Load() != 1 {
			t.Errorf("%d names and %d edits won, want one each", named.Load(), edited.Load())
		}
		never := func(fold.Thread) error { return errSeenOther }
		if err := b.Delete(bg, me, th.ID, never); !errors.Is(err, errSeenOther) {
			t.Errorf("delete: %v", err)
		}
		if removed, err := b.RemoveQueued(bg, me, th.ID, msg.ID, func(event.Message) error { return errSeenOther }); removed || !errors.Is(err, errSeenOther) {
			t.Errorf("remove: %v, %v", removed, err)
		}
		if err := a.ReorderQueued(bg, me, th.ID, []thole.MessageID{msg.ID}, func([]event.Message) error { return errSeenOther }); !errors.Is(err, errSeenOther) {
			t.Errorf("reorder: %v", err)
		}
		if queue, err := a.Queue(bg, me, th.ID); err != nil || len(queue) != 1 {
			t.Errorf("the queue has %d messages, %v", len(queue), err)
		}
	}
	t.Run("one process", func(t *testing.T) {
		m, err := thread.New(thread.Config{Store: threadtest.Unfenced{Store: storetest.SQLite(t).Threads()}})
		if err != nil {
			t.Fatal(err)
		}
		race(t, m, m)
	})
	t.Run("two processes", func(t *testing.T) {
		a, b := twins(t)
		race(t, a, b)
	})
}

// A thread that has turns stays with its provider; a new one takes another with
// that one's own model.
func TestThreadStaysWithItsProvider(t *testing.T) {
	m, err := thread.New(thread.Config{Store: threadtest.Unfenced{Store: storetest.SQLite(t).Threads()}})
	if err != nil {
		t.Fatal(err)
	}
	th, err := m.Create(bg, me, thread.Create{Settings: event.Settings{Provider: "one", Model: "one-large", Effort: "high", Dir: "/d"}})
	if err != nil {
		t.Fatal(err)
	}
	th, err = m.Update(bg, me, th.ID, thread.Update{Settings: &event.Settings{Provider: "two"}})
	if err != nil || th.Settings.Provider != "two" || th.Settings.Model != "" || th.Settings.Effort != "" || th.Settings.Dir != "/d" {
		t.Fatalf("settings are %+v, %v", th.Settings, err)
	}
	clear := func(s event.Settings) event.Settings { s.Dir = ""; return s }
	if th, err = m.Update(bg, me, th.ID, thread.Update{Change: clear}); err != nil || th.Settings.Dir != "" {
		t.Fatalf("a field cannot be emptied: %+v, %v", th.Settings, err)
	}
	if _, err := m.StartTurn(bg, me, thread.StartTurn{Thread: th.ID, Input: thole.Text("x")}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Update(bg, me, th.ID, thread.Update{Settings: &event.Settings{Provider: "one"}}); thole.CodeOf(err) != thole.CodeConflict {
		t.Errorf("another provider for a thread with turns: %v", err)
	}
	if _, err := m.Update(bg, me, th.ID, thread.Update{Settings: &event.Settings{Provider: "two", Model: "two-small"}}); err != nil {
		t.Errorf("another model of its provider: %v", err)
	}
}
