// Package dispatch drives turns: it claims them from the queue, gives each an
// executor with its workspace, runs it there, and brings back what the agent
// says. It holds no durable truth. Everything it needs after a crash is in the
// queue, in the executor rows, in the thread's log and in executord's, so another
// dispatcher goes on where one stopped, without losing or repeating an event.
//
// It also maintains executors (sync, stop, remove) and sweeps for what is
// overdue. Maintenance is queued after the thread's turns, so it never meets
// one.
package dispatch

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/measure"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/thread"
	"golang.org/x/time/rate"
)

// Workspaces prepares and saves what an executor holds. Calls for one target
// never overlap. A failed call may be repeated.
type Workspaces interface {
	// Restore lays the workspace's layers into a fresh executor, Link places the
	// CLIs' data directories, Validate checks what the manifest requires. No agent
	// code runs before all three succeeded.
	Restore(ctx context.Context, t ExecutorWorkspace) error
	Link(ctx context.Context, t ExecutorWorkspace) error
	Validate(ctx context.Context, t ExecutorWorkspace) error
	// Sync stores the tree and returns its snapshot. The old snapshot or the new
	// one is there afterwards, never a mix.
	Sync(ctx context.Context, t ExecutorWorkspace, reason string) (snapshot string, err error)
	// Verify compares the executor's tree with a snapshot.
	Verify(ctx context.Context, t ExecutorWorkspace, snapshot string) error
	// Away is why the store cannot be reached, as far as is known. What needs the
	// store fails with objects.ErrAway then, and waits.
	Away() error
}

// ExecutorWorkspace is one executor's workspace. Client is nil while it is stopped; Dir and
// Data are its directories on this machine where the driver has them: see executor.Files.
type ExecutorWorkspace struct {
	Thread   fold.Thread
	Turn     thole.TurnID
	Executor thole.ExecutorID
	Client   *executorclient.Client
	Dir      string
	Data     string
	// Token fences the snapshot pointer: the queue's lease.
	Token string
}

// Config makes a Dispatcher.
type Config struct {
	Owner      string // this process, or its server, for people who look at the queue
	Queue      queue.Store
	Threads    thread.Service
	Rows       executor.Rows
	Driver     executor.Driver
	Workspaces Workspaces
	// Changes keeps the states of files; nil: nobody does.
	Changes     Changes
	Credentials provider.Credentials
	// Budgets say what turns may use and what that costs; nil: there are none.
	Budgets Budgets
	// Info says what a provider can do here; it may wait for that provider.
	Info func(ctx context.Context, name string) provider.Info

	// Alone: the home's lock proves that no other dispatcher is alive, so what one
	// left behind is taken over at once and not when its leases run out.
	Alone bool
	// Engine is where Driver's executors are in a store that other servers have used, ""
	// where none can. With it Owner is the server's id, and the home's lock proves that no
	// earlier process of that id is alive.
	Engine string

	Scope        executor.Scope
	Limits       queue.Limits
	Room         executor.Limits // of each executor
	MaxLive      int             // executors that run at a time; 0 is no limit
	DiskEvery    time.Duration   // between looks at an executor's disk; default 5 s
	SyncTimeout  time.Duration   // default 30 min
	Lease        time.Duration   // default 30 s
	TurnTimeout  time.Duration   // default 6 h
	ParkAfter    time.Duration   // how long a question waits before its turn is parked; default 10 min
	IdleStop     time.Duration
	RemoveAfter  time.Duration
	StaleAfter   time.Duration // default 5 min
	SweepEvery   time.Duration
	StartsPerSec float64
	Meter        measure.Meter
	Log          *slog.Logger
	Now          func() time.Time
}

// Dispatcher claims and works. It is a service.Part and a thread.Runner.
type Dispatcher struct {
	cfg    Config
	log    *slog.Logger
	starts *rate.Limiter
	nudge  chan struct{} // one token: something may be claimable

	mu      sync.Mutex // guards what follows
	workers map[thole.TurnID]*worker
	warm    map[thole.ThreadID]place // where each thread's last turn ran
	waits   map[thole.TurnID]int     // how often each turn found the object store away
	stop    context.CancelFunc       // ends claiming
	stopped bool                     // nothing is begun any more
	looked  time.Time                // when the queue last answered
	wg      sync.WaitGroup

	roomMu  sync.Mutex // guards what follows
	booting map[thole.ExecutorID]bool
	leaving map[thole.ExecutorID]time.Time // when they were asked to stop, to make room
	waiting []thole.TurnID                 // turns for which there was no room, the longest waiting first
	changes int                            // how often something ended that may have made room
}

