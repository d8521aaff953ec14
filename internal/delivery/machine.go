package delivery

import (
	"context"
	"maps"
	"slices"
	"time"

	thole "github.com/tholehq/thole"
)

// Machine is the only writer of jobs, batches, attempts and their ledger. All
// methods are safe for concurrent use.
type Machine struct {
	store  Store
	access Access
	limits Limits
	newID  func(now time.Time) string
	wake   func(*Candidate)
	held   func()

	automation func(Binding) thole.AutomationStatus
}

// Config makes a Machine.
type Config struct {
	Store  Store
	Limits Limits
	// Access decides what others than the owner may do; nil: nothing.
	Access Access
	// NewID makes row ids. Default: UUIDv7.
	NewID func(now time.Time) string
	// Wake is called after a commit that may have given a driver work, with the
	// lane that is ready by it, if one is. It must not block.
	Wake func(ready *Candidate)
	// Automation looks at a heartbeat's own file. Nil: nobody can.
	Automation func(Binding) thole.AutomationStatus
	// Held is called after a commit that left a batch to a human. It must not block.
	Held func()
}

// New returns a Machine over a store.
func New(c Config) *Machine {
	if c.NewID == nil {
		c.NewID = func(now time.Time) string { return thole.NewID[string](now) }
	}
	if c.Wake == nil {
		c.Wake = func(*Candidate) {}
	}
	if c.Held == nil {
		c.Held = func() {}
	}
	if c.Access == nil {
		c.Access = ownDeliveries
	}
	if c.Automation == nil {
		c.Automation = func(Binding) thole.AutomationStatus { return thole.AutomationUnclear }
	}
	return &Machine{store: c.Store, access: c.Access, limits: c.Limits, newID: c.NewID, wake: c.Wake, held: c.Held, automation: c.Automation}
}

// Limits returns the machine's numbers.
func (m *Machine) Limits() Limits { return m.limits }

// op is one transaction of the machine on one lane.
type op struct {
	Tx
	m     *Machine
	now   time.Time
	actor thole.Actor
	lane  *Lane
	unitOfWork
}

// update runs fn as one durable step. Its function may run more than once.
func (m *Machine) update(ctx context.Context, name string, actor thole.Actor, fn func(*op) error) error {
	if !actor.Valid() {
		return thole.Errorf(thole.CodeUnauthorized, "%s: no actor", name)
	}
	return m.store.Update(ctx, "delivery."+name, func(tx Tx) error {
		o := &op{Tx: tx, m: m, actor: actor}
		if err := fn(o); err != nil {
			return err
		}
		return o.put()
	})
}

// onLane locks the lane and takes the time after the lock.
func (o *op) onLane(id string) error {
	lane, err := o.LockLane(id)
	if err != nil {
		return err
	}
	if lane == nil {
		return thole.Errorf(thole.CodeNotFound, "no deliveries for this thread")
	}
	o.lane, o.now = lane, o.Now()
	return nil
}

func (o *op) id() string { return o.m.newID(o.now) }

// log appends a ledger row about the attempt, batch or job that moved.
func (o *op) log(event string, a Audit) error {
	a.At, a.Actor, a.Event = o.now, o.actor, event
	if a.LaneID == "" && o.lane != nil {
		a.LaneID = o.lane.ID
	}
	o.ledger = append(o.ledger, a)
	return nil
}

// move takes an attempt through the table and records why.
func (o *op) move(a *Attempt, mv Move, proof map[string]string) error {
	to, ok := Next(a.State, mv)
	if !ok {
		return thole.Errorf(thole.CodeInternal, "attempt %s: %s is not legal in %s", a.ID, mv, a.State)
	}
	from := a.State
	a.State, a.UpdatedAt = to, o.now
	if !to.Open() {
		a.Holder, a.LeaseUntil = "", time.Time{}
	}
	if err := o.UpdateAttempt(a); err != nil {
		return err
	}
	return o.log("attempt."+string(mv), Audit{
		Batch: a.Batch, Attempt: a.ID, Generation: a.Generation, From: string(from), To: string(to), Proof: proof,
	})
}

// hold takes the batch out of automatic delivery for good. A human gets at least
// the manual window, also when the batch's own window is nearly over.
func (o *op) hold(b *Batch, why thole.HoldReason, proof map[string]string) error {
	if b.Replay == thole.ReplayManual {
		return nil
	}
	if !slices.Contains(thole.HoldReasons(), why) {
		return thole.Errorf(thole.CodeInternal, "hold batch %s: %q is not a reason", b.ID, why)
	}
	b.Replay, b.HeldFor, b.UpdatedAt = thole.ReplayManual, why, o.now
	if b.State == thole.BatchCooldown {
		b.State = thole.BatchMaterialized
	}
	b.WindowEndsAt = later(b.WindowEndsAt, o.now.Add(o.m.limits.ManualWindow))
	if err := o.UpdateBatch(b); err != nil {
		return err
	}
	p := maps.Clone(proof)
	if p == nil {
		p = map[string]string{}
	}
	p["held_for"] = string(why)
	o.AfterCommit(o.m.held)
	return o.log("batch.hold", Audit{
		Batch: b.ID, Attempt: b.HeadAttempt, Generation: b.Generation,
		From: string(thole.ReplayAutomatic), To: string(thole.ReplayManual), Proof: p,
	})
}

// closeBatch ends a batch and whatever attempt is open on it, and releases its
// artifacts to retention. The caller settles the lane afterwards.
func (o *op) closeBatch(b *Batch, reason thole.CloseReason, proof map[string]string) error {
	open, err := o.OpenAttempt(b.LaneID)
	if err != nil {
		return err
	}
	if open != nil && open.Batch == b.ID {
		if err := o.move(open, ending(open.State), map[string]string{"batch_closed": string(reason)}); err != nil {
			return err
		}
	}
	head, err := o.HeadBatch(b.LaneID)
	if err != nil {
		return err
	}
	from := b.State
	b.State, b.CloseReason, b.ClosedAt, b.UpdatedAt = thole.BatchClosed, reason, o.now, o.now
	if err := o.UpdateBatch(b); err != nil {
		return err
	}
	if err := o.releaseArtifacts(b.ID); err != nil {
		return err
	}
	if head != nil && head.ID == b.ID { // the lane's place in the order was its head's
		if err := o.advanceCursor(); err != nil {
			return err
		}
	}
	return o.log("batch.close", Audit{
		Batch: b.ID, Attempt: b.HeadAttempt, Generation: b.Generation,
		From: string(from), To: string(thole.BatchClosed) + ":" + string(reason), Proof: proof,
	})
}

func (o *op) releaseArtifacts(batch thole.BatchID) error {
	jobs, err := o.JobsOf(batch)
	if err != nil {
		return err
	}
	var ids []thole.ArtifactID
	for i := range jobs {
		err := o.family(&jobs[i], func(j *Job) error {
			if j.Artifact != "" {
				ids = append(ids, j.Artifact)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return o.ReleaseArtifacts(ids, o.now)
}

// family visits a job and everything below it, parents first.
func (o *op) family(j *Job, visit func(*Job) error) error {
	children, err := o.Children(j.ID)
	if err != nil {
		return err
	}
	return o.familyOf(j, children, visit)
}

func (o *op) familyOf(j *Job, children []Job, visit func(*Job) error) error {
	if err := visit(j); err != nil {
		return err
	}
	for i := range children {
		if err := o.family(&children[i], visit); err != nil {
			return err
		}
	}
	return nil
}
