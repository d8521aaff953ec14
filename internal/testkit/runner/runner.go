// Package runner takes turns of the scripted agent from their start to their end
// inside a test's process: one worker per thread. Tests of what stands before the
// pipeline use it to have threads that answer; the product runs agents in
// executors only. It knows no queue, no workspace and no lease.
//
// A Runner holds no durable truth: everything it knows it reads from the thread,
// so it may be woken any number of times.
package runner

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/testprovider"
	"github.com/tholehq/thole/internal/thread"
)

// stopGrace is how long an interrupted agent may take before it is killed, idle
// how long a session is kept for the next turn.
const (
	stopGrace = 10 * time.Second
	idle      = 5 * time.Minute
)

// Runner implements thread.Runner and thread.Recoverer.
type Runner struct {
	threads  thread.Service
	home     string
	instance thole.ExecutorID
	agent    provider.Provider
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc

	mu      sync.Mutex // guards what follows
	workers map[thole.ThreadID]*worker
	closed  bool
	wg      sync.WaitGroup
}

var (
	_ thread.Runner    = (*Runner)(nil)
	_ thread.Recoverer = (*Runner)(nil)
)

// New makes a runner whose agents work below home. instance marks its turns: it
// is the same after a restart, and differs between processes that share a store.
// Close ends it.
func New(threads thread.Service, home string, instance thole.ExecutorID) *Runner {
	r := &Runner{threads: threads, home: home, instance: instance, agent: testprovider.New(), workers: map[thole.ThreadID]*worker{}}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// place makes the directories of a thread's session. All agents share their data,
// so that a fork finds what it continues.
func (r *Runner) place(id thole.ThreadID) (provider.SessionConfig, error) {
	cfg := provider.SessionConfig{Dir: filepath.Join(r.home, "threads", string(id), "work"), Data: filepath.Join(r.home, "threads", "data")}
	for _, d := range []string{cfg.Dir, cfg.Data} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return cfg, err
		}
	}
	return cfg, nil
}

// Wake implements thread.Runner.
func (r *Runner) Wake(id thole.ThreadID, _ thole.TurnID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	if w := r.workers[id]; w != nil {
		w.again()
		return
	}
	w := newWorker(r, id)
	r.workers[id] = w
	r.wg.Add(1)
	go func() {
		defer r.wg.Done()
		w.loop()
	}()
}

// worker returns the thread's worker if it has that turn.
func (r *Runner) worker(ref thread.TurnRef) *worker {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.workers[ref.Thread]
}

// retire removes a worker that found nothing more to do, unless it was woken
// meanwhile.
func (r *Runner) retire(w *worker) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed && len(w.wake) > 0 {
		return false
	}
	delete(r.workers, w.thread)
	return true
}

// Steer implements thread.Runner.
func (r *Runner) Steer(ctx context.Context, ref thread.TurnRef, input []thole.Input, clientID string) error {
	if w := r.worker(ref); w != nil {
		return w.steer(ctx, ref.Turn, input, clientID)
	}
	return thread.ErrNoTurn
}

// Answer implements thread.Runner.
func (r *Runner) Answer(ctx context.Context, ref thread.TurnRef, ask thole.AskID, a event.Answer) error {
	w := r.worker(ref)
	if w == nil {
		return thread.ErrNoTurn
	}
	return w.answer(ctx, ref.Turn, ask, a)
}

// Interrupt implements thread.Runner.
func (r *Runner) Interrupt(ctx context.Context, ref thread.TurnRef) error {
	if w := r.worker(ref); w != nil {
		return w.interrupt(ctx, ref.Turn)
	}
	return thread.ErrNoTurn
}

// Recover implements thread.Recoverer. A turn whose agent had not begun is taken
// up again; one that ran has lost its process and is interrupted. Turns of
// other instances are theirs.
func (r *Runner) Recover(_ context.Context, _ fold.Thread, t fold.Turn) thread.Fate {
	switch {
	case t.Executor != "" && t.Executor != r.instance:
		return thread.FateLeave
	case t.Phase == thole.PhaseRunning || t.Phase == thole.PhaseWaitingHuman:
		return thread.FateInterrupt
	}
	return thread.FateResume
}

// Close interrupts what runs, waits for the agents to end until ctx does, then
// kills them. The turns end as interrupted in their threads.
func (r *Runner) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	workers := make([]*worker, 0, len(r.workers))
	for _, w := range r.workers {
		workers = append(workers, w)
	}
	r.mu.Unlock()
	for _, w := range workers {
		w.close(ctx)
	}
	done := make(chan struct{})
	go func() { r.wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		r.cancel()
		<-done
	}
	r.cancel()
	return nil
}
