package appserver

import (
	"context"
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
	inThread(on(s, "thread/compact/start", func(ctx context.Context, c *conn, p *app.ThreadParams) (answer, error) {
		return s.turnCommand(ctx, c, p.ThreadID, thole.Compact())
	}), serial.Exclusive, func(p *app.ThreadParams) string { return p.ThreadID })
	inThread(on(s, "thread/shellCommand", func(ctx context.Context, c *conn, p *app.ShellCommandParams) (answer, error) {
		return s.turnCommand(ctx, c, p.ThreadID, thole.Shell(p.Command))
	}), serial.Exclusive, func(p *app.ShellCommandParams) string { return p.ThreadID })
	s.registerReview()
	inThread(on(s, "thread/inject_items", s.injectItems), serial.Exclusive, func(p *app.InjectItemsParams) string { return p.ThreadID })
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
