package appserver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/serial"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/protocol/app"
)

// registerWishes serves what is done in a turn without a message of the user's.
func (s *Server) registerWishes() {
	compact := inThread(on(s, "thread/compact/start", func(ctx context.Context, c *conn, p *app.ThreadParams) (answer, error) {
		return s.turnCommand(ctx, c, p.ThreadID, thole.Compact())
	}), serial.Exclusive, func(p *app.ThreadParams) string { return p.ThreadID })
	shell := inThread(on(s, "thread/shellCommand", func(ctx context.Context, c *conn, p *app.ShellCommandParams) (answer, error) {
		return s.turnCommand(ctx, c, p.ThreadID, thole.Shell(p.Command))
	}), serial.Exclusive, func(p *app.ShellCommandParams) string { return p.ThreadID })
	review := inThread(on(s, "review/start", s.reviewStart), serial.Exclusive, func(p *app.ReviewStartParams) string { return p.ThreadID })
	compact.causes, shell.causes, review.causes = true, true, true
	inThread(on(s, "thread/inject_items", s.injectItems), serial.Exclusive, func(p *app.InjectItemsParams) string { return p.ThreadID })
	for name, body := range map[string]string{"thread/goal/get": `{"goal":null}`, "thread/goal/clear": `{"cleared":false}`} {
		inThread(on(s, name, func(ctx context.Context, c *conn, p *app.ThreadParams) (answer, error) {
			return result(json.RawMessage(body), s.exists(ctx, c, p.ThreadID))
		}), serial.Shared, func(p *app.ThreadParams) string { return p.ThreadID })
	}
	inThread(on(s, "thread/backgroundTerminals/clean", s.cleanTerminals), serial.Exclusive, func(p *app.ThreadParams) string { return p.ThreadID })
}

// cleanTerminals answers that nothing was ended, and why: the TUI ends
// itself when this request fails.
func (s *Server) cleanTerminals(ctx context.Context, c *conn, p *app.ThreadParams) (answer, error) {
	return answer{result: app.Empty{}, after: s.warning(c, p.ThreadID, "What an agent leaves running ends with its executor; ask the agent to end it sooner.")}, s.exists(ctx, c, p.ThreadID)
}

// exists refuses a thread that is not there.
func (s *Server) exists(ctx context.Context, c *conn, name string) error {
	id, err := threadID(name)
	if err == nil {
		_, err = s.cfg.Threads.Get(ctx, c.who(), id)
	}
	return err
}

// warning is a notification for one connection alone.
func (s *Server) warning(c *conn, thread, text string) []jsonrpc.Frame {
	return pick(c.peer(), []*frame{note("warning", thole.Millis(s.cfg.Now()), app.Warning{ThreadID: &thread, Message: text})})
}

// turnCommand starts a command turn, or lets it wait after the running turn and
// says so to the caller: upstream would cut that turn off for a compaction.
func (s *Server) turnCommand(ctx context.Context, c *conn, name string, input []thole.Input) (answer, error) {
	id, err := threadID(name)
	if err != nil {
		return answer{}, err
	}
	m, err := s.cfg.Threads.Enqueue(ctx, c.who(), thread.Enqueue{Thread: id, Input: input, Command: true, Start: true})
	if err != nil {
		return answer{}, err
	}
	waiting, err := s.cfg.Threads.Queue(ctx, c.who(), id)
	if err != nil || !slices.ContainsFunc(waiting, func(w event.Message) bool { return w.ID == m.ID }) {
		return result(app.Empty{}, err)
	}
	return answer{result: app.Empty{}, after: s.warning(c, name, input[0].Text+" waits for the end of the running turn.")}, nil
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
