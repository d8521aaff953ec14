package executord

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
)

// Park ends the runs that wait for a human's answer on that question, where their
// provider can take the answer up later: executord is about to end, and the question
// outlives it. Another run is left as it is; it ends with executord, and its turn is
// taken up again.
func (s *Server) Park(ctx context.Context) {
	s.runs.each(func(r *run) {
		session, ask := r.question()
		if session == nil || !s.survives(ctx, r.snapshot().Provider) {
			return
		}
		if err := session.Defer(ctx, ask); err != nil {
			s.logger.Warn("park", "run", r.snapshot().ID, "err", err)
			return
		}
		select {
		case <-r.done:
		case <-ctx.Done():
		}
	})
}

// question is the only thing a run waits for, if that is a question.
func (r *run) question() (provider.Session, thole.AskID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.session == nil || r.stopped || len(r.state.Asks) != 1 {
		return nil, ""
	}
	if ask := r.state.Asks[0].Ask; ask.Kind.Parks() {
		return r.session, ask.ID
	}
	return nil, ""
}

func (s *Server) survives(ctx context.Context, name string) bool {
	p, ok := s.sessions.providers[name]
	return ok && p.Probe(ctx).Capabilities.AskSurvives.OK()
}
