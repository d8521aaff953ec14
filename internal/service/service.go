// Package service starts the parts of a program in order and stops them in
// reverse. Two things can end: accepting new work, and the work itself. A part
// learns of the first through Stop and of the second through its context.
package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Part is something that runs between Start and Stop.
type Part interface {
	// Start returns when the part is ready. The part lives until Stop; ctx is its
	// kill switch and outlives Start.
	Start(ctx context.Context) error
	// Stop ends intake, finishes what is under way and returns when the part is
	// gone. When ctx ends, the kill switch has been thrown and Stop returns soon.
	Stop(ctx context.Context) error
}

// ErrStopped reports a Start after Stop.
var ErrStopped = errors.New("service: group is stopped")

// Group is a Part made of parts.
type Group struct {
	mu      sync.Mutex // guards all below; not held while parts start or stop
	started []named    // in order
	stopped bool
	kill    context.CancelCauseFunc
	ctx     context.Context
	once    sync.Once
	gone    chan struct{}
	err     error
}

type named struct {
	name string
	part Part
}

// New makes an empty group. Ending ctx throws the kill switch of every part.
func New(ctx context.Context) *Group {
	g := &Group{gone: make(chan struct{})}
	g.ctx, g.kill = context.WithCancelCause(ctx)
	return g
}

// Start starts one more part. If it fails, the group is as before; the caller
// usually stops it.
func (g *Group) Start(name string, p Part) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return ErrStopped
	}
	if err := p.Start(g.ctx); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	g.started = append(g.started, named{name, p})
	return nil
}

// Stop stops the parts, the last started first, each only when those that may
// use it are gone. When ctx ends the kill switch is thrown, and Stop still waits
// for every part. It may be repeated and then waits for the first call.
func (g *Group) Stop(ctx context.Context) error {
	unhook := context.AfterFunc(ctx, func() { g.kill(context.Cause(ctx)) })
	defer unhook()
	g.once.Do(func() {
		g.mu.Lock()
		g.stopped = true
		parts := g.started
		g.mu.Unlock()
		var errs []error
		for i := len(parts) - 1; i >= 0; i-- {
			if err := parts[i].part.Stop(ctx); err != nil {
				errs = append(errs, fmt.Errorf("stop %s: %w", parts[i].name, err))
			}
		}
		g.kill(ErrStopped)
		g.err = errors.Join(errs...)
		close(g.gone)
	})
	<-g.gone
	return g.err
}
