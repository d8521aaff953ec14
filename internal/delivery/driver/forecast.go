package driver

import (
	"context"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/delivery"
)

// Forecast says whether a result would be delivered without a human. The reasons
// say why not, or what an automatic delivery would still wait for.
type Forecast struct {
	Automatic bool
	Reasons   []string
}

// Known is CodeNotFound for a thread that its channel proves not to exist.
func (d *Driver) Known(ctx context.Context, a delivery.Address, t thole.Target) error {
	if k, ok := d.cfg.Channels[t].(channel.Knower); ok {
		return k.Knows(ctx, channel.Query{User: a.User, Endpoint: a.Endpoint, Thread: a.Thread})
	}
	return nil
}

// Forecast reports to a submitter whether a result would reach its thread without a
// human. It asks the channel and changes nothing; permissions
// may be different by the time the result is there.
func (d *Driver) Forecast(ctx context.Context, a delivery.Address, t thole.Target, p thole.DeliveryPolicy) Forecast {
	ch := d.cfg.Channels[t]
	if ch == nil {
		f := Forecast{Reasons: []string{"no channel reaches target " + string(t) + " from this daemon yet"}}
		if o := p.Objections(); len(o) > 0 {
			f.Reasons = append(f.Reasons, "the policy is not strictly safe: "+strings.Join(o, ", "))
		}
		return f
	}
	r, err := ch.Probe(ctx, channel.Query{User: a.User, Endpoint: a.Endpoint, Thread: a.Thread, Policy: p})
	switch {
	case err != nil:
		return Forecast{Reasons: []string{err.Error()}}
	case r.Verdict == channel.Never:
		return Forecast{Reasons: []string{r.Reason}}
	case r.Verdict == channel.NotNow && r.Reason != "":
		return Forecast{Automatic: true, Reasons: []string{r.Reason}}
	}
	return Forecast{Automatic: true}
}
