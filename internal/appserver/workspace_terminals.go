package appserver

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/protocol/app"
)

// registerTerminals serves what agents leave running. Its requests wait for an agent, so
// they are in no lane of the thread's.
func (s *Server) registerTerminals() {
	on(s, "thread/backgroundTerminals/list", s.terminalList)
	on(s, "thread/backgroundTerminals/clean", s.terminalClean)
	on(s, "thread/backgroundTerminals/terminate", s.terminalEnd)
}

// background asks a thread's agent.
func (s *Server) background(ctx context.Context, c *conn, thread string, req wire.BackgroundRequest) (wire.Background, error) {
	id, err := threadID(thread)
	if err == nil {
		_, err = s.cfg.Threads.Get(ctx, c.who(), id)
	}
	if err != nil || s.cfg.Executors == nil {
		return wire.Background{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, fileTime)
	defer cancel()
	req.Thread = id
	return s.cfg.Executors.Background(ctx, c.who(), authz.DoneBy(ctx), req)
}

func (s *Server) terminalList(ctx context.Context, c *conn, p *app.BackgroundTerminalsParams) (answer, error) {
	after := int64(-1)
	if p.Cursor != nil {
		n, err := strconv.ParseInt(*p.Cursor, 10, 32)
		if err != nil {
			return answer{}, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "invalid cursor: %q", *p.Cursor)
		}
		after = n
	}
	b, err := s.background(ctx, c, p.ThreadID, wire.BackgroundRequest{})
	if err != nil {
		return answer{}, err
	}
	out := app.BackgroundTerminalsResult{Data: []app.BackgroundTerminal{}}
	slices.SortFunc(b.Commands, func(a, b provider.BackgroundCommand) int { return cmp.Compare(number32(a.ID), number32(b.ID)) })
	for _, t := range b.Commands {
		if number32(t.ID) <= after {
			continue
		}
		if p.Limit != nil && len(out.Data) == int(max(1, *p.Limit)) {
			out.NextCursor = &out.Data[len(out.Data)-1].ProcessID
			break
		}
		out.Data = append(out.Data, app.BackgroundTerminal{ItemID: string(t.Item), ProcessID: t.ID, Command: t.Line, Cwd: t.Dir})
	}
	return answer{result: out}, nil
}

func number32(id string) int64 {
	n, _ := strconv.ParseInt(id, 10, 32)
	return n
}

// terminalClean ends all of them. Of an agent that does not report what it left running it
// ends none and says so: the TUI ends itself when this request fails.
func (s *Server) terminalClean(ctx context.Context, c *conn, p *app.ThreadParams) (answer, error) {
	b, err := s.background(ctx, c, p.ThreadID, wire.BackgroundRequest{EndAll: true})
	a := answer{result: app.Empty{}}
	if err == nil && !b.Known {
		a.after = s.warning(c, p.ThreadID, "This agent does not report what it left running; that ends with its executor, or when you ask the agent to end it.")
	}
	return a, err
}

func (s *Server) terminalEnd(ctx context.Context, c *conn, p *app.BackgroundTerminalParams) (answer, error) {
	if _, err := strconv.ParseInt(p.ProcessID, 10, 32); err != nil {
		return answer{}, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "invalid background terminal process id: %q", p.ProcessID)
	}
	b, err := s.background(ctx, c, p.ThreadID, wire.BackgroundRequest{End: p.ProcessID})
	return result(app.BackgroundTerminalEnded{Terminated: b.Ended}, err)
}
