package heartbeat

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/delivery"
)

// Threads are the Desktop threads of a home.
type Threads struct {
	Machine *delivery.Machine
	// Fingerprint is of the installation as it is now.
	Fingerprint func() string
}

// Prepare readies what a bridge may arm next.
func (t Threads) Prepare(ctx context.Context) error {
	return t.Machine.PrepareHeartbeats(ctx, t.Fingerprint())
}

// Foretell says what is known of a thread's heartbeat.
func (t Threads) Foretell(ctx context.Context, q channel.Query) (channel.Readiness, error) {
	in, err := t.Machine.Installation(ctx)
	if err != nil {
		return channel.Readiness{}, err
	}
	all, err := t.Machine.Bindings(ctx, q.User)
	if err != nil {
		return channel.Readiness{}, err
	}
	var bound *delivery.Binding
	for i := range all {
		if all[i].Endpoint == q.Endpoint && all[i].Thread == q.Thread {
			bound = &all[i]
		}
	}
	if why := in.Unfit(bound, t.Fingerprint()); why != "" {
		return channel.Readiness{Verdict: channel.Never, Why: channel.ReasonNoChannel, Reason: why + "; thole desktop binding list"}, nil
	}
	if o := q.Policy.Objections(); len(o) > 0 && !q.Released {
		return channel.Readiness{Verdict: channel.Never, Why: channel.ReasonPolicy, Reason: "strict-safe: " + o[0]}, nil
	}
	if !bound.Quiet() {
		return channel.Readiness{Verdict: channel.NotNow, Why: channel.ReasonBusy, Reason: "its heartbeat is not paused yet"}, nil
	}
	return channel.Readiness{Verdict: channel.Now, Mode: thole.ModeHeartbeat}, nil
}
