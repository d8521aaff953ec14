package thread

import (
	"context"
	"errors"
	"slices"
	"strconv"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/authz"
)

// Turn implements Service.
func (m *Machine) Turn(ctx context.Context, actor thole.Actor, id thole.ThreadID, turn thole.TurnID) (fold.Turn, error) {
	if _, err := m.visible(ctx, actor, id); err != nil {
		return fold.Turn{}, err
	}
	var open *fold.Turn
	if m.recall(id, func(s *fold.State) { open = s.Open }); open != nil && open.ID == turn {
		return *open, nil
	}
	t, err := m.store.Turn(ctx, id, turn)
	if errors.Is(err, ErrNone) {
		return fold.Turn{}, errNoTurn(turn)
	}
	if err != nil {
		return fold.Turn{}, failed("read turn", err)
	}
	return t, nil
}

// Turns implements Service. Positions are turn numbers.
func (m *Machine) Turns(ctx context.Context, actor thole.Actor, id thole.ThreadID, p PageParams) (Page[fold.Turn], error) {
	if _, err := m.visible(ctx, actor, id); err != nil {
		return Page[fold.Turn]{}, err
	}
	q, back, err := rangeOf(p)
	if err != nil || q.Limit == 0 {
		return Page[fold.Turn]{}, err
	}
	turns, err := m.store.Turns(ctx, id, q)
	if err != nil {
		return Page[fold.Turn]{}, failed("list turns", err)
	}
	return paged(turns, q.Limit-1, p, back, func(t fold.Turn) string { return strconv.Itoa(t.Number) }), nil
}

// Items implements Service. Positions are sequence numbers. An item in flight
// has its text so far.
func (m *Machine) Items(ctx context.Context, actor thole.Actor, id thole.ThreadID, turn thole.TurnID, p PageParams) (Page[fold.ItemRecord], error) {
	if _, err := m.visible(ctx, actor, id); err != nil {
		return Page[fold.ItemRecord]{}, err
	}
	q, back, err := rangeOf(p)
	if err != nil || q.Limit == 0 {
		return Page[fold.ItemRecord]{}, err
	}
	items, err := m.store.Items(ctx, id, turn, q)
	if err != nil {
		return Page[fold.ItemRecord]{}, failed("list items", err)
	}
	if err := m.fill(ctx, actor, id, items); err != nil {
		return Page[fold.ItemRecord]{}, err
	}
	except := excepted(p.Cursor)
	page := paged(items, q.Limit-1, p, back, func(r fold.ItemRecord) string { return strconv.FormatUint(r.Seq, 10) + except })
	page.Items = slices.DeleteFunc(page.Items, func(r fold.ItemRecord) bool { return leftOut(except, r.Seq) })
	return page, nil
}

// TurnItems implements Service.
func (m *Machine) TurnItems(ctx context.Context, actor thole.Actor, id thole.ThreadID, turns []thole.TurnID, said bool) (map[thole.TurnID][]fold.ItemRecord, error) {
	if len(turns) > maxPage {
		return nil, thole.Errorf(thole.CodeInvalid, "items of %d turns at once, at most %d", len(turns), maxPage)
	}
	if _, err := m.visible(ctx, actor, id); err != nil {
		return nil, err
	}
	items, err := m.store.TurnItems(ctx, id, turns, said, MaxTurnItems+1)
	if err != nil {
		return nil, failed("list items", err)
	}
	out := make(map[thole.TurnID][]fold.ItemRecord, len(turns))
	if cut := len(items) > MaxTurnItems; cut {
		oldest := items[len(items)-1].Turn // has more
		items = slices.DeleteFunc(items, func(r fold.ItemRecord) bool { return r.Turn == oldest })
	} else {
		for _, t := range turns {
			out[t] = nil
		}
	}
	if err := m.fill(ctx, actor, id, items); err != nil {
		return nil, err
	}
	for _, r := range slices.Backward(items) {
		out[r.Turn] = append(out[r.Turn], r)
	}
	return out, nil
}

// fill puts the text in flight into open items.
func (m *Machine) fill(ctx context.Context, actor thole.Actor, id thole.ThreadID, items []fold.ItemRecord) error {
	var plan *flightPlan
	for i, r := range items {
		if !r.Open {
			continue
		}
		if plan == nil {
			l, err := m.hold(ctx, actor, id, authz.ViewThread)
			if err != nil {
				return err
			}
			defer l.release()
			plan = l.plan()
		}
		items[i].Item = plan.fill(r.Item)
	}
	return nil
}

