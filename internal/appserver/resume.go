package appserver

import (
	"cmp"
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/protocol/app"
)

// threadResume snapshots, subscribes, answers, replays what is in flight, and
// then goes on with what happens after the snapshot.
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
	if err := s.adopt(ctx, c, t, wish{Settings: p.Settings, sandbox: str(p.Sandbox), instructions: str(p.DeveloperInstructions)}); err != nil {
		return answer{}, err
	}
	sub, err := c.subscribe(ctx, id, c.lag())
	if err != nil {
		return answer{}, err
	}
	a := answer{then: sub.start, undo: sub.cancel}
	snap := sub.in.Snapshot
	out := app.ThreadResumeResult{
		ThreadView:           s.viewFor(c, snap.Thread),
		TurnsBackwardsCursor: new(thread.CursorAt(uint64(snap.Thread.Turns) + 1)),
		ItemsBackwardsCursor: new(thread.CursorAt(snap.Seq + 1)),
	}
	if c.peer().extended {
		out.Seq = &snap.Seq
	}
	if !p.ExcludeTurns {
		if out.Thread.Turns, err = s.fullTurns(ctx, c, id); err != nil {
			return a, err
		}
	}
	if page := p.InitialTurnsPage; page != nil {
		turns, err := s.turnsPage(ctx, c, id, app.PageParams{Limit: page.Limit, SortDirection: page.SortDirection}, str(page.ItemsView))
		if err != nil {
			return a, err
		}
		out.InitialTurnsPage = &turns
	}
	a.result, a.after = out, s.replay(c.peer(), snap)
	return a, nil
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

// replay sends a joiner what is in flight: items as started with their text so
// far, then the asks that wait.
func (s *Server) replay(p *peer, snap thread.Snapshot) []jsonrpc.Frame {
	var frames []*frame
	if t := snap.Open; t != nil {
		tr := &translator{srv: s, state: snap.Fold.Copy()}
		for _, it := range t.Items {
			if !it.Stamp.Ended.IsZero() {
				continue
			}
			frames = append(frames, note("item/started", thole.Millis(snap.Taken), started(string(t.Thread), string(t.ID), unfinished(it))))
			frames = append(frames, tr.soFar(t, it, snap.Taken)...)
		}
	}
	for _, a := range snap.Asks {
		if f := request(a.Thread, a.Turn, a.Ask, thole.Millis(a.Asked), snap.Thread.WorkDir()); f != nil {
			frames = append(frames, f)
		}
	}
	return pick(p, frames)
}
