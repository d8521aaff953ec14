package executord

import (
	"context"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/provider"
)

// backgroundTime bounds how long a CLI may take to say what it left running.
const backgroundTime = 10 * time.Second

// background answers what a thread's agent left running, and may end it. An agent that
// does not run has left nothing.
func (s *Server) background(ctx context.Context, req wire.BackgroundRequest) (out wire.Background, err error) {
	session := s.session(req.Thread)
	if session == nil {
		return wire.Background{Known: true}, nil
	}
	of, ok := session.(provider.Background)
	if !ok {
		return out, nil
	}
	ctx, cancel := context.WithTimeout(ctx, backgroundTime)
	defer cancel()
	out.Known = true
	if req.EndAll || req.End != "" {
		if out.Ended, err = of.EndBackground(ctx, req.End); err != nil {
			return out, thole.Errorf(thole.CodeUnavailable, "end what the agent left running: %w", err)
		}
	}
	if out.Commands, err = of.Background(ctx); err != nil {
		err = thole.Errorf(thole.CodeUnavailable, "ask what the agent left running: %w", err)
	}
	return out, err
}

// session is the one that works for a thread, or waits for its next turn.
func (s *Server) session(id thole.ThreadID) (found provider.Session) {
	s.runs.each(func(r *run) {
		if at := r.current(); at != nil && r.snapshot().Thread == id {
			found = at
		}
	})
	if found != nil {
		return found
	}
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	return s.sessions.warm[id].session
}
