package appserver

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/protocol/app"
)

// threadRevert takes turns back. Clients read again what is left: thread/reverted says so to
// those who follow the thread.
func (s *Server) threadRevert(ctx context.Context, c *conn, p *app.ThreadRevertParams) (answer, error) {
	id, err := threadID(p.ThreadID)
	if err != nil {
		return answer{}, err
	}
	t, err := s.cfg.Threads.Revert(ctx, c.who(), id, thole.TurnID(p.BeforeTurnID))
	if err != nil {
		return answer{}, err
	}
	return answer{result: app.ThreadRevertResult{
		ThreadResult: app.ThreadResult{Thread: s.thread(t)}, TurnsBackwardsCursor: new(thread.CursorAt(uint64(t.Turns) + 1)), ItemsBackwardsCursor: new(thread.CursorAt(t.Seq + 1)),
	}}, nil
}
