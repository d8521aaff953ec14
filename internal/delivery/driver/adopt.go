package driver

import (
	"context"
	"errors"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/channel"
)

// adopt follows every open attempt that nobody alive follows: our own after a
// restart, another process's after its lease.
func (d *Driver) adopt(ctx context.Context) error {
	live, err := d.cfg.Machine.Live(ctx)
	if err != nil {
		return err
	}
	for _, p := range live {
		ch := d.cfg.Channels[p.Batch.Target]
		if ch == nil || !d.startFollowing(p.Attempt.ID) {
			continue
		}
		// The holder of our own name is this process: it is following already,
		// unless startFollowing just said that it is not.
		took, err := d.cfg.Machine.Adopt(ctx, thole.SystemActor, p.Attempt.Fence(), d.cfg.Holder, leaseTime, d.cfg.Sole)
		if err != nil || !took {
			d.stopFollowing(p.Attempt.ID)
			if err != nil {
				return err
			}
			continue
		}
		w := channel.Watch{Proposal: proposal(p), Turn: p.Attempt.Observation.Turn}
		if p.Attempt.State == thole.AttemptAcceptPending {
			w.Turn = ""
		}
		d.wg.Go(func() { d.followUp(ctx, ch, p.Attempt.Fence(), w) })
	}
	return nil
}

func (d *Driver) startFollowing(id thole.AttemptID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.follow[id] {
		return false
	}
	d.follow[id] = true
	return true
}

func (d *Driver) stopFollowing(id thole.AttemptID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.follow, id)
}

var errStale = errors.New("the attempt has moved on")
