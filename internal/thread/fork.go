package thread

import (
	"cmp"
	"context"
	"errors"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
)

// Fork implements Service. The fork's log begins after the parent's: what was
// copied is history, not news.
func (m *Machine) Fork(ctx context.Context, actor thole.Actor, id thole.ThreadID, p Fork) (fold.Thread, error) {
	if p.ID == "" {
		p.ID = thole.ThreadID(m.cfg.NewID(m.now()))
	} else if err := checkID("thread id", string(p.ID)); err != nil {
		return fold.Thread{}, err
	}
	if p.Name != nil {
		if err := checkText("name", *p.Name, maxName); err != nil {
			return fold.Thread{}, err
		}
	}
	l, err := m.hold(ctx, actor, id, actions["thread.fork"])
	if err != nil {
		return fold.Thread{}, err
	}
	parent, base, todos := l.st.Row.Thread, l.st.Seq(), l.st.Todos
	l.release()
	whole := parent.Turns
	if parent.Open != "" {
		whole--
	}
	upTo, err := m.forkAt(ctx, actor, id, p, whole)
	if err != nil {
		return fold.Thread{}, err
	}
	origin := cmp.Or(parent.NativeID, parent.Origin)
	if upTo < whole {
		todos = nil // the list is that of later work
		if origin, err = m.nativeAt(ctx, id, upTo); err != nil {
			return fold.Thread{}, err
		}
	}
	born := event.Created{
		Owner: parent.Owner, Source: p.Source, Client: p.Client, ForkedFrom: id, Origin: origin, Turns: upTo, Todos: todos, Ephemeral: p.Ephemeral,
		Files: filesOf(parent.Files), Tools: parent.Tools,
	}
	if upTo > 0 {
		born.Preview = parent.Preview
	}
	settings, name := merge(parent.Settings, p.Settings), &parent.Name
	if p.Name != nil {
		name = p.Name
	}
	ctx, cancel := context.WithTimeoutCause(ctx, savingTime, thole.Errorf(thole.CodeBusy, "the files of the thread's last turn are still being saved").
		WithHint("fork it when they are, or up to an earlier turn; thole thread show says how far they are"))
	defer cancel()
	tick := time.NewTicker(savingLook)
	defer tick.Stop()
	for {
		t, err := m.birth(ctx, actor, p.ID, event.Data{Created: &born, Settings: &settings, Name: name}, base,
			func(c *Commit) error { return m.store.Fork(ctx, id, upTo, c) })
		if !errors.Is(err, ErrSaving) {
			return t, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fold.Thread{}, context.Cause(ctx)
		}
	}
}

// A turn has its outcome before its files and its agent's memory are saved. A fork at it waits
// that long: it would begin without what was said last.
const (
	savingTime = 30 * time.Second
	savingLook = 50 * time.Millisecond
)

// forkAt is the number of the last turn that a fork keeps, at most whole.
func (m *Machine) forkAt(ctx context.Context, actor thole.Actor, id thole.ThreadID, p Fork, whole int) (int, error) {
	switch {
	case p.UpTo != "" && p.Before != "":
		return 0, thole.Errorf(thole.CodeInvalid, "a fork ends with one turn or before another, not both")
	case p.Before != "":
		t, err := m.Turn(ctx, actor, id, p.Before)
		return t.Number - 1, err
	case p.UpTo != "":
		t, err := m.Turn(ctx, actor, id, p.UpTo)
		if err == nil && t.Outcome == "" {
			err = thole.Errorf(thole.CodeConflict, "turn %s is still running", p.UpTo).WithHint("fork up to an earlier turn, or wait")
		}
		return t.Number, err
	}
	return whole, nil
}

// nativeAt is the provider session as a turn left it, "" before the first.
func (m *Machine) nativeAt(ctx context.Context, id thole.ThreadID, number int) (string, error) {
	if number == 0 {
		return "", nil
	}
	turns, err := m.store.Turns(ctx, id, RangeQuery{After: uint64(number) + 1, Desc: true, Limit: 1})
	if err != nil {
		return "", failed("read turn", err)
	}
	if len(turns) == 0 {
		return "", nil
	}
	return turns[0].Native, nil
}
