package executors

import (
	"context"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/platform/view"
)

// MethodNetwork lists what a thread's turns exchanged with the network.
const MethodNetwork = "thole/thread/network"

// NetworkParams names a thread.
type NetworkParams struct {
	Thread thole.ThreadID `json:"thread_id"`
}

// NetworkResult has one entry for each turn, the oldest first, and one for what has not been recorded yet.
type NetworkResult struct {
	Runs []view.RunNetwork `json:"runs"`
}

func (t *Service) network(ctx context.Context, actor thole.Actor, p NetworkParams) (NetworkResult, error) {
	out := NetworkResult{Runs: []view.RunNetwork{}}
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
	if live := t.LiveNetwork(ctx, p.Thread); len(live) > 0 {
		out.Runs = append(out.Runs, view.OfNetwork(th.Open, live, true))
	}
	return out, nil
}

// LiveNetwork asks a thread's executor what it counted since its last run ended. Without an executor, or
// with one that does not answer soon, it is nothing: the record comes with the run's end.
func (t *Service) LiveNetwork(ctx context.Context, id thole.ThreadID) []event.Traffic {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	info, err := t.running(ctx, id)
	if err != nil {
		return nil
	}
	client := executorclient.Dial(info.Endpoint, info.Token)
	defer client.Close()
	list, err := client.Network(ctx, time.Time{})
	if err != nil {
		t.cfg.Log.Debug("ask executor for its network", "executor", info.ID, "err", err)
	}
	return list
}
