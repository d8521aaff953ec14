package driver

import (
	"context"
	"errors"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/backoff"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/delivery"
)

// followUp observes one proposal until its end is recorded, it is taken from us,
// or the driver stops.
func (d *Driver) followUp(ctx context.Context, ch channel.Channel, f delivery.Fence, w channel.Watch) {
	defer d.Wake(nil)
	defer d.stopFollowing(f.Attempt)
	defer d.orphans.Store(true)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	renewed := d.renew(ctx, cancel, f)
	defer func() { cancel(nil); <-renewed }()

	over := false
	err := ch.Observe(ctx, w, func(s channel.Sighting) error {
		err := d.record(ctx, f, &w, s)
		over = err == nil && (s.Acceptance == thole.Rejected || s.Turn == w.Turn && s.Event.Terminal())
		return err
	})
	rec, done := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer done()
	m := d.cfg.Machine
	switch {
	case over, ctx.Err() != nil:
		return
	case !errors.Is(err, channel.ErrLost):
		// If the attempt is still open it will be adopted again; a channel that
		// keeps ending early must not turn that into a busy loop.
		if err != nil && !errors.Is(err, errStale) {
			d.cfg.Log.Warn("an observation ended and is taken up again", "attempt", f.Attempt, "err", err)
		}
		_ = backoff.Sleep(ctx, followPause)
		return
	case w.Turn == "":
		_, err = m.Unknown(rec, thole.SystemActor, f, err.Error())
	default:
		_, err = m.Lost(rec, thole.SystemActor, f, err.Error())
	}
	if err != nil {
		d.cfg.Log.Error("cannot record the end of an observation", "attempt", f.Attempt, "err", err)
	}
}

// record writes one provable fact. Once a turn is known, facts of another turn or
// stream are the machine's to refuse.
func (d *Driver) record(ctx context.Context, f delivery.Fence, w *channel.Watch, s channel.Sighting) error {
	m := d.cfg.Machine
	var stale bool
	var err error
	switch {
	case s.Acceptance == thole.Accepted && s.Turn != "":
		stale, err = m.Accept(ctx, thole.SystemActor, f, delivery.Acceptance{Turn: s.Turn, Attachment: s.Attachment, Epoch: s.Epoch, Evidence: s.Evidence})
		if err == nil && !stale {
			w.Turn = s.Turn
		}
	case s.Acceptance == thole.Rejected:
		stale, err = m.Reject(ctx, thole.SystemActor, f, s.Evidence, 0)
	case s.Event != "" && s.Turn != w.Turn:
		return nil // another turn of the thread: nothing to us
	case s.Event != "":
		stale, err = m.Observe(ctx, thole.SystemActor, f, delivery.Sighting{
			Turn: s.Turn, Attachment: s.Attachment, Epoch: s.Epoch, Event: s.Event, Evidence: s.Evidence,
		})
	}
	if err == nil && stale {
		err = errStale
	}
	return err
}

// renew keeps our lease on the attempt; losing it, or the attempt's end by
// someone else (an operator, a deadline), stops the observation.
func (d *Driver) renew(ctx context.Context, cancel context.CancelCauseFunc, f delivery.Fence) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(leaseTime / 3):
			}
			took, err := d.cfg.Machine.Adopt(ctx, thole.SystemActor, f, d.cfg.Holder, leaseTime, false)
			if err == nil && !took {
				cancel(errStale)
				return
			}
		}
	}()
	return done
}
