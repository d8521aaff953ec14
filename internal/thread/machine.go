package thread

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/authz"
)

// Config makes a Machine. Store is needed; the rest has defaults.
type Config struct {
	Store    Store
	Now      func() time.Time
	NewID    func(time.Time) string
	Policies Policies
	// Access says to which threads an actor may do what. Default: their own.
	Access Access
	// Hidden receives an actor for whom a thread is not there, because it is not theirs to
	// see; nil: nobody is.
	Hidden func(ctx context.Context, actor thole.Actor, action authz.Action, owner thole.Owner, id thole.ThreadID)
	// Admit refuses new turns of a thread, for a budget that is spent. It runs before
	// anything is written; queued messages wait while it refuses. nil: nothing does.
	Admit func(ctx context.Context, owner thole.Owner, id thole.ThreadID) error
	// Unload is how long an idle thread without subscribers stays loaded (default
	// 30 minutes), UnloadEphemeral how long an ephemeral one exists (a minute).
	Unload          time.Duration
	UnloadEphemeral time.Duration
	// Checkpoint is how often text in flight is stored (250 ms), Sweep how often
	// overdue things are looked for (a second).
	Checkpoint time.Duration
	Sweep      time.Duration
	// KeepEvents is how long the log of a thread is kept that nothing happens to (90
	// days).
	KeepEvents time.Duration
	// Slow is called when a subscriber is ended because it fell behind. It must not
	// block.
	Slow func()
	// Spent is called with the time of each turn whose pipeline is done. It must not block.
	Spent func(thole.TurnTime)
	Log   *slog.Logger
}

// Machine is the Service over a Store. Several machines may share one store;
// the log's sequence orders them.
type Machine struct {
	store  Store
	cfg    Config
	now    func() time.Time
	shared bool

	mu       sync.Mutex // guards what follows; taken inside a live's lock, never around it
	threads  map[thole.ThreadID]*live
	watchers map[*watcher]struct{}
	guests   map[*subscriber]guest
	woken    map[thole.ThreadID]bool // reported by the store, not yet looked at; "" is all
	revision uint64                  // of the newest batch
	runner   Runner
	// compacted is when resting threads were looked for last.
	compacted time.Time
	closed    bool

	kick    chan struct{} // a checkpoint is due early
	wake    chan struct{} // woken has entries
	stop    context.CancelFunc
	unwatch func()
	wg      sync.WaitGroup // every goroutine of the machine
}

var _ Service = (*Machine)(nil)

// New makes a machine. Attach a runner and Start it before use.
func New(cfg Config) (*Machine, error) {
	if cfg.Store == nil {
		return nil, thole.Errorf(thole.CodeInternal, "thread machine: no store")
	}
	if err := cfg.Policies.Validate(); err != nil {
		return nil, err
	}
	def(&cfg.Unload, 30*time.Minute)
	def(&cfg.UnloadEphemeral, time.Minute)
	def(&cfg.Checkpoint, 250*time.Millisecond)
	def(&cfg.Sweep, time.Second)
	def(&cfg.KeepEvents, 90*24*time.Hour)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.NewID == nil {
		cfg.NewID = thole.NewID[string]
	}
	if cfg.Access == nil {
		cfg.Access = ownThreads
	}
	if cfg.Hidden == nil {
		cfg.Hidden = func(context.Context, thole.Actor, authz.Action, thole.Owner, thole.ThreadID) {}
	}
	if cfg.Slow == nil {
		cfg.Slow = func() {}
	}
	if cfg.Spent == nil {
		cfg.Spent = func(thole.TurnTime) {}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Machine{
		store: cfg.Store, cfg: cfg, shared: cfg.Store.Shared(),
		now:     func() time.Time { return cfg.Now().UTC().Truncate(time.Millisecond) },
		threads: map[thole.ThreadID]*live{}, watchers: map[*watcher]struct{}{}, guests: map[*subscriber]guest{}, woken: map[thole.ThreadID]bool{},
		kick: make(chan struct{}, 1), wake: make(chan struct{}, 1),
	}, nil
}

func def(d *time.Duration, v time.Duration) {
	if *d <= 0 {
		*d = v
	}
}

// Attach sets the runner, once, before Start.
func (m *Machine) Attach(r Runner) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.runner = r
}

func (m *Machine) runs() Runner {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.runner
}

// spawn runs f on a goroutine that Close waits for.
func (m *Machine) spawn(f func()) {
	m.wg.Add(1)
	go func() {
		defer m.wg.Done()
		f()
	}()
}

// hold returns the thread locked and read, if the actor may do that to it.
func (m *Machine) hold(ctx context.Context, actor thole.Actor, id thole.ThreadID, action authz.Action) (*live, error) {
	if !actor.Valid() {
		return nil, errNoActor()
	}
	l, err := m.lockLive(ctx, id)
	if err != nil {
		return nil, err
	}
	if l.st == nil {
		err = m.read(ctx, l)
	} else if l.unsure {
		_, err = m.refresh(ctx, l)
	}
	if err == nil {
		err = m.may(ctx, actor, action, l.st.Row.Thread.Owner, id)
	}
	if err != nil {
		if l.st == nil {
			m.forget(l)
		}
		l.release()
		return nil, err
	}
	l.used = m.now()
	return l, nil
}

