// Package driver runs deliveries: it takes candidates in fair order, asks their
// channel, goes through the machine's barrier, sends, and follows what was
// accepted. It holds no durable truth: killed at any point, its successor adopts
// what the machine recorded and proves or holds it.
//
// It decides nothing about batches; the machine does. It sends only what it itself
// took through the barrier, once.
package driver

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/channel/message"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/measure"
)

const (
	// leaseTime is how long another process must leave our attempts alone.
	leaseTime = 30 * time.Second
	// maxSleep bounds how long a missed wake-up can delay anything.
	maxSleep = time.Minute
	// minSleep keeps a deadline that nothing can act on yet from spinning.
	minSleep = 50 * time.Millisecond
	// settleTime bounds recording an answer when the driver is stopped.
	settleTime  = 10 * time.Second
	followPause = time.Second
	// adoptEvery is how often attempts of dead holders are looked for.
	adoptEvery      = 10 * time.Second
	defaultParallel = 8
	// quickTime is how long work on a candidate takes a place from others.
	quickTime = 250 * time.Millisecond
)

// Config makes a Driver.
type Config struct {
	Machine  *delivery.Machine
	Channels map[thole.Target]channel.Channel
	// Heartbeats is how Desktop threads are reached, which no Channel does; nil: not at all.
	Heartbeats Heartbeats
	// Holder names this process in leases.
	Holder string
	// Sole: the home's lock proves that no other process follows attempts.
	Sole     bool
	Parallel int // candidates worked on at once
	// Compose writes what the receiving turn reads, the marker included. Default: the
	// standard message.
	Compose func(delivery.Parcel) string
	NewID   func(now time.Time) string
	Meter   measure.Meter
	Log     *slog.Logger
}

// Heartbeats are what a bridge arms. The driver only prepares what is next, and holds what
// goes to nobody by itself.
type Heartbeats interface {
	Prepare(ctx context.Context) error
	Foretell(ctx context.Context, q channel.Query) (channel.Readiness, error)
}

// Driver runs one process's deliveries.
type Driver struct {
	cfg  Config
	wake chan struct{}

	mu     sync.Mutex
	lanes  map[string]bool // being probed or sent; false: its receiver is slow, and it takes no place
	quick  int             // lanes that take a place, at most Parallel
	follow map[thole.AttemptID]bool
	run    context.Context // of Run; nil while it does not run
	// calm: of this target nothing that was ready is left waiting, so what becomes
	// ready now is next in the fair order.
	calm map[thole.Target]bool
	wg   sync.WaitGroup

	orphans        atomic.Bool // an observation ended and its attempt did not
	adopted, swept time.Time   // of Run's goroutine
}

// New makes a driver; it works while Run runs.
func New(c Config) *Driver {
	if c.NewID == nil {
		c.NewID = func(now time.Time) string { return thole.NewID[string](now) }
	}
	if c.Compose == nil {
		c.Compose = message.Standard().Compose
	}
	if c.Parallel <= 0 {
		c.Parallel = defaultParallel
	}
	if c.Meter == nil {
		c.Meter = measure.None
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Driver{
		cfg: c, wake: make(chan struct{}, 1), lanes: map[string]bool{}, follow: map[thole.AttemptID]bool{}, calm: map[thole.Target]bool{},
	}
}

// Wake signals that something may be due, and what became ready if that
// is known: it then starts at once, without being looked up. It never blocks.
func (d *Driver) Wake(ready *delivery.Candidate) {
	if ready != nil && d.offer(*ready) {
		return // its end wakes the driver
	}
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Serves reports whether a target has a channel here.
func (d *Driver) Serves(t thole.Target) bool { return d.cfg.Channels[t] != nil }

// Busy reports whether a delivery is being worked on.
func (d *Driver) Busy() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.lanes)+len(d.follow) > 0
}

