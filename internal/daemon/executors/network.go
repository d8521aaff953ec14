package executors

import (
	"context"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/egress"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/platform/view"
	"github.com/tholehq/thole/internal/thread"
)

// MethodNetwork lists what a thread's turns exchanged with the network, and sets first what they may reach.
const MethodNetwork = "thole/thread/network"

// NetworkParams names a thread. Set is its new policy, "default" for what the configuration allows.
type NetworkParams struct {
	Thread thole.ThreadID       `json:"thread_id"`
	Set    *event.NetworkPolicy `json:"set,omitempty"`
}

// NetworkResult has one entry for each turn, the oldest first, and one for what has not been recorded yet.
type NetworkResult struct {
	view.Reach
	Runs []view.RunNetwork `json:"runs"`
}

func (t *Service) network(ctx context.Context, actor thole.Actor, p NetworkParams) (NetworkResult, error) {
	out := NetworkResult{Runs: []view.RunNetwork{}}
	if p.Set != nil {
		n, err := t.CheckNetwork(p.Set)
		if err != nil {
			return out, err
		}
		change := func(s event.Settings) event.Settings { s.Network = n; return s }
		if _, err := t.cfg.Threads.Update(ctx, actor, p.Thread, thread.Update{Change: change}); err != nil {
			return out, err
		}
		if err := t.ApplyNetwork(ctx, p.Thread); err != nil {
			return out, err
		}
	}
	th, err := t.cfg.Threads.Get(ctx, actor, p.Thread)
	if err != nil {
		return out, err
	}
	recorded, err := t.cfg.Threads.Network(ctx, actor, p.Thread)
	if err != nil {
		return out, err
	}
	for _, n := range recorded {
		out.Runs = append(out.Runs, view.OfNetwork(n.Turn, n.Traffic, false))
	}
	live := t.LiveNetwork(ctx, p.Thread)
	if len(live.Traffic) > 0 {
		out.Runs = append(out.Runs, view.OfNetwork(th.Open, live.Traffic, true))
	}
	out.Reach = view.OfReach(string(t.cfg.Egress.Policy), th.Settings.Network, live.Models)
	return out, nil
}

// Ceiling is the policy of the configuration.
func (t *Service) Ceiling() string { return string(t.cfg.Egress.Policy) }

// CheckNetwork says what is wrong with a thread's policy: it may only narrow what the
// configuration allows, also for the owner of the home. What it returns is to be recorded, nil for
// the configuration's own.
func (t *Service) CheckNetwork(n *event.NetworkPolicy) (*event.NetworkPolicy, error) {
	if n.Policy == "default" && len(n.Allow) == 0 {
		return nil, nil
	}
	if err := t.cfg.Egress.CheckNarrow(egress.Policy(n.Policy), n.Allow); err != nil {
		return nil, thole.Errorf(thole.CodeInvalid, "the thread's network: %w", err).
			WithHint("a thread reaches at most what egress.policy, egress.names and egress.private of the configuration allow; \"default\" is just that")
	}
	return n, nil
}

// ApplyNetwork sends a thread's running executor what the thread may reach now. Without
// one there is nothing to do: each run brings it.
func (t *Service) ApplyNetwork(ctx context.Context, id thole.ThreadID) error {
	t.applying.Lock() // the last one to be recorded is the last one to be sent
	defer t.applying.Unlock()
	th, err := t.cfg.Threads.Get(ctx, thole.SystemActor, id)
	if err != nil {
		return err
	}
	at, err := t.running(ctx, id)
	if thole.CodeOf(err) == thole.CodeConflict {
		return nil
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		defer at.Close()
		err = at.SetNetwork(ctx, th.Settings.Network)
	}
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "it is recorded and holds from the next turn on, but the running executor was not reached: %w", err).
			WithHint("repeat it, or end what runs: thole thread close %s", id)
	}
	return nil
}

// LiveNetwork asks a thread's executor what it counted since its last run ended. Without an executor, or
// with one that does not answer soon, it is nothing: the record comes with the run's end.
func (t *Service) LiveNetwork(ctx context.Context, id thole.ThreadID) wire.Network {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	at, err := t.running(ctx, id)
	if err != nil {
		return wire.Network{}
	}
	defer at.Close()
	n, err := at.Network(ctx, time.Time{})
	if err != nil {
		t.cfg.Log.Debug("ask executor for its network", "executor", at.id, "err", err)
	}
	return n
}
