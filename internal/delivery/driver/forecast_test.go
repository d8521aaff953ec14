package driver_test

import (
	"context"
	"errors"
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

// said is a channel that answers every probe alike.
type said struct {
	channel.Channel
	ready channel.Readiness
	err   error
}

func (s said) Probe(context.Context, channel.Query) (channel.Readiness, error) { return s.ready, s.err }

// stored is a channel whose server must not be asked for a forecast.
type stored struct {
	said
	t *testing.T
}

func (s stored) Probe(context.Context, channel.Query) (channel.Readiness, error) {
	s.t.Error("a forecast asked the server")
	return channel.Readiness{}, nil
}

func (s stored) Foretell(context.Context, channel.Query) (channel.Readiness, error) {
	return s.ready, s.err
}

// A submitter hears what keeps a result, also when no human is needed for it, and never
// waits for a server.
func TestForecast(t *testing.T) {
	m := delivery.New(delivery.Config{Store: storetest.SQLite(t).Delivery(), Limits: limits()})
	for name, c := range map[string]struct {
		ch        channel.Channel
		automatic bool
		reason    channel.Reason
	}{
		"idle":       {ch: said{ready: channel.Readiness{Verdict: channel.Now, Reason: "idle"}}, automatic: true},
		"no session": {ch: said{ready: channel.Readiness{Verdict: channel.NotNow, Why: channel.ReasonNoSession}}, automatic: true, reason: channel.ReasonNoSession},
		"forbidden":  {ch: said{ready: channel.Readiness{Verdict: channel.Never, Why: channel.ReasonPolicy}}, reason: channel.ReasonPolicy},
		"broken":     {ch: said{err: errors.New("broken")}, reason: channel.ReasonUnknown},
		"no channel": {reason: channel.ReasonNoChannel},
		"stored":     {ch: stored{t: t, said: said{ready: channel.Readiness{Verdict: channel.NotNow, Why: channel.ReasonServer}}}, automatic: true, reason: channel.ReasonServer},
	} {
		by := map[thole.Target]channel.Channel{}
		if c.ch != nil {
			by[thole.TargetCLI] = c.ch
		}
		d := driver.New(driver.Config{Machine: m, Channels: by, Holder: "p"})
		f := d.Forecast(t.Context(), delivery.Address{User: thole.LocalUser, Thread: "t"}, thole.TargetCLI, thole.DeliveryPolicy{}, nil)
		if got := append(f.Reasons, driver.Why{})[0].Reason; f.Automatic != c.automatic || got != c.reason {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// What stands before a result is part of its forecast.
func TestForecastLooksAtTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, channeltest.New(func(thole.BatchID, bool, int) channeltest.Fate { return channeltest.Fate{Forbid: true} }))
		defer func() { w.stop() }()
		forecast := func() driver.Forecast {
			return w.d.Forecast(t.Context(), delivery.Address{User: thole.LocalUser, Thread: "t"}, thole.TargetThole, thole.DeliveryPolicy{}, nil)
		}
		w.job("t")
		if f := forecast(); !f.Automatic || len(f.Reasons) != 1 || f.Reasons[0].Reason != channel.ReasonWaiting {
			t.Errorf("behind a result: %+v", f)
		}
		later(time.Minute)
		if f := forecast(); f.Automatic || len(f.Reasons) != 1 || f.Reasons[0].Reason != channel.ReasonHeldBefore {
			t.Errorf("behind a held result: %+v", f)
		}
	})
}

// What no channel reaches is held at once, with a reason, and not tried for days.
func TestUnservedTargetIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, channeltest.New(nil))
		defer func() { w.stop() }()
		w.jobFor("t", thole.TargetDesktop)
		later(time.Minute)
		if b := w.only(); b.HeldFor != thole.HoldNoChannel {
			t.Errorf("%+v", b)
		}
		w.job("t")
		later(time.Minute)
		for _, b := range w.batches() {
			if b.Batch.Target == thole.TargetThole && b.Batch.CloseReason != thole.CloseDelivered {
				t.Errorf("a result that can be delivered waits for one that cannot: %+v", b.Batch)
			}
		}
	})
}

// silent is a channel to threads of which some never answer a probe.
type silent struct {
	*channeltest.Host
	mute map[thole.ThreadID]bool
}

func (s silent) Probe(ctx context.Context, q channel.Query) (channel.Readiness, error) {
	if s.mute[q.Thread] {
		<-ctx.Done()
		return channel.Readiness{}, ctx.Err()
	}
	return s.Host.Probe(ctx, q)
}

// TestSilentReceiver: receivers that do not answer, more of them than there are
// workers, delay no other thread.
func TestSilentReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := channeltest.New(nil)
		s := silent{host, map[thole.ThreadID]bool{}}
		m := delivery.New(delivery.Config{Store: storetest.SQLite(t).Delivery(), Limits: limits()})
		d := driver.New(driver.Config{Machine: m, Channels: map[thole.Target]channel.Channel{thole.TargetThole: s}, Holder: "p", Sole: true})
		w := &world{t: t, m: m, d: d}
		for _, thread := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
			s.mute[thole.ThreadID(thread)] = true
			w.job(thread)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = d.Run(ctx) }()
		defer func() { stop(); <-done }()
		later(10 * time.Second) // every worker is with a silent one
		w.job("quick")
		d.Wake(nil)
		later(10 * time.Second)
		for _, b := range w.batches() {
			if b.Lane.Thread == "quick" && b.Batch.CloseReason != thole.CloseDelivered {
				t.Errorf("a thread that answers waits for those that do not: %+v", b.Batch)
			}
		}
	})
}
