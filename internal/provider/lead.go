package provider

import (
	"context"
	"sync"
	"time"
)

// Lead lets other goroutines reach the one that runs a turn, which owns all of
// the turn's state.
type Lead struct {
	// Calls are functions to run on the turn's goroutine.
	Calls chan func()
	// Halt is closed when somebody asked to stop.
	Halt chan struct{}

	over chan struct{}
	once sync.Once
}

// NewLead makes the lead of one turn.
func NewLead() *Lead {
	return &Lead{Calls: make(chan func()), Halt: make(chan struct{}), over: make(chan struct{})}
}

// Do runs fn on the turn's goroutine and returns its error; ErrNoTurn when the
// turn is over first.
func (l *Lead) Do(ctx context.Context, fn func() error) error {
	res := make(chan error, 1)
	select {
	case l.Calls <- func() { res <- fn() }:
		return <-res
	case <-l.over:
		return ErrNoTurn
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Stop asks the turn to stop, from any goroutine and any number of times.
func (l *Lead) Stop() { l.once.Do(func() { close(l.Halt) }) }

// End says that the turn takes no more calls. The turn calls it once.
func (l *Lead) End() { close(l.over) }

// Alarm is a timer that can be off; the zero value is.
type Alarm struct {
	t *time.Timer
	C <-chan time.Time // nil while it is off
}

// Set makes it ring after d, and not at any earlier time it was set to.
func (a *Alarm) Set(d time.Duration) {
	if a.t == nil {
		a.t = time.NewTimer(d)
	} else {
		a.t.Reset(d)
	}
	a.C = a.t.C
}

// Off silences it.
func (a *Alarm) Off() {
	if a.t != nil {
		a.t.Stop()
	}
	a.C = nil
}
