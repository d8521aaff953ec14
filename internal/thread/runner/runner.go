// Package runner takes turns from their start to their end inside this process:
// one worker per thread opens a session on the thread's provider, runs the turn
// and applies what the provider reports. It has no containers, no workspace sync
// and no leases; the dispatcher has, and takes its place where they are wanted.
//
// A Runner holds no durable truth: everything it knows it reads from the thread,
// so it may be woken any number of times.
package runner

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/thread"
)

// Config makes a Runner.
type Config struct {
	Threads   thread.Service
	Providers []provider.Provider
	// Default names the provider of threads that say none.
	Default string
	// Place says where a thread's session lives: Dir, Data, Auth and Env of the
	// session's configuration. It creates what it names.
	Place func(ctx context.Context, t thread.Thread) (provider.SessionConfig, error)
	// Credentials may be nil: the provider's own are used.
	Credentials provider.Credentials
	// Instance marks the turns this runner has. It must outlive a restart of the
	// process, and differ between processes that share a store.
	Instance thole.ExecutorID
	// OpenTimeout bounds the start of a session (a minute), StopGrace how long an
	// interrupted agent may take before it is killed (ten seconds), Idle how long a
	// session is kept for the next turn (five minutes).
	OpenTimeout time.Duration
	StopGrace   time.Duration
	Idle        time.Duration
	Log         *slog.Logger
}

// Runner implements thread.Runner and thread.Recoverer.
type Runner struct {
	cfg       Config
	providers map[string]provider.Provider
	ctx       context.Context // ends with Close
	cancel    context.CancelFunc

	mu      sync.Mutex // guards what follows
	workers map[thole.ThreadID]*worker
	closed  bool
	wg      sync.WaitGroup
}

var (
	_ thread.Runner    = (*Runner)(nil)
	_ thread.Recoverer = (*Runner)(nil)
)

// New makes a runner. Close ends it.
func New(cfg Config) (*Runner, error) {
	if cfg.Threads == nil || cfg.Place == nil || len(cfg.Providers) == 0 || cfg.Instance == "" {
		return nil, thole.Errorf(thole.CodeInternal, "runner: threads, place, providers and instance are needed")
	}
	r := &Runner{cfg: cfg, providers: map[string]provider.Provider{}, workers: map[thole.ThreadID]*worker{}}
	for _, p := range cfg.Providers {
		r.providers[p.Name()] = p
	}
	if r.cfg.Default == "" {
		r.cfg.Default = cfg.Providers[0].Name()
	}
	for d, v := range map[*time.Duration]time.Duration{
		&r.cfg.OpenTimeout: time.Minute, &r.cfg.StopGrace: 10 * time.Second, &r.cfg.Idle: 5 * time.Minute,
	} {
		if *d <= 0 {
			*d = v
		}
	}
	if r.cfg.Log == nil {
		r.cfg.Log = slog.New(slog.DiscardHandler)
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r, nil
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
	return provider.ErrNoTurn
}

// Answer implements thread.Runner.
func (r *Runner) Answer(ctx context.Context, ref thread.TurnRef, ask thole.AskID, a thole.Answer) error {
	w := r.worker(ref)
	if w == nil {
		return provider.ErrNoTurn
	}
	err := w.answer(ctx, ref.Turn, ask, a)
	if err != nil && !errors.Is(err, provider.ErrSettled) {
		r.cfg.Log.Warn("answer did not reach the agent", "thread", ref.Thread, "turn", ref.Turn, "err", err)
	}
	return err
}

// Interrupt implements thread.Runner.
func (r *Runner) Interrupt(ctx context.Context, ref thread.TurnRef) error {
	if w := r.worker(ref); w != nil {
		return w.interrupt(ctx, ref.Turn)
	}
	return provider.ErrNoTurn
}

// Recover implements thread.Recoverer. A turn whose agent had not begun is taken
// up again; one that ran has lost its process and is interrupted. Turns of
// other instances are theirs.
func (r *Runner) Recover(_ context.Context, _ thread.Thread, t thread.Turn) thread.Fate {
	switch {
	case t.Executor != "" && t.Executor != r.cfg.Instance:
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
