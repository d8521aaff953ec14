package driver

import (
	"context"
	"fmt"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/delivery"
)

// Forecast says whether a result would be delivered without a human. The reasons
// say why not, or what an automatic delivery would still wait for.
type Forecast struct {
	Automatic bool
	Reasons   []Why
}

// Why is a reason and a sentence about it.
type Why struct {
	Reason channel.Reason
	Text   string
}

// Known is CodeNotFound for a thread that its channel proves not to exist.
func (d *Driver) Known(ctx context.Context, a delivery.Address, t thole.Target) error {
	if k, ok := d.cfg.Channels[t].(channel.Knower); ok {
		return k.Knows(ctx, channel.Query{User: a.User, Endpoint: a.Endpoint, Thread: a.Thread})
	}
	return nil
}

// Forecast reports to a submitter whether a result would reach its thread without a
// human. It looks at the thread's queue and at what is known of its receiver, asks no
// server and changes nothing; permissions may be different by the time the result is there.
// brings is the server that the result would be delivered by where no session is; nil: none.
func (d *Driver) Forecast(ctx context.Context, a delivery.Address, t thole.Target, p thole.DeliveryPolicy, brings *thole.PluginTarget) Forecast {
	f := Forecast{Automatic: true}
	add := func(automatic bool, why channel.Reason, text string) {
		f.Automatic = f.Automatic && automatic
		f.Reasons = append(f.Reasons, Why{why, text})
	}
	r, err := d.foretell(ctx, t, channel.Query{User: a.User, Endpoint: a.Endpoint, Thread: a.Thread, Policy: p, Brings: brings})
	switch {
	case err != nil:
		add(false, channel.ReasonUnknown, err.Error())
	case r.Verdict != channel.Now:
		add(r.Verdict != channel.Never, r.Why, r.Reason)
	}
	head, err := d.cfg.Machine.Head(ctx, a.LaneID())
	switch {
	case err != nil:
		add(false, channel.ReasonUnknown, err.Error())
	case head == nil:
	case head.Replay == thole.ReplayManual:
		add(false, channel.ReasonHeldBefore, fmt.Sprintf("batch %s of this thread waits for a human (%s); see: thole batch inspect --batch-id %s", head.ID, head.HeldFor, head.ID))
	default:
		add(true, channel.ReasonWaiting, "results of this thread are before it")
	}
	return f
}

// foretell is what is known of a thread without asking its server.
func (d *Driver) foretell(ctx context.Context, t thole.Target, q channel.Query) (channel.Readiness, error) {
	switch ch := d.cfg.Channels[t].(type) {
	case nil:
		if t == thole.TargetDesktop && d.cfg.Heartbeats != nil {
			return d.cfg.Heartbeats.Foretell(ctx, q)
		}
		return noChannel(t), nil
	case channel.Foreteller:
		return ch.Foretell(ctx, q)
	default:
		return ch.Probe(ctx, q)
	}
}

func noChannel(t thole.Target) channel.Readiness {
	return channel.Readiness{Verdict: channel.Never, Why: channel.ReasonNoChannel, Reason: "no channel reaches target " + string(t) + " from this daemon yet"}
}

// holdUnserved holds what is ready for a target that no channel reaches: it would only
// wait for its window to end.
func (d *Driver) holdUnserved(ctx context.Context) error {
	for _, t := range thole.Targets() {
		if d.cfg.Channels[t] != nil || t == thole.TargetDesktop && d.cfg.Heartbeats != nil {
			continue
		}
		ready, err := d.cfg.Machine.Candidates(ctx, t, defaultParallel)
		if err != nil {
			return err
		}
		for _, c := range ready {
			r := noChannel(t)
			if err := d.cfg.Machine.Hold(ctx, thole.SystemActor, c.Lane.ID, c.Batch.ID, r.Why.Hold(), map[string]string{"reason": string(r.Why), "detail": r.Reason}); err != nil {
				return err
			}
		}
	}
	return nil
}