// Asks implements Service.
func (m *Machine) Asks(ctx context.Context, actor thole.Actor, id thole.ThreadID, pendingOnly bool) ([]fold.AskRecord, error) {
	if _, err := m.visible(ctx, actor, id); err != nil {
		return nil, err
	}
	asks, err := m.store.Asks(ctx, id, pendingOnly)
	if err != nil {
		return nil, failed("list asks", err)
	}
	return asks, nil
}

// Todos implements Service.
func (m *Machine) Todos(ctx context.Context, actor thole.Actor, id thole.ThreadID) ([]event.Todo, error) {
	if _, err := m.visible(ctx, actor, id); err != nil {
		return nil, err
	}
	todos, err := m.store.Todos(ctx, id)
	if err != nil {
		return nil, failed("list todos", err)
	}
	return todos, nil
}

// maxNetwork is how many runs' records Network reads.
const maxNetwork = 500

// Network implements Service.
func (m *Machine) Network(ctx context.Context, actor thole.Actor, id thole.ThreadID) ([]TurnNetwork, error) {
	if _, err := m.visible(ctx, actor, id); err != nil {
		return nil, err
	}
	events, err := m.store.Network(ctx, id, maxNetwork)
	if err != nil {
		return nil, failed("read network", err)
	}
	var out []TurnNetwork
	for _, e := range events {
		if n := len(out); n > 0 && out[n-1].Turn == e.Turn { // another run of the same turn
			out[n-1].Traffic = event.MergeTraffic(out[n-1].Traffic, e.Network)
			continue
		}
		out = append(out, TurnNetwork{Turn: e.Turn, Traffic: e.Network})
	}
	return out, nil
}

// Events implements Service.
func (m *Machine) Events(ctx context.Context, actor thole.Actor, id thole.ThreadID, after uint64, limit int) ([]event.Event, error) {
	row, err := m.visible(ctx, actor, id)
	if err != nil {
		return nil, err
	}
	if err := checkAfter(row.Thread, after); err != nil {
		return nil, err
	}
	events, err := m.store.Events(ctx, id, after, pageLimit(limit))
	if errors.Is(err, ErrNone) {
		return nil, errNoThread(id)
	}
	if err != nil {
		return nil, failed("read log", err)
	}
	return events, nil
}

// checkAfter refuses a cursor that retention overtook, and one from the future.
func checkAfter(t fold.Thread, after uint64) error {
	if after < t.Floor {
		return thole.Errorf(thole.CodeGone, "cursor too old: events up to %d are no longer kept", t.Floor).
			WithHint("take a snapshot instead of resuming")
	}
	if after > t.Seq {
		return thole.Errorf(thole.CodeInvalid, "cursor %d is beyond the log's end at %d", after, t.Seq)
	}
	return nil
}

func errGap(after uint64) error {
	return thole.Errorf(thole.CodeGone, "events after %d are no longer kept", after).WithHint("take a snapshot instead of resuming")
}

// Compact removes the events of turns that have ended, up to and including
// seq: history keeps its turns, items, asks and todos, cursors into the removed
// part are gone. It reports how far it went.
func (m *Machine) Compact(ctx context.Context, actor thole.Actor, id thole.ThreadID, seq uint64, when ...Precondition[fold.Thread]) (uint64, error) {
	l, err := m.hold(ctx, actor, id, actions["thread.compact"])
	if err != nil {
		return 0, err
	}
	defer l.release()
	if m.shared {
		if _, err := m.refresh(ctx, l); err != nil {
			return 0, err
		}
	}
	if err := check(l.st.Row.View(l.attached.Load()), when); err != nil {
		return 0, err
	}
	if l.st.Open != nil {
		seq = min(seq, l.st.Open.Seq-1)
	}
	seq = min(seq, l.st.Seq())
	if seq <= l.st.Row.Thread.Floor {
		return l.st.Row.Thread.Floor, nil
	}
	if err := m.store.Compact(ctx, id, seq); err != nil {
		return 0, failed("compact log", err)
	}
	next := l.st.Clone()
	next.Row.Thread.Floor = seq
	l.st = next
	return seq, nil
}
