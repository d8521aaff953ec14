package shared

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/thread"
)

// Threads is the one thread of a share link. It has only the methods below: every other one
// of the service, and every other thread, is refused.
type Threads struct {
	refused
	Show   View
	From   thread.Service
	Actor  thole.Actor
	Thread thole.ThreadID
}

// refused makes Threads a Service; no method of it is ever called.
type refused struct{ thread.Service }

func (t Threads) check(id thole.ThreadID) error {
	if id != t.Thread {
		return thole.Errorf(thole.CodeNotFound, "no such session")
	}
	return nil
}

// Get implements thread.Service.
func (t Threads) Get(ctx context.Context, _ thole.Actor, id thole.ThreadID) (fold.Thread, error) {
	if err := t.check(id); err != nil {
		return fold.Thread{}, err
	}
	th, err := t.From.Get(ctx, t.Actor, id)
	return t.Show.Thread(th), err
}

// Turns implements thread.Service.
func (t Threads) Turns(ctx context.Context, _ thole.Actor, id thole.ThreadID, p thread.PageParams) (thread.Page[fold.Turn], error) {
	if err := t.check(id); err != nil {
		return thread.Page[fold.Turn]{}, err
	}
	page, err := t.From.Turns(ctx, t.Actor, id, p)
	return each(page, t.Show.Turn), err
}

// Items implements thread.Service.
func (t Threads) Items(ctx context.Context, _ thole.Actor, id thole.ThreadID, turn thole.TurnID, p thread.PageParams) (thread.Page[fold.ItemRecord], error) {
	if err := t.check(id); err != nil {
		return thread.Page[fold.ItemRecord]{}, err
	}
	page, err := t.From.Items(ctx, t.Actor, id, turn, p)
	return each(page, t.Show.Record), err
}

// Events implements thread.Service.
func (t Threads) Events(ctx context.Context, _ thole.Actor, id thole.ThreadID, after uint64, limit int) ([]event.Event, error) {
	if err := t.check(id); err != nil {
		return nil, err
	}
	events, err := t.From.Events(ctx, t.Actor, id, after, limit)
	for i, e := range events { // as many as were read: readers count them
		shown, ok := t.Show.Event(e)
		if !ok {
			shown = event.Event{Seq: e.Seq, Time: e.Time}
		}
		events[i] = shown
	}
	return events, err
}

func each[T any](p thread.Page[T], show func(T) T) thread.Page[T] {
	out := thread.Page[T]{Items: make([]T, 0, len(p.Items)), Next: p.Next, Back: p.Back}
	for _, v := range p.Items {
		out.Items = append(out.Items, show(v))
	}
	return out
}
