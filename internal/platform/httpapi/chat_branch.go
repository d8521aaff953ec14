package httpapi

import (
	"context"
	"errors"
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/platform/chat"
	"github.com/tholehq/thole/internal/thread"
)

// maxBranches bounds how often a chat can be forked by one that goes on.
const maxBranches = 256

// branchOf is the session in which a chat goes on: a client that had a message
// answered again keeps the chat's id, and the newest answer that it has says which
// fork it sees. One that is no fork of the chat is a copy that the client made.
func (s *Server) branchOf(ctx context.Context, id thole.ThreadID, req *chat.Request) (thole.ThreadID, error) {
	at := req.Session()
	if at == "" || at == id {
		return id, nil
	}
	is, err := s.descends(ctx, at, id)
	if err != nil || is {
		return at, err
	}
	return id, nil
}

// descends reports whether a session was forked from another, over any number of
// forks. One that was deleted is thole.CodeGone.
func (s *Server) descends(ctx context.Context, id, from thole.ThreadID) (bool, error) {
	for up, n := id, 0; n < maxBranches; n++ {
		t, err := s.cfg.Threads.Get(ctx, actorOf(ctx), up)
		switch {
		case thole.CodeOf(err) == thole.CodeNotFound && n == 0:
			return false, s.cfg.Threads.Gone(ctx, actorOf(ctx), up)
		case thole.CodeOf(err) == thole.CodeNotFound:
			return false, nil
		case err != nil:
			return false, err
		case t.ForkedFrom == from:
			return true, nil
		case t.ForkedFrom == "":
			return false, nil
		}
		up = t.ForkedFrom
	}
	return false, nil
}

// rerun forks a chat before the run of a message and runs the client's version of
// that message there: the log of a session only grows, so the first answer stays
// where it is.
func (s *Server) rerun(ctx context.Context, id thole.ThreadID, req *chat.Request, message string, start thread.StartTurn) (fold.Turn, error) {
	actor := actorOf(ctx)
	run, err := s.runOfMessage(ctx, id, message)
	if errors.Is(err, errNoMessage) { // an answer in a fork that none of the messages before it is from
		if t, rerr := s.run(ctx, message); rerr == nil {
			is, derr := s.descends(ctx, t.Thread, chat.ThreadID(actor.User, req.ID))
			if derr != nil {
				return fold.Turn{}, derr
			}
			if is {
				run, err = t, nil
			}
		}
	}
	if err != nil {
		return fold.Turn{}, err
	}
	if run.Outcome == "" {
		return fold.Turn{}, thole.Errorf(thole.CodeBusy, "this message is still being answered").WithHint("stop the answer first")
	}
	p := thread.Fork{Before: run.ID}
	if start.Idempotency != "" {
		p.ID = thole.ThreadID(chat.NamedID("rerun", string(actor.User), string(run.Thread), start.Idempotency))
	}
	return s.branch(ctx, run.Thread, p, start)
}

var errNoMessage = errors.New("this chat has no message")

// runOfMessage finds the run that a message of a chat belongs to: the answer, whose
// id is the run's, or the question under the id that the client or the server gave it.
func (s *Server) runOfMessage(ctx context.Context, id thole.ThreadID, message string) (fold.Turn, error) {
	actor := actorOf(ctx)
	p := thread.PageParams{Desc: true, Limit: 200}
	for {
		page, err := s.cfg.Threads.Turns(ctx, actor, id, p)
		if err != nil {
			return fold.Turn{}, err
		}
		ids := make([]thole.TurnID, len(page.Items))
		for i, t := range page.Items {
			if string(t.ID) == strings.TrimSuffix(message, "/input") || t.ClientID == message {
				return t, nil
			}
			ids[i] = t.ID
		}
		items, err := s.cfg.Threads.TurnItems(ctx, actor, id, ids, true)
		if err != nil {
			return fold.Turn{}, err
		}
		for _, t := range page.Items {
			if slices.ContainsFunc(items[t.ID], func(r fold.ItemRecord) bool { return string(r.Item.ID) == message }) {
				return t, nil
			}
		}
		if p.Cursor = page.Next; p.Cursor == "" {
			return fold.Turn{}, thole.Errorf(thole.CodeConflict, "%w %s", errNoMessage, message).WithHint("load the chat again: another tab may have changed it")
		}
	}
}
