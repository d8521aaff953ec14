package executord

import (
	"context"
	"net/http"
	"strconv"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/egress"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/jsonhttp"
)

// Network is the meter of an egress.Proxy. Take starts it again at zero: executord alone does, at the
// end of each run.
type Network interface {
	Totals() []egress.Total
	Take() []egress.Total
}

// network shows what was counted since the last run ended; ?after=MS leaves out the targets without
// a sign of life since then.
func (s *Server) network(w http.ResponseWriter, r *http.Request) {
	out := wire.Network{Traffic: []event.Traffic{}}
	var after int64
	if q := r.URL.Query().Get("after"); q != "" {
		var err error
		if after, err = strconv.ParseInt(q, 10, 64); err != nil {
			jsonhttp.Error(w, thole.Errorf(thole.CodeInvalid, "invalid after %q: must be a time in milliseconds", q))
			return
		}
	}
	if s.cfg.Network != nil {
		for _, t := range traffic(s.cfg.Network.Totals()) {
			if t.Last.UnixMilli() >= after {
				out.Traffic = append(out.Traffic, t)
			}
		}
	}
	if s.cfg.Proxy != nil {
		out.Models = s.cfg.Proxy.Models()
	}
	jsonhttp.Write(w, http.StatusOK, out)
}

// narrow lets the thread's agents reach no more than its policy allows. Where nothing
// can hold it, it is refused: a policy that does not hold misleads.
func (s *Server) narrow(n *event.NetworkPolicy) error {
	if n == nil {
		n = &event.NetworkPolicy{Policy: string(egress.Open)}
	}
	if s.cfg.Proxy == nil {
		if n.Policy != string(egress.Open) && s.boxes == nil {
			return thole.Errorf(thole.CodeUnsupported, "the thread's network is to be %q, and agents run without walls here (executor.isolation)", n.Policy).
				WithHint("thole thread network THREAD --set default")
		}
		return nil
	}
	if err := s.cfg.Proxy.Narrow(egress.Policy(n.Policy), n.Allow); err != nil {
		return thole.Errorf(thole.CodeInvalid, "the thread's network: %w", err)
	}
	return nil
}

func (s *Server) setNetwork(_ context.Context, req wire.NetworkRequest) (struct{}, error) {
	return struct{}{}, s.narrow(req.Network)
}

// networkEvent is what a run that ends has to say about the network, false for nothing.
func (s *Server) networkEvent(run thole.TurnID, now time.Time) (event.Event, bool) {
	if s.cfg.Network == nil {
		return event.Event{}, false
	}
	list := traffic(s.cfg.Network.Take())
	return event.Event{ID: thole.EventID(string(run) + "/network"), Kind: event.NetworkUpdated, Turn: run, Time: now, Data: event.Data{Network: list}}, len(list) > 0
}

func traffic(totals []egress.Total) []event.Traffic {
	out := make([]event.Traffic, len(totals))
	for i, t := range totals {
		out[i] = event.Traffic{Host: t.Host, Port: t.Port, Address: t.Address, Verdict: string(t.Verdict), Why: t.Why,
			Connections: t.Connections, Sent: t.Sent, Received: t.Received, First: t.First, Last: t.Last}
	}
	return event.BoundTraffic(out)
}
