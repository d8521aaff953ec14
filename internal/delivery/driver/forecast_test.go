package driver_test

import (
	"context"
	"errors"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/delivery/driver"
)

// said is a channel that answers every probe alike.
type said struct {
	channel.Channel
	ready channel.Readiness
	err   error
}

func (s said) Probe(context.Context, channel.Query) (channel.Readiness, error) { return s.ready, s.err }

// A submitter hears what keeps a result, also when no human is needed for it.
func TestForecast(t *testing.T) {
	for name, c := range map[string]struct {
		ch        channel.Channel
		automatic bool
		reason    string
	}{
		"idle":       {ch: said{ready: channel.Readiness{Verdict: channel.Now, Reason: "idle"}}, automatic: true},
		"no session": {ch: said{ready: channel.Readiness{Verdict: channel.NotNow, Reason: "no session"}}, automatic: true, reason: "no session"},
		"forbidden":  {ch: said{ready: channel.Readiness{Verdict: channel.Never, Reason: "forbidden"}}, reason: "forbidden"},
		"broken":     {ch: said{err: errors.New("broken")}, reason: "broken"},
	} {
		d := driver.New(driver.Config{Channels: map[thole.Target]channel.Channel{thole.TargetCLI: c.ch}, Holder: "p"})
		f := d.Forecast(t.Context(), delivery.Address{}, thole.TargetCLI, thole.DeliveryPolicy{})
		if got := append(f.Reasons, "")[0]; f.Automatic != c.automatic || got != c.reason {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
