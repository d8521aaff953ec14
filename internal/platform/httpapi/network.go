package httpapi

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/platform/view"
)

// network lists a session's records and what its executor counted since the last one.
func (s *Server) network(ctx context.Context, id thole.ThreadID) ([]view.RunNetwork, error) {
	t, err := s.cfg.Threads.Get(ctx, actorOf(ctx), id)
	if err != nil {
		return nil, err
	}
	recorded, err := s.cfg.Threads.Network(ctx, actorOf(ctx), id)
	if err != nil {
		return nil, err
	}
	var out []view.RunNetwork
	for _, n := range recorded {
		out = append(out, view.OfNetwork(n.Turn, n.Traffic, false))
	}
	var live []event.Traffic
	if s.cfg.LiveNetwork != nil {
		live = s.cfg.LiveNetwork(ctx, id)
	}
	if len(live) > 0 {
		out = append(out, view.OfNetwork(t.Open, live, true))
	}
	return out, nil
}

func (s *Server) networkRoutes() {
	op(s, "GET", "/sessions/{session_id}/network", "What the agent's processes exchanged with the network, by run and target, oldest run first", 200, func(ctx context.Context, in *SessionID) (*body[list[view.RunNetwork]], error) {
		return listed(s.network(ctx, in.thread()))
	})
}
