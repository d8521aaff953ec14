package httpapi

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/platform/view"
)

// network lists a session's records and what its executor counted since the last one.
func (s *Server) network(ctx context.Context, id thole.ThreadID) (out networkOut, err error) {
	out.Items = []view.RunNetwork{}
	t, err := s.cfg.Threads.Get(ctx, actorOf(ctx), id)
	if err != nil {
		return out, err
	}
	recorded, err := s.cfg.Threads.Network(ctx, actorOf(ctx), id)
	if err != nil {
		return out, err
	}
	for _, n := range recorded {
		out.Items = append(out.Items, view.OfNetwork(n.Turn, n.Traffic, false))
	}
	var live wire.Network
	if s.cfg.LiveNetwork != nil {
		live = s.cfg.LiveNetwork(ctx, id)
	}
	if len(live.Traffic) > 0 {
		out.Items = append(out.Items, view.OfNetwork(t.Open, live.Traffic, true))
	}
	if s.cfg.Network != nil {
		out.Reach = view.OfReach(s.cfg.Network.Ceiling(), t.Settings.Network, live.Models)
	}
	return out, nil
}

// NetworkControl knows what the configuration lets sessions reach, and sends it to executors.
type NetworkControl interface {
	Ceiling() string
	// CheckNetwork returns what is to be recorded, nil for what the configuration allows.
	CheckNetwork(*event.NetworkPolicy) (*event.NetworkPolicy, error)
	// ApplyNetwork lets what is recorded hold at once.
	ApplyNetwork(context.Context, thole.ThreadID) error
}

// NetworkIn is a session's policy in a request.
type NetworkIn struct {
	Network *event.NetworkPolicy `json:"network,omitempty" doc:"what the agent may reach; at most what the configuration allows, which is \"default\""`
}

// check returns the policy to be recorded.
func (in NetworkIn) check(s *Server) (*event.NetworkPolicy, error) {
	if in.Network == nil {
		return nil, nil
	}
	if s.cfg.Network == nil {
		return nil, thole.Errorf(thole.CodeUnsupported, "sessions have no network policies here")
	}
	return s.cfg.Network.CheckNetwork(in.Network)
}

type networkOut struct {
	view.Reach
	Items []view.RunNetwork `json:"items"`
}

func (s *Server) networkRoutes() {
	op(s, "GET", "/sessions/{session_id}/network", "What the agent's processes exchanged with the network, by run and target, oldest run first", 200, func(ctx context.Context, in *SessionID) (*body[networkOut], error) {
		return answer(s.network(ctx, in.thread()))
	})
}
