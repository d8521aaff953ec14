package appserver

import (
	"context"
	"fmt"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/serial"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/protocol/app"
)

// registerWishes serves what Codex does by itself and an agent behind a driver has
// to be asked for, or cannot do at all.
func (s *Server) registerWishes() {
	for name, why := range Unserved() {
		inThread(on(s, name, func(ctx context.Context, c *conn, p *app.ThreadParams) (answer, error) {
			return s.unserved(ctx, c, p.ThreadID, why)
		}), serial.Exclusive, func(p *app.ThreadParams) string { return p.ThreadID })
	}
	review := inThread(on(s, "review/start", s.reviewStart), serial.Exclusive, func(p *app.ReviewStartParams) string { return p.ThreadID })
	review.causes = true
}

// Unserved are the methods that are accepted and do nothing but tell the caller
// why, with what a user reads then.
func Unserved() map[string]string {
	return map[string]string{
		"thread/compact/start": "Nothing was compacted: thole cannot tell an agent to. Agents compact by themselves when their context is full.",
		"thread/shellCommand":  "The command was not run: thole runs commands only through the agent, in the thread's executor. Ask the agent to run it.",
	}
}

// unserved tells the caller, and nobody else, of a turn that failed at once: the
// TUI ends itself when the request fails, and otherwise waits for the end of a
// turn. No such turn is in the thread. While a real one runs it waits already, and
// a warning is enough.
func (s *Server) unserved(ctx context.Context, c *conn, name, why string) (answer, error) {
	id, err := threadID(name)
	if err != nil {
		return answer{}, err
	}
	now, err := s.cfg.Threads.Get(ctx, c.who(), id)
	if err != nil {
		return answer{}, err
	}
	at := s.cfg.Now()
	tell := func(method string, params any) *frame { return note(method, thole.Millis(at), params) }
	frames := []*frame{tell("warning", app.Warning{ThreadID: &name, Message: why})}
	if now.Open == "" {
		t := thread.Turn{ID: thole.NewID[thole.TurnID](at), Created: at}
		started := tell("turn/started", app.TurnNotification{ThreadID: name, Turn: turn(t)})
		t.Outcome, t.Error, t.Stamp.Ended = thole.OutcomeFailed, &thole.TurnError{Code: thole.ErrBadRequest, Message: why}, at
		frames = []*frame{
			started,
			tell("error", app.ErrorNotification{Error: *turnError(t.Error), ThreadID: name, TurnID: string(t.ID)}),
			tell("turn/completed", app.TurnNotification{ThreadID: name, Turn: turn(t)}),
		}
	}
	return answer{result: app.Empty{}, after: pick(c.peer(), frames)}, nil
}

// reviewStart asks the agent for a review in an ordinary turn: any agent can look
// at changes, and what it finds is its answer.
func (s *Server) reviewStart(ctx context.Context, c *conn, p *app.ReviewStartParams) (answer, error) {
	id, err := threadID(p.ThreadID)
	if err != nil {
		return answer{}, err
	}
	text, err := reviewPrompt(p.Target)
	if err != nil {
		return answer{}, err
	}
	t, err := s.cfg.Threads.StartTurn(ctx, c.who(), thread.StartTurn{Thread: id, Input: thole.Text(text)})
	return result(app.ReviewStartResult{Turn: accepted(t), ReviewThreadID: p.ThreadID}, err)
}

func reviewPrompt(t app.ReviewTarget) (string, error) {
	what := ""
	switch {
	case t.Type == "uncommittedChanges":
		what = "the uncommitted changes in the working tree: staged, unstaged and untracked files"
	case t.Type == "baseBranch" && t.Branch != "":
		what = fmt.Sprintf("the changes on the current branch since it left %s", t.Branch)
	case t.Type == "commit" && t.SHA != "":
		what = fmt.Sprintf("the changes that commit %s made", t.SHA)
	case t.Type == "custom" && t.Instructions != "":
		return "Review as follows and change nothing: " + t.Instructions, nil
	default:
		return "", invalid("unknown or incomplete review target `%s`", t.Type)
	}
	return "Review " + what + ". Change nothing. Report what is wrong or risky, most serious first, each with its file and line and why; say so if nothing is.", nil
}
