package thread

import (
	"cmp"
	"context"

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
	origin, retell := cmp.Or(parent.NativeID, parent.Origin), parent.Retell
	if upTo < whole {
		todos = nil // the list is that of later work
		if origin, retell, err = m.nativeAt(ctx, id, upTo); err != nil {
			return fold.Thread{}, err
		}
	}
	born := event.Created{
		Owner: parent.Owner, Source: p.Source, Client: p.Client, ForkedFrom: id, Origin: origin, Retell: retell, Turns: upTo, Todos: todos, Ephemeral: p.Ephemeral,
		Files: filesOf(parent.Files), Tools: parent.Tools,
	}
	if upTo > 0 {
		born.Preview = parent.Preview
	}
	settings, name := merge(parent.Settings, p.Settings), &parent.Name
	if p.Name != nil {
		name = p.Name
	}
	var t fold.Thread
	err = whenSaved(ctx, "fork", func(ctx context.Context) (err error) {
		t, err = m.birth(ctx, actor, p.ID, event.Data{Created: &born, Settings: &settings, Name: name}, base,
			func(c *Commit) error { return m.store.Fork(ctx, id, upTo, c) })
		return err
	})
	return t, err
}

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

// nativeAt is the provider session as a turn left it, "" before the first. One that turns
// were reverted from still remembers them, so the agent of the fork reads the rest instead.
func (m *Machine) nativeAt(ctx context.Context, id thole.ThreadID, number int) (native string, retell bool, err error) {
	if number == 0 {
		return "", false, nil
	}
	turns, err := m.store.Turns(ctx, id, RangeQuery{After: uint64(number) + 1, Desc: true, Limit: 1})
	switch {
	case err != nil:
		return "", false, failed("read turn", err)
	case len(turns) == 0:
		return "", false, nil
	case turns[0].Number < number:
		return "", true, nil
	}
	return turns[0].Native, false, nil
}
