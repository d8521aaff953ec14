package httpapi

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/platform/chat"
	"github.com/tholehq/thole/internal/platform/view"
	"github.com/tholehq/thole/internal/thread"
)

// ForkIn is where a fork ends, and how it goes on.
type ForkIn struct {
	UpTo   string   `json:"up_to_run_id,omitempty" format:"uuid" doc:"the last run to keep; all that ended when absent"`
	Before string   `json:"before_run_id,omitempty" format:"uuid" doc:"the first run to leave out"`
	Name   *string  `json:"name,omitempty"`
	Run    *Message `json:"run,omitempty" doc:"what to run there at once; {} with before_run_id is the message of that run again"`
}

// forkSession copies a session. With a run it begins one there at once: a message
// that was edited, or with an empty run the same message again.
func (s *Server) forkSession(ctx context.Context, in *struct {
	SessionID
	KeyIn
	Body ForkIn
}) (*tagged[view.Session], error) {
	id, err := once(ctx, s, "POST /sessions/"+in.ID+"/fork", in.Key, in.Body, func() (thole.ThreadID, error) {
		p := thread.Fork{UpTo: thole.TurnID(in.Body.UpTo), Before: thole.TurnID(in.Body.Before), Name: in.Body.Name}
		if in.Key != "" {
			p.ID = thole.ThreadID(chat.NamedID("fork", string(actorOf(ctx).User), in.ID, in.Key))
		}
		if in.Body.Run == nil {
			t, err := s.fork(ctx, in.thread(), p)
			return t.ID, err
		}
		start, err := s.inFork(ctx, in.thread(), p, in.Body.Run)
		if err != nil {
			return "", err
		}
		start.Idempotency = in.Key
		t, err := s.branch(ctx, in.thread(), p, start)
		return t.Thread, err
	})
	return s.made(ctx, id, err)
}

// inFork is what a fork begins with.
func (s *Server) inFork(ctx context.Context, id thole.ThreadID, p thread.Fork, run *Message) (thread.StartTurn, error) {
	start := thread.StartTurn{ClientID: run.ClientID, Trace: traceOf(ctx)}
	var err error
	if len(run.Input) > 0 || run.Text != "" || p.Before == "" {
		start.Input, err = run.input()
		return start, err
	}
	t, err := s.cfg.Threads.Turn(ctx, actorOf(ctx), id, p.Before)
	if command, _ := thole.TurnCommandOf(t.Input); err == nil && command != "" {
		err = thole.Errorf(thole.CodeUnsupported, "run %s is a command, not a message", t.ID).WithHint("fork before a message of the user")
	}
	start.Input, start.Schema = t.Input, t.Schema
	return start, err
}

// fork copies a thread; one that the same key made before is returned.
func (s *Server) fork(ctx context.Context, id thole.ThreadID, p thread.Fork) (fold.Thread, error) {
	actor := actorOf(ctx)
	p.Source, p.Client = "http", actor.Client
	t, err := s.cfg.Threads.Fork(ctx, actor, id, p)
	if p.ID != "" && thole.CodeOf(err) == thole.CodeConflict {
		if have, gerr := s.cfg.Threads.Get(ctx, actor, p.ID); gerr == nil && have.ForkedFrom == id {
			return have, nil
		}
	}
	return t, err
}

// branch forks a thread and starts a turn in the fork. A fork whose turn cannot
// start is taken back.
func (s *Server) branch(ctx context.Context, id thole.ThreadID, p thread.Fork, start thread.StartTurn) (fold.Turn, error) {
	made, err := s.fork(ctx, id, p)
	if err != nil {
		return fold.Turn{}, err
	}
	start.Thread = made.ID
	turn, err := s.cfg.Threads.StartTurn(ctx, actorOf(ctx), start)
	if err != nil && p.ID == "" {
		_ = s.cfg.Threads.Delete(context.WithoutCancel(ctx), actorOf(ctx), made.ID)
	}
	return turn, err
}
