// Package base is what the drivers of all agent CLIs share: a process that is
// started, taken up again and dropped, one turn at a time on it, and the ways into
// that turn. A driver adds how its CLI is started and what it says.
package base

import (
	"cmp"
	"context"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
)

// CLI is one live process of an agent and the way to it.
type CLI interface {
	comparable
	Pid() int
	Dead() bool
	// Close ends the process and everything it left behind, at once when grace is 0.
	Close(grace time.Duration)
}

// Driver is a CLI's own part of a session.
type Driver[C CLI] interface {
	// Start brings a process that is ready for the conversation as it is now.
	Start(ctx context.Context) (C, error)
	// Prepare makes the CLI's own part of a turn, with a process that lives.
	Prepare(ctx context.Context, t *Turn) (Running, error)
}

// Options shape the sessions of one driver.
type Options struct {
	Name string // the provider's
	// Ready bounds a start when the caller's context does not.
	Ready time.Duration
	// StopGrace is how long an interrupted turn may take to end before the CLI is
	// killed, CloseGrace how long an idle one gets to end by itself, and CutGrace one
	// in the middle of a turn.
	StopGrace, CloseGrace, CutGrace time.Duration
	// Stall is how long a model call may stay silent before the turn fails.
	Stall time.Duration
	// Login is the CLI's login file, where it wants it in Data; Linked, that it finds
	// it there through a link.
	Login  string
	Linked bool
}

// Session is one conversation. Its process may come and go. It implements
// provider.Session.
type Session[C CLI] struct {
	Options
	Binary string
	Cfg    provider.SessionConfig

	driver Driver[C]
	busy   chan struct{} // holds one token while a turn runs

	mu     sync.Mutex // guards what follows
	cli    C
	native string
	run    Running
	closed bool
}

// Init makes the session of a driver. Nothing is started yet.
func (s *Session[C]) Init(o Options, binary string, cfg provider.SessionConfig, d Driver[C]) {
	s.Options, s.Binary, s.Cfg, s.driver, s.busy = o, binary, cfg, d, make(chan struct{}, 1)
}

func (s *Session[C]) errClosed() error {
	return thole.Errorf(thole.CodeGone, "%s: the session is closed", s.Name)
}

// NativeID is the CLI's session id, "" while it is not known.
func (s *Session[C]) NativeID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.native
}

// SetNative notes the CLI's session id.
func (s *Session[C]) SetNative(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.native = id
}

// PID is the process id of the CLI, 0 when none runs.
func (s *Session[C]) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cli == *new(C) {
		return 0
	}
	return s.cli.Pid()
}

// Live reports whether a process runs.
func (s *Session[C]) Live() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cli != *new(C) && !s.cli.Dead()
}

// Present returns the process that runs, if one does.
func (s *Session[C]) Present() (C, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cli == *new(C) || s.cli.Dead() {
		return *new(C), thole.Errorf(thole.CodeConflict, "%s does not run", s.Name)
	}
	return s.cli, nil
}

// Alive returns the process, a new one when it died. Only Open and the holder of
// the turn call it.
func (s *Session[C]) Alive(ctx context.Context) (c C, err error) {
	s.mu.Lock()
	cli, closed := s.cli, s.closed
	s.mu.Unlock()
	if closed {
		return c, s.errClosed()
	}
	if cli != *new(C) && !cli.Dead() {
		return cli, nil
	}
	s.Drop(0)
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.Ready)
		defer cancel()
	}
	if err = KeepOut(s.Cfg, s.Login, s.Linked); err == nil {
		c, err = s.driver.Start(ctx)
	}
	if err != nil {
		return *new(C), err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		c.Close(0)
		return *new(C), s.errClosed()
	}
	s.cli = c
	return c, nil
}

// Drop ends the present process.
func (s *Session[C]) Drop(grace time.Duration) {
	s.mu.Lock()
	c := s.cli
	s.cli = *new(C)
	s.mu.Unlock()
	if c != *new(C) {
		c.Close(grace)
	}
}

// Close ends the CLI and everything it left behind.
func (s *Session[C]) Close() error {
	s.mu.Lock()
	s.closed = true
	run := s.run
	s.mu.Unlock()
	grace := s.CloseGrace
	if run != nil {
		run.Base().Em.Interrupt()
		grace = s.CutGrace
	}
	s.Drop(grace)
	return KeepOut(s.Cfg, s.Login, s.Linked)
}

// Run takes one turn to its end. What a turn does not say is the session's.
func (s *Session[C]) Run(ctx context.Context, turn provider.Turn, emit func(event.Event)) error {
	select {
	case s.busy <- struct{}{}:
		defer func() { <-s.busy }()
	default:
		return thole.Errorf(thole.CodeBusy, "%s: a turn is running", s.Name)
	}
	turn.Model, turn.Effort, turn.Profile = cmp.Or(turn.Model, s.Cfg.Model), cmp.Or(turn.Effort, s.Cfg.Effort), cmp.Or(turn.Profile, s.Cfg.Profile)
	t := newTurn(&s.Options, turn, emit)
	run, err := s.driver.Prepare(ctx, t)
	if err != nil {
		return err
	}
	t.run = run
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return s.errClosed()
	}
	s.run = run
	s.mu.Unlock()
	t.Lock.Act(func() {
		if err := run.Begin(ctx); err != nil {
			t.Refuse(err)
		}
	})
	ended := t.Lock.Wait(ctx, run.Gone(), s.StopGrace, t.halt, func() {
		t.crashed(run.Lost())
		s.Drop(0)
	})
	if ctx.Err() != nil {
		s.Drop(0)
	}
	s.mu.Lock()
	s.run = nil
	s.mu.Unlock()
	if t.refused != nil {
		return t.refused
	}
	run.Finish(ended)
	t.Em.End(ended)
	return nil
}

// Running is the turn to act on, nil when none runs.
func (s *Session[C]) Running() Running {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run
}

// Steer adds input to the running turn.
func (s *Session[C]) Steer(ctx context.Context, input []thole.Input, clientID string) error {
	run := s.Running()
	if run == nil {
		return provider.ErrNoTurn
	}
	return run.Steer(ctx, input, clientID)
}

// Answer settles a pending ask.
func (s *Session[C]) Answer(ctx context.Context, ask thole.AskID, answer event.Answer) error {
	return s.act(ctx, func(run Running) error {
		if run.Base().Em.Parked() != "" {
			return provider.ErrSettled // the next run has the answer
		}
		return run.Answer(ctx, ask, answer)
	})
}

// Defer parks a pending ask on disk.
func (s *Session[C]) Defer(ctx context.Context, ask thole.AskID) error {
	return s.act(ctx, func(run Running) error { return run.Defer(ctx, ask) })
}

func (s *Session[C]) act(ctx context.Context, do func(Running) error) error {
	run := s.Running()
	if run == nil {
		return provider.ErrNoTurn
	}
	return run.Base().Lock.Do(ctx, func() error { return do(run) })
}

// Stop interrupts the running turn and does not wait for its end.
func (s *Session[C]) Stop(context.Context) error {
	run := s.Running()
	if run == nil {
		return provider.ErrNoTurn
	}
	run.Base().Em.Interrupt()
	run.Base().Lock.Stop()
	return nil
}