// New makes a dispatcher.
func New(cfg Config) *Dispatcher {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&cfg.Lease, 30*time.Second)
	def(&cfg.TurnTimeout, 6*time.Hour)
	def(&cfg.ParkAfter, 10*time.Minute)
	def(&cfg.IdleStop, 20*time.Minute)
	def(&cfg.RemoveAfter, 24*time.Hour)
	def(&cfg.StaleAfter, 5*time.Minute)
	def(&cfg.SweepEvery, time.Minute)
	def(&cfg.DiskEvery, 5*time.Second)
	def(&cfg.SyncTimeout, 30*time.Minute)
	if cfg.Scope == "" {
		cfg.Scope = executor.ScopeThread
	}
	if cfg.StartsPerSec == 0 {
		cfg.StartsPerSec = 4
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Budgets == nil {
		cfg.Budgets = noBudgets{}
	}
	if cfg.Meter == nil {
		cfg.Meter = measure.None
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Dispatcher{
		cfg: cfg, log: cfg.Log, nudge: make(chan struct{}, 1), workers: map[thole.TurnID]*worker{}, warm: map[thole.ThreadID]place{}, waits: map[thole.TurnID]int{}, booting: map[thole.ExecutorID]bool{}, leaving: map[thole.ExecutorID]time.Time{},
		starts: rate.NewLimiter(rate.Limit(cfg.StartsPerSec), max(1, int(2*cfg.StartsPerSec))),
	}
}

// Start implements service.Part. It reconciles rows with what exists before the
// first claim.
func (d *Dispatcher) Start(ctx context.Context) error {
	if d.cfg.Alone {
		if _, err := d.cfg.Queue.Reap(ctx, true, math.MaxInt32); err != nil {
			d.log.Warn("take over leases at start", "err", err) // they run out
		}
	} else if d.cfg.Engine != "" {
		if _, err := d.cfg.Queue.Abandon(ctx, d.cfg.Owner); err != nil {
			d.log.Warn("take over own leases at start", "err", err) // they run out
		}
	}
	if err := d.reconcile(ctx); err != nil {
		d.log.Warn("reconcile at start", "err", err) // a later sweep tries again
	}
	intake, stop := context.WithCancel(ctx)
	d.mu.Lock()
	d.stop, d.stopped = stop, false
	d.mu.Unlock()
	unsubscribe := d.cfg.Queue.Subscribe(d.wake)
	unwatch := d.cfg.Budgets.Watch(d.budgetMoved)
	leave := d.cfg.Queue.Standby(func() queue.Claim { return d.wanted(false) }, func(leases []queue.Lease) { d.take(intake, leases) })
	d.wg.Go(func() {
		defer unsubscribe()
		defer unwatch()
		defer leave()
		d.claimLoop(intake)
	})
	d.wg.Go(func() { d.sweepLoop(intake) })
	d.wg.Go(func() { d.idleDiskLoop(intake) })
	return nil
}

// Stop implements service.Part: it ends claiming and lets go of what it works
// on. Runs go on in their executors; the dispatcher that claims their turns next follows
// them.
func (d *Dispatcher) Stop(context.Context) error {
	d.mu.Lock()
	stop := d.stop
	d.stopped = true
	d.mu.Unlock()
	if stop != nil {
		stop()
	}
	d.wg.Wait()
	d.cool(nil)
	return nil
}

// Busy reports whether this process works on anything.
func (d *Dispatcher) Busy() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.workers) > 0
}

func (d *Dispatcher) wake() {
	select {
	case d.nudge <- struct{}{}:
	default:
	}
}

// pollEvery is how soon work is found whose wake-up got lost, and how often
// leases of dead workers are looked for.
const pollEvery = time.Second

// maintenanceDelay is how long maintenance waits after turns that came with it: nobody waits
// for it, and a turn that starts needs the processor.
const maintenanceDelay = 25 * time.Millisecond

func (d *Dispatcher) claimLoop(intake context.Context) {
	ticker, maintenance := time.NewTicker(pollEvery), time.NewTimer(0)
	defer ticker.Stop()
	defer maintenance.Stop()
	asked := true // maintenance is going to be looked for
	d.claim(intake, false)
	for {
		select {
		case <-intake.Done():
			return
		case <-maintenance.C:
			asked = false
			d.claim(intake, true)
			continue
		case <-d.nudge:
		case <-ticker.C:
			if _, err := d.cfg.Queue.Reap(intake, false, 100); err != nil && intake.Err() == nil {
				d.log.Warn("reap leases", "err", err)
			}
		}
		d.claim(intake, false)
		if !asked {
			asked = true
			maintenance.Reset(maintenanceDelay)
		}
	}
}

// batch is how many turns one claim asks for.
const batch = 16

func (d *Dispatcher) wanted(maintenance bool) queue.Claim {
	return queue.Claim{Owner: d.cfg.Owner, Maintenance: maintenance, Token: thole.NewID[string](d.cfg.Now()), Max: batch, Lease: d.cfg.Lease, Limits: d.cfg.Limits, Engine: d.cfg.Engine}
}

func (d *Dispatcher) claim(ctx context.Context, maintenance bool) {
	leases, err := d.cfg.Queue.Claim(ctx, d.wanted(maintenance))
	if err != nil {
		if ctx.Err() == nil {
			d.log.Warn("claim turns", "err", err)
		}
		return
	}
	d.mu.Lock()
	d.looked = d.cfg.Now()
	d.mu.Unlock()
	d.take(ctx, leases)
}

// lookLimit is how long the queue may not have answered before the dispatcher counts as
// stuck. It is asked every second, by a process that may have to wait for the disk.
const lookLimit = 15 * time.Second

// Alive is nil while the dispatcher looks for turns and its queue answers.
func (d *Dispatcher) Alive() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch since := d.cfg.Now().Sub(d.looked); {
	case d.stop == nil || d.stopped:
		return thole.Errorf(thole.CodeUnavailable, "no turns are begun")
	case since > lookLimit:
		return thole.Errorf(thole.CodeUnavailable, "the queue of turns has not answered for %s", since.Round(time.Second))
	}
	return nil
}

// take begins what was leased. With a turn's start it is called while the thread is
// still held, so it is quick.
func (d *Dispatcher) take(ctx context.Context, leases []queue.Lease) {
	for _, l := range leases {
		d.begin(ctx, l)
	}
	if len(leases) == batch {
		d.wake() // there may be more
	}
}
