package appserver

import (
	"cmp"
	"context"
	"errors"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/protocol/app"
)

// threadResume snapshots, subscribes, answers, replays what is in flight, and
// then goes on with what happens after the snapshot. The history is read after the
// thread's lane is free.
func (s *Server) threadResume(ctx context.Context, c *conn, p *app.ThreadResumeParams) (answer, error) {
	id, err := threadID(p.ThreadID)
	if err != nil {
		return answer{}, err
	}
	t, err := s.cfg.Threads.Get(ctx, c.who(), id)
	if err != nil {
		return answer{}, err
	}
	if t.Archived {
		return answer{}, thole.Errorf(thole.CodeConflict, "session %s is archived", id).WithHint("unarchive it with thread/unarchive first")
	}
	w := wish{Settings: p.Settings, sandbox: str(p.Sandbox), instructions: instructions(p.BaseInstructions, p.DeveloperInstructions)}
	if err := w.configured(p.Config); err != nil {
		return answer{}, err
	}
	links, err := c.meetAgain(w.servers, t.Tools)
	if err != nil {
		return answer{}, err
	}
	if err := s.adopt(ctx, c, t, w); err != nil {
		return answer{}, err
	}
	c.join(id, links)
	sub, err := c.subscribe(ctx, id, c.lag())
	if err != nil {
		return answer{}, err
	}
	snap := &sub.in.Snapshot
	a := answer{then: sub.start, undo: sub.remove}
	a.rest = func(ctx context.Context) (any, []jsonrpc.Frame, error) {
		out, err := s.resumed(ctx, c, p, snap)
		if err == nil && errors.Is(sub.in.Err(), thread.ErrSlow) {
			// More happened meanwhile than is kept for a reader. That is not the client's fault.
			err = jsonrpc.Overloaded()
		}
		return out, s.replay(c.peer(), snap), err
	}
	return a, nil
}

// resumed is the answer to a resume: the thread as its snapshot has it. What happens
// since is not in it, and waits in the subscription.
func (s *Server) resumed(ctx context.Context, c *conn, p *app.ThreadResumeParams, snap *thread.Snapshot) (*app.ThreadResumeResult, error) {
	out := app.ThreadResumeResult{
		ThreadView:           s.viewFor(c, snap.Thread),
		TurnsBackwardsCursor: new(thread.CursorAt(uint64(snap.Thread.Turns) + 1)),
		ItemsBackwardsCursor: new(snap.ItemsCursor()),
	}
	if c.peer().extended {
		out.Seq = &snap.Seq
	}
	if !p.ExcludeTurns {
		turns, err := s.fullTurns(ctx, c, snap.Thread.ID, snap)
		if err != nil {
			return nil, err
		}
		out.Thread.Turns = turns
	}
	if page := p.InitialTurnsPage; page != nil {
		turns, err := s.turnsPage(ctx, c, snap.Thread.ID, app.PageParams{Limit: page.Limit, SortDirection: page.SortDirection}, str(page.ItemsView), snap)
		if err != nil {
			return nil, err
		}
		out.InitialTurnsPage = &turns
	}
	return &out, nil
}

// adopt applies overrides given with a resume, but only to a thread that nobody
// else works with: settings of a live thread belong to the client that runs it.
func (s *Server) adopt(ctx context.Context, c *conn, t fold.Thread, w wish) error {
	if err := c.stays(w.Settings, t); err != nil {
		return err
	}
	set, _, err := s.settings(w, t.Settings)
	if err != nil {
		return err
	}
	if set.Provider != "" && set.Provider != cmp.Or(t.Settings.Provider, s.catalog.provider()) {
		return errOtherProvider(set.Provider)
	}
	if t.Status.Loaded {
		return nil
	}
	_, err = s.cfg.Threads.Update(ctx, c.who(), t.ID, thread.Update{Settings: &set})
	return err
}

// replay sends a joiner the thread's goal and what is in flight: items as started with
// their text so far, then the asks that wait.
func (s *Server) replay(p *peer, snap *thread.Snapshot) []jsonrpc.Frame {
	var frames []*frame
	if g := snap.Thread.Goal; g != nil {
		frames = append(frames, goalNote(thole.Millis(snap.Taken), snap.Thread.ID, "", g))
	}
	if t := snap.Open; t != nil {
		tr := &translator{srv: s, state: snap.Fold.Copy()}
		for _, it := range t.Items {
			if !it.Stamp.Ended.IsZero() || !shows(it) {
				continue
			}
			frames = append(frames, started(string(t.Thread), string(t.ID), unfinished(it), thole.Millis(snap.Taken), snap.Thread.WorkDir()))
			frames = append(frames, tr.soFar(t, it, snap.Taken)...)
		}
	}
	for _, a := range snap.Asks {
		var of event.Item
		if snap.Fold != nil {
			of = (&translator{state: snap.Fold}).item(a.Ask.Item)
		}
		if i, ok := about(a.Ask, of); ok {
			frames = append(frames, started(string(a.Thread), string(a.Turn), i, thole.Millis(snap.Taken), snap.Thread.WorkDir()))
		}
		if f := request(a.Thread, a.Turn, a.Ask, thole.Millis(a.Asked), snap.Thread.WorkDir()); f != nil {
			f.client = s.toolOwner(a.Ask, snap.Thread)
			frames = append(frames, f)
		}
	}
	return pick(p, frames)
}
