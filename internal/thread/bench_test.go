package thread_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/thread/threadtest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a machine whose clock the test moves.
type bench struct {
	*thread.Machine
	t   *testing.T
	now time.Time
	n   int
	// spent is what the machine reported of turns that are done.
	spent []thole.TurnTime
	// admit refuses turns; nil: nothing does.
	admit func() error
}

func newBench(t *testing.T, db *store.DB, policies thread.Policies) *bench {
	b := &bench{t: t, now: time.UnixMilli(1_700_000_000_000).UTC()}
	m, err := thread.New(thread.Config{
		Store: threadtest.Unfenced{Store: db.Threads()}, Now: func() time.Time { return b.now }, Policies: policies,
		Admit: func(context.Context, thole.Owner, thole.ThreadID) error {
			if b.admit == nil {
				return nil
			}
			return b.admit()
		},
		Spent: func(t thole.TurnTime) { b.spent = append(b.spent, t) },
	})
	if err != nil {
		t.Fatal(err)
	}
	m.Attach(nobody{})
	b.Machine = m
	t.Cleanup(func() { _ = m.Close(bg) })
	return b
}

func (b *bench) create(p thread.Create) fold.Thread {
	b.t.Helper()
	b.now = b.now.Add(time.Second)
	th, err := b.Create(bg, me, p)
	if err != nil {
		b.t.Fatal(err)
	}
	return th
}

// turn starts a turn and returns a function that reports about it.
func (b *bench) turn(id thole.ThreadID, text string) (fold.Turn, func(...event.Event)) {
	b.t.Helper()
	b.now = b.now.Add(time.Second)
	turn, err := b.StartTurn(bg, me, thread.StartTurn{Thread: id, Input: thole.Text(text)})
	if err != nil {
		b.t.Fatal(err)
	}
	return turn, b.report(id, turn.ID)
}

// report returns a function that reports about a turn.
func (b *bench) report(id thole.ThreadID, turn thole.TurnID) func(...event.Event) {
	return func(events ...event.Event) {
		b.t.Helper()
		for i := range events {
			b.n++
			events[i].ID = thole.EventID(fmt.Sprint("e", b.n))
		}
		if err := b.Apply(bg, thread.TurnRef{Thread: id, Turn: turn}, events); err != nil {
			b.t.Fatal(err)
		}
	}
}

func ends(o thole.Outcome) event.Event {
	return event.Event{Kind: event.TurnEnded, Data: event.Data{Outcome: o}}
}

func said(id, text string) event.Event {
	return event.Event{Kind: event.ItemCompleted, Data: event.Data{Item: &event.Item{ID: thole.ItemID(id), Kind: event.ItemMessage, Text: text}}}
}

func asks(id string, k event.AskKind) event.Event {
	return event.Event{Kind: event.AskRequested, Data: event.Data{Ask: &event.Ask{ID: thole.AskID(id), Kind: k, Questions: []event.Question{{ID: "q"}}}}}
}

func (b *bench) lastTurn(id thole.ThreadID) fold.Turn {
	b.t.Helper()
	page, err := b.Turns(bg, me, id, thread.PageParams{Desc: true, Limit: 1})
	if err != nil || len(page.Items) != 1 {
		b.t.Fatalf("turns: %+v, %v", page, err)
	}
	return page.Items[0]
}
