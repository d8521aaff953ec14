package appserver

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/protocol/app"
)

// The Codex TUI ends itself when one of a few requests fails, whatever the reason, and hides
// the reason of others: it takes the server for broken or too old. There a refusal is reported in a
// notification that the TUI shows, and its request is answered as if nothing was to be done.
// Other clients get the error.

// spare answers a request of a TUI that failed with err; ok is false where the TUI shows the
// error itself. Nothing of the request counts either way.
func (s *Server) spare(ctx context.Context, c *conn, method string, params any, err error) (a answer, ok bool) {
	if !c.isTerminal() {
		return answer{}, false
	}
	switch p := params.(type) {
	case *app.SettingsUpdateParams:
		a = s.warned(c, p.ThreadID, err)
		a.after = append(a.after, s.truth(ctx, c, p.ThreadID)...)
		return a, true
	case *app.TurnStartParams:
		if compact(p.OutputSchema) != nil { // titles and recaps, which the TUI can do without
			return answer{}, false
		}
		return s.failedStart(ctx, c, p.ThreadID, err, func(t app.Turn) any { return app.TurnResult{Turn: t} }), true
	case *app.ReviewStartParams:
		if a, err = s.reviewLater(ctx, c, p, err); err == nil {
			return a, true
		}
		return s.failedStart(ctx, c, p.ThreadID, err, func(t app.Turn) any { return app.ReviewStartResult{Turn: t, ReviewThreadID: p.ThreadID} }), true
	case *app.ShellCommandParams:
		return s.warned(c, p.ThreadID, err), true
	case *app.ThreadNameParams:
		return s.warned(c, p.ThreadID, err), true
	case *app.ThreadParams:
		switch method {
		case "thread/compact/start": // the TUI shows itself at work until it hears of an end
			return answer{result: app.Empty{}, after: s.failed(c, p.ThreadID, thole.NewID[thole.TurnID](s.cfg.Now()), err)}, true
		case "thread/backgroundTerminals/clean":
			return s.warned(c, p.ThreadID, err), true
		}
	}
	return answer{}, false
}

func (s *Server) warned(c *conn, thread string, err error) answer {
	return answer{result: app.Empty{}, after: s.warning(c, thread, said(err))}
}

// said is an error with what to do about it.
func said(err error) string {
	if hint := thole.HintOf(err); hint != "" {
		return err.Error() + " (" + hint + ")"
	}
	return err.Error()
}

// failedStart answers with a turn that failed before it began: no other client sees it, and it
// is in no history.
func (s *Server) failedStart(ctx context.Context, c *conn, thread string, err error, wrap func(app.Turn) any) answer {
	id := thole.NewID[thole.TurnID](s.cfg.Now())
	t := app.Turn{ID: string(id), RootTurnID: new(string(id)), Items: []app.Item{}, ItemsView: app.ItemsFull, Status: app.TurnFailed, Error: unmade(err)}
	return answer{result: wrap(t), after: append(s.failed(c, thread, id, err), s.truth(ctx, c, thread)...)}
}

func unmade(err error) *app.TurnError {
	return turnError(&thole.TurnError{Message: said(err)})
}

// failed reports to one connection a turn that did not begin.
func (s *Server) failed(c *conn, thread string, turn thole.TurnID, err error) []jsonrpc.Frame {
	return pick(c.peer(), []*frame{note("error", thole.Millis(s.cfg.Now()), app.ErrorNotification{Error: *unmade(err), ThreadID: thread, TurnID: string(turn)})})
}

// truth repeats a thread's settings to a client that believes in others.
func (s *Server) truth(ctx context.Context, c *conn, thread string) []jsonrpc.Frame {
	t, err := s.cfg.Threads.Get(ctx, c.who(), thole.ThreadID(thread))
	if err != nil {
		return nil // it is gone, and the client hears of that too
	}
	return pick(c.peer(), []*frame{note("thread/settings/updated", thole.Millis(s.cfg.Now()), app.SettingsUpdated{ThreadID: thread, ThreadSettings: s.threadSettings(t.Settings, t.WorkDir())})})
}

// reviewLater lets a review wait for the end of the running turn, which is the turn of the
// answer: the TUI goes on with it.
func (s *Server) reviewLater(ctx context.Context, c *conn, p *app.ReviewStartParams, refused error) (answer, error) {
	if thole.CodeOf(refused) != thole.CodeBusy {
		return answer{}, refused
	}
	id := thole.ThreadID(p.ThreadID)
	what, prompt, err := review(p.Target)
	if err != nil {
		return answer{}, err
	}
	now, err := s.cfg.Threads.Get(ctx, c.who(), id)
	if err != nil || now.Open == "" {
		return answer{}, refused
	}
	if _, err := s.cfg.Threads.Enqueue(ctx, c.who(), thread.Enqueue{Thread: id, Input: thole.Review(what, prompt), Command: true, Start: true}); err != nil {
		return answer{}, err
	}
	running, err := s.cfg.Threads.Turn(ctx, c.who(), id, now.Open)
	if err != nil {
		return answer{}, err
	}
	return answer{
		result: app.ReviewStartResult{Turn: accepted(running), ReviewThreadID: p.ThreadID},
		after:  s.warning(c, p.ThreadID, "The review of "+what+" waits for the end of the running turn."),
	}, nil
}