// lockLive returns the thread's entry locked; it may not be read yet.
func (m *Machine) lockLive(ctx context.Context, id thole.ThreadID) (*live, error) {
	for {
		m.mu.Lock()
		if m.closed {
			m.mu.Unlock()
			return nil, thole.Errorf(thole.CodeUnavailable, "threads are shutting down")
		}
		l := m.threads[id]
		if l == nil {
			l = newLive(id)
			m.threads[id] = l
		}
		m.mu.Unlock()
		if err := l.acquire(ctx); err != nil {
			return nil, err
		}
		if !l.dead {
			return l, nil
		}
		l.release()
	}
}

// forget takes a locked entry out of the map.
func (m *Machine) forget(l *live) {
	l.dead = true
	l.attached.Store(false)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.threads[l.id] == l {
		delete(m.threads, l.id)
	}
}

func (m *Machine) live(id thole.ThreadID) *live {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.threads[id]
}

func (m *Machine) loaded(id thole.ThreadID) bool {
	l := m.live(id)
	return l != nil && l.attached.Load()
}

func (m *Machine) writer(l *live, actor thole.Actor) *writer {
	s := l.st.Clone()
	return &writer{
		s: s, c: &Commit{Expected: s.Seq()}, now: m.now(), newID: m.cfg.NewID, loaded: l.attached.Load(),
		policy: m.cfg.Policies, actor: actor, flights: l.plan(),
	}
}

// admit asks once whether a thread may have a new turn.
func (m *Machine) admit(ctx context.Context, t fold.Thread) func() error {
	if m.cfg.Admit == nil {
		return nil
	}
	return sync.OnceValue(func() error { return m.cfg.Admit(ctx, t.Owner, t.ID) })
}

// maxTries bounds how often a decision is made again because others wrote. A
// thread with that many writers at once is answered busy.
const maxTries = 64

// change decides and commits one step of a thread, notifies the subscribers, and
// then the runner. decide may run several times.
func (m *Machine) change(ctx context.Context, actor thole.Actor, id thole.ThreadID, step string, decide func(l *live, w *writer) error) error {
	l, err := m.hold(ctx, actor, id, actions[step])
	if err != nil {
		return err
	}
	w, err := m.commit(ctx, l, actor, step, decide)
	l.release()
	if err != nil {
		return err
	}
	m.deliver(w)
	return nil
}

func (m *Machine) deliver(w *writer) {
	m.alarm(w)
	if r := m.runs(); r != nil {
		for _, call := range w.calls {
			call(r)
		}
	}
}

// commit does the work of change on a thread that the caller holds.
func (m *Machine) commit(ctx context.Context, l *live, actor thole.Actor, step string, decide func(l *live, w *writer) error) (*writer, error) {
	fresh := !m.shared
	for range maxTries {
		w := m.writer(l, actor)
		w.admit = m.admit(ctx, w.s.Row.Thread)
		err := decide(l, w)
		if err == nil {
			err = w.err
		}
		if !fresh && (err != nil || len(w.c.Events) == 0) {
			// A refusal, or nothing to do, is only right about the newest state.
			fresh = true
			if moved, rerr := m.refresh(ctx, l); rerr != nil {
				return nil, rerr
			} else if moved {
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		if len(w.c.Events) > 0 {
			w.c.Row = w.s.Row
			m.clock(ctx, w)
			err = m.store.Commit(ctx, step, w.c)
		}
		switch {
		case err == nil:
			m.accept(l, w)
			return w, nil
		case errors.Is(err, ErrStale):
			if _, err := m.refresh(ctx, l); err != nil {
				return nil, err
			}
		case errors.Is(err, ErrRepeat), errors.Is(err, ErrFenced), errors.Is(err, ErrExists), errors.Is(err, ErrSaving), errors.Is(err, ErrNone):
			return nil, err
		default:
			if !m.happened(l, w.c.Events[0].ID) {
				return nil, failed("commit "+step, err)
			}
			return w, nil
		}
	}
	return nil, thole.Errorf(thole.CodeBusy, "thread %s has too many writers at once", l.id)
}

// accept makes a committed writer the thread's state.
func (m *Machine) accept(l *live, w *writer) {
	before := l.st
	l.st = w.s
	l.unsaved = w.flights.land()
	if l.unsaved > kickBytes {
		select {
		case m.kick <- struct{}{}:
		default:
		}
	}
	m.announce(l, before, w.outs)
	for turn, t := range w.c.Spent {
		if w.finished(turn) {
			m.cfg.Spent(t)
		}
	}
}

// happened looks up whether a commit of unknown outcome took place. Until that
// is known the thread takes no other step.
func (m *Machine) happened(l *live, first thole.EventID) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	l.unsure = true
	if _, err := m.refresh(ctx, l); err != nil {
		return false
	}
	known, err := m.store.Known(ctx, l.id, []thole.EventID{first})
	return err == nil && known[first]
}

// published is the revision of the newest batch of any thread.
func (m *Machine) published() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.revision
}

// announce publishes to the thread's subscribers and to those who watch all.
func (m *Machine) announce(l *live, before *fold.State, outs []event.Event) {
	if len(outs) == 0 {
		return
	}
	revision := m.notifyWatchers(l.st.Row.Thread.Owner, outs)
	l.publish(&Batch{Events: outs, Before: before, Revision: revision})
}

func errNoActor() error {
	return thole.Errorf(thole.CodeUnauthorized, "no actor")
}

// failed gives a store's error a class; contexts and our own errors stay.
func failed(verb string, err error) error {
	var known *thole.Error
	if errors.As(err, &known) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return thole.Errorf(thole.CodeInternal, "%s: %w", verb, err)
}
