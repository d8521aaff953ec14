package depot

import (
	"context"
	"log/slog"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects"
)

// watch knows whether the object store can be used. It looks now and then, more
// often while the store is away, and says when that changes.
type watch struct {
	check func(context.Context) error
	log   *slog.Logger

	mu    sync.Mutex // guards what follows
	why   error      // nil: there, as far as is known
	since time.Time
	gone  chan struct{} // closed while it is away
	nudge chan struct{} // one token: it changed
}

const (
	checkTime  = 5 * time.Second  // bounds one look
	checkEvery = 30 * time.Second // while it is there, and at most while it is away
)

func newWatch(check func(context.Context) error, log *slog.Logger) *watch {
	return &watch{check: check, log: log, gone: make(chan struct{}), nudge: make(chan struct{}, 1)}
}

// away is why the store cannot be used, as far as is known; nil if it can.
func (d *watch) away() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.why
}

// look tries the store and returns why it cannot be used.
func (d *watch) look(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	err := d.check(within)
	if ctx.Err() != nil {
		return nil // nobody waits for the answer
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case err == nil && d.why != nil:
		d.log.Info("the object store is there again; what waited goes on", "after", time.Since(d.since).Round(time.Second))
		d.why, d.gone = nil, make(chan struct{})
		d.announce()
	case err != nil:
		if d.why == nil {
			d.log.Warn("the object store is away; syncs and restores wait", "err", err)
			d.since = time.Now()
			close(d.gone)
			d.announce()
		}
		hint := thole.HintOf(err)
		if hint == "" {
			hint = "thole doctor looks at it; what waits goes on by itself when it is there again"
		}
		d.why = thole.Errorf(thole.CodeUnavailable, "%w since %s: %w", objects.ErrAway, d.since.Format(time.DateTime), err).WithHint("%s", hint)
	}
	return d.why
}

// while returns a context that ends when the store goes away, so that nothing hangs
// on a store that is known to, until release.
func (d *watch) while(ctx context.Context) (held context.Context, release func()) {
	d.mu.Lock()
	gone := d.gone
	d.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-gone:
			cancel(objects.ErrAway)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil); <-done }
}

func (d *watch) announce() {
	select {
	case d.nudge <- struct{}{}:
	default:
	}
}

// run looks until ctx ends. back is called when the store was away and is there
// again.
func (d *watch) run(ctx context.Context, back func(context.Context)) {
	wait, before := time.Duration(0), false
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.nudge:
		case <-time.After(wait):
			_ = d.look(ctx)
		}
		away := d.away() != nil
		switch {
		case !away:
			if before {
				back(ctx)
			}
			wait = checkEvery
		case !before:
			wait = time.Second
		default:
			wait = min(2*wait, checkEvery)
		}
		before = away
	}
}
