package delivery_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/store"
)

// clock is a settable time; stores read it through clocked.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.UnixMilli(1_700_000_000_000).UTC()} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// clocked gives transactions of any engine the test's time.
type clocked struct {
	delivery.Store
	c *clock
}

type clockedTx struct {
	delivery.Tx
	now time.Time
}

func (tx clockedTx) Now() time.Time { return tx.now }

func (s clocked) Update(ctx context.Context, step string, fn func(delivery.Tx) error) error {
	return s.Store.Update(ctx, step, func(tx delivery.Tx) error { return fn(clockedTx{tx, s.c.Now()}) })
}

func (s clocked) View(ctx context.Context, fn func(delivery.Tx) error) error {
	return s.Store.View(ctx, func(tx delivery.Tx) error { return fn(clockedTx{tx, s.c.Now()}) })
}

// testLimits are small numbers that keep every deadline apart from the others.
func testLimits() delivery.Limits {
	return delivery.Limits{
		MaxJobs: 3, MaxBytes: 100, WaitWindow: 2 * time.Second, MinInterval: 5 * time.Second,
		Window: 10 * time.Minute, ManualWindow: 4 * time.Minute, MaxAttempts: 3,
		AcceptTimeout: 30 * time.Second, ArmTimeout: 50 * time.Second, ArmLease: 20 * time.Second,
		PauseDelay: 11 * time.Second, PauseTime: 13 * time.Second, PauseRetry: 17 * time.Second, RecoveryKeep: 72 * time.Hour,
		Observation: 3 * time.Minute, Cooldown: 70 * time.Second, RetryMin: time.Second, RetryMax: 16 * time.Second,
	}
}

// tester is what a rig needs of a test, real or generated.
type tester interface {
	Helper()
	Fatal(args ...any)
	Errorf(format string, args ...any)
}

// rig is a machine over a real store with a settable clock and countable ids.
type rig struct {
	*delivery.Machine
	t     tester
	db    *store.DB
	c     *clock
	store *dying
	n     int
	seen  thole.AutomationStatus // what the files of all heartbeats show
}

func newRig(t tester, db *store.DB, l delivery.Limits) *rig {
	r := &rig{t: t, db: db, c: newClock(), seen: thole.AutomationActive}
	r.store = &dying{Store: clocked{db.Delivery(), r.c}, in: -1}
	r.Machine = delivery.New(delivery.Config{Limits: l})
	r.restart()
	return r
}

// restart is a new process over what the last one stored.
func (r *rig) restart() {
	r.Machine = delivery.New(delivery.Config{Store: r.store, Limits: r.Limits(), NewID: func(time.Time) string { return r.id() },
		Automation: func(delivery.Binding) thole.AutomationStatus { return r.seen },
	})
}

func (r *rig) id() string {
	r.n++
	return fmt.Sprintf("00000000-0000-7000-8000-%012d", r.n)
}

var (
	actor = thole.LocalActor
	ctx   = context.Background()
)

func address(thread string) delivery.Address {
	return delivery.Address{User: thole.LocalUser, Endpoint: "home", Thread: thole.ThreadID(thread)}
}

func (r *rig) submit(thread string, target thole.Target, edit ...func(*delivery.Submit)) thole.JobID {
	r.t.Helper()
	j, _, err := r.Submit(context.Background(), actor, r.submission(thread, target, edit...))
	r.ok(err)
	return j.ID
}

func (r *rig) submission(thread string, target thole.Target, edit ...func(*delivery.Submit)) delivery.Submit {
	p := delivery.Submit{ID: thole.JobID(r.id()), Owner: thole.DefaultOwner, Address: address(thread), Target: target, TaskKind: "test", Summary: "work"}
	for _, e := range edit {
		e(&p)
	}
	return p
}

func (r *rig) finish(id thole.JobID, state thole.JobState, inline string) delivery.Job {
	r.t.Helper()
	j, err := r.Finish(context.Background(), actor, delivery.Finish{Job: id, State: state, Request: r.id(), Inline: inline})
	r.ok(err)
	return j
}

// ready submits and finishes a job and lets its batch stop collecting.
func (r *rig) ready(thread string, target thole.Target) thole.JobID {
	r.t.Helper()
	if target == thole.TargetDesktop {
		r.bind(thread)
	}
	id := r.submit(thread, target)
	r.finish(id, thole.JobReady, "result")
	r.c.add(testLimits().WaitWindow)
	r.sweep()
	return id
}

func (r *rig) sweep() {
	r.t.Helper()
	_, err := r.Sweep(context.Background())
	r.ok(err)
	r.check()
}

func (r *rig) check() {
	r.t.Helper()
	found, err := r.db.CheckDelivery(context.Background())
	r.ok(err)
	for _, v := range found {
		r.t.Errorf("rule broken: %s: %s", v.Rule, v.Row)
	}
}

func (r *rig) head(thread string) delivery.BatchView {
	r.t.Helper()
	v, err := r.InspectHead(context.Background(), actor, address(thread).LaneID())
	r.ok(err)
	return v
}

func (r *rig) batch(id thole.BatchID) delivery.BatchView {
	r.t.Helper()
	v, err := r.Inspect(context.Background(), actor, id)
	r.ok(err)
	return v
}

// begin takes the head of a thread through the barrier.
func (r *rig) begin(thread string) delivery.Parcel {
	r.t.Helper()
	v := r.head(thread)
	p, err := r.BeginAccept(context.Background(), actor, delivery.BeginAccept{
		LaneID: v.Lane.ID, Batch: v.Batch.ID, Kind: thole.ModeTurnStart, Request: r.id(), Marker: "m" + r.id(), Holder: "h", Lease: time.Minute,
		Attachment: "att", Epoch: 1,
	})
	r.ok(err)
	return p
}

func (r *rig) accept(p delivery.Parcel, turn string) {
	r.t.Helper()
	stale, err := r.Accept(context.Background(), actor, p.Attempt.Fence(), delivery.Acceptance{Turn: thole.TurnID(turn), Attachment: "att", Epoch: 1})
	r.ok(err)
	if stale {
		r.t.Fatal("accept was stale")
	}
}

func (r *rig) see(p delivery.Parcel, turn string, e thole.TurnEvent) bool {
	r.t.Helper()
	stale, err := r.Observe(context.Background(), actor, p.Attempt.Fence(), delivery.Sighting{Turn: thole.TurnID(turn), Attachment: "att", Epoch: 1, Event: e})
	r.ok(err)
	return !stale
}

func (r *rig) ok(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}
