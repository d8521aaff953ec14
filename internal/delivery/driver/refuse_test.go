package driver_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/channel/channeltest"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/delivery/driver"
	"github.com/tholehq/thole/internal/store/storetest"
)

// unstartable is a host whose server cannot be started once the barrier is durable.
type unstartable struct{ *channeltest.Host }

func (unstartable) Propose(context.Context, channel.Proposal) (channel.Answer, error) {
	return channel.Answer{Acceptance: thole.Rejected, Evidence: "nothing was sent: no such program", Hold: channel.ReasonNoServer}, nil
}

// A rejection that another try would find again is held at once, and not tried again.
func TestLastingRejectionIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, db: storetest.SQLite(t), host: channeltest.New(nil)}
		var d *driver.Driver
		w.m = delivery.New(delivery.Config{Store: w.db.Delivery(), Limits: limits(), Wake: func(c *delivery.Candidate) { d.Wake(c) }})
		d = driver.New(driver.Config{Machine: w.m, Channels: map[thole.Target]channel.Channel{thole.TargetThole: unstartable{w.host}}, Holder: "p", Sole: true})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = d.Run(ctx) }()
		w.job("a")
		later(10 * time.Minute)
		b := w.only()
		if b.HeldFor != thole.HoldNoServer || b.AttemptCount != 0 || b.Generation != 1 {
			t.Errorf("%+v", b)
		}
		cancel()
		<-done
	})
}