// Run works until ctx ends and returns when all its goroutines are gone. What was
// sent and not answered keeps its barrier for the successor.
func (d *Driver) Run(ctx context.Context) error {
	d.mu.Lock()
	d.run = ctx
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		d.run = nil
		d.mu.Unlock()
		d.wg.Wait()
	}()
	for {
		next, err := d.pass(ctx)
		if err != nil && ctx.Err() == nil {
			d.cfg.Log.Error("delivery pass failed", "err", err)
			next = time.Second
		}
		select {
		case <-ctx.Done():
			return nil
		case <-d.wake:
		case <-time.After(next):
		}
	}
}

// pass does everything due now and says how long it can rest. What is ready goes
// first: between a completion and its channel lie two commits and no sweep.
func (d *Driver) pass(ctx context.Context) (time.Duration, error) {
	if err := d.dispatchAll(ctx); err != nil {
		return 0, err
	}
	if d.orphans.Swap(false) || time.Since(d.adopted) >= adoptEvery {
		d.adopted = time.Now()
		if err := d.adopt(ctx); err != nil {
			return 0, err
		}
	}
	p, err := d.cfg.Machine.Pending(ctx)
	if err != nil {
		return 0, err
	}
	rest := maxSleep
	if !p.Next.IsZero() {
		rest = min(rest, time.Until(p.Next))
	}
	if rest > 0 && time.Since(d.swept) < maxSleep {
		return rest, nil
	}
	d.swept = time.Now()
	moved, err := d.cfg.Machine.Sweep(ctx)
	if err != nil {
		return 0, err
	}
	if moved > 0 {
		d.Wake(nil)
	}
	return max(rest, minSleep), nil
}

func (d *Driver) dispatchAll(ctx context.Context) error {
	for target, ch := range d.cfg.Channels {
		if err := d.dispatch(ctx, target, ch); err != nil {
			return err
		}
	}
	if d.cfg.Heartbeats != nil {
		if err := d.cfg.Heartbeats.Prepare(ctx); err != nil {
			return err
		}
	}
	return d.holdUnserved(ctx)
}

// dispatch gives the first candidates of a fair order to free workers.
func (d *Driver) dispatch(ctx context.Context, target thole.Target, ch channel.Channel) error {
	d.mu.Lock()
	inFlight, quick := len(d.lanes), d.quick
	d.mu.Unlock()
	if quick >= d.cfg.Parallel {
		return nil
	}
	// Lanes being probed still hold their tickets: look past them.
	limit := d.cfg.Parallel + inFlight
	candidates, err := d.cfg.Machine.Candidates(ctx, target, limit)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calm[target] = len(candidates) < limit
	for _, c := range candidates {
		if !d.startLocked(ch, c) {
			return nil
		}
	}
	return nil
}

// offer starts what became ready, unless something else is before it.
func (d *Driver) offer(c delivery.Candidate) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	ch := d.cfg.Channels[c.Batch.Target]
	return ch != nil && d.run != nil && d.calm[c.Batch.Target] && c.Batch.Mode != thole.ModeHeartbeat && d.startLocked(ch, c)
}

// startLocked gives a candidate to a free worker. Without one its target is calm
// no more.
func (d *Driver) startLocked(ch channel.Channel, c delivery.Candidate) bool {
	ctx, lane := d.run, c.Lane.ID
	if _, under := d.lanes[lane]; under || c.Batch.Mode == thole.ModeHeartbeat {
		return true
	}
	if d.quick >= d.cfg.Parallel {
		d.calm[c.Batch.Target] = false
		return false
	}
	d.lanes[lane] = true
	d.quick++
	d.wg.Go(func() {
		// A receiver that does not answer delays its own thread and no other.
		slow := time.AfterFunc(quickTime, func() { d.yield(lane); d.Wake(nil) })
		defer func() { slow.Stop(); d.release(lane); d.Wake(nil) }()
		if err := d.try(ctx, ch, c); err != nil && ctx.Err() == nil {
			d.cfg.Log.Error("delivery failed", "batch", c.Batch.ID, "err", err)
		}
	})
	return true
}

func (d *Driver) release(lane string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lanes[lane] {
		d.quick--
	}
	delete(d.lanes, lane)
}

// yield gives the place of a lane to another one. Its own work goes on.
func (d *Driver) yield(lane string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lanes[lane] {
		d.lanes[lane] = false
		d.quick--
	}
}
