package delivery

import (
	"context"
	"time"

	thole "github.com/tholehq/thole"
)

const sweepPage = 100

// Sweep does everything that is overdue and returns how many rows it moved. Each
// item is a transaction of its own that looks again before it changes anything,
// so sweeps may run at any time, twice, and concurrently with every other writer.
func (m *Machine) Sweep(ctx context.Context) (int, error) {
	moved := 0
	for _, pass := range []func(context.Context) (int, error){m.sweepAttempts, m.sweepArms, m.sweepBindings, m.sweepBatches, m.sweepLanes} {
		n, err := pass(ctx)
		moved += n
		if err != nil {
			return moved, err
		}
	}
	return moved, nil
}

// far is past every deadline that could have been written by now; one beyond it
// was written under a clock that has since gone back.
func far(now time.Time, lengths ...time.Duration) time.Time {
	longest := time.Duration(0)
	for _, d := range lengths {
		longest = max(longest, d)
	}
	return now.Add(longest + time.Second)
}

// pages lists rows page by page and calls each once.
func pages[T any](ctx context.Context, m *Machine, list func(tx Tx, now time.Time, after Position) ([]T, error), key func(*T) Position, each func(*T) (bool, error)) (int, error) {
	moved, after := 0, Position{}
	for {
		var rows []T
		err := m.store.View(ctx, func(tx Tx) error {
			var err error
			rows, err = list(tx, tx.Now(), after)
			return err
		})
		if err != nil {
			return moved, err
		}
		for i := range rows {
			did, err := each(&rows[i])
			if err != nil {
				return moved, err
			}
			if did {
				moved++
			}
		}
		if len(rows) < sweepPage {
			return moved, nil
		}
		after = key(&rows[len(rows)-1])
	}
}

func (m *Machine) sweepAttempts(ctx context.Context) (int, error) {
	return pages(ctx, m,
		func(tx Tx, now time.Time, after Position) ([]Attempt, error) {
			return tx.OverdueAttempts(now, far(now, m.limits.AcceptTimeout, m.limits.ArmTimeout, m.limits.Observation), after, sweepPage)
		},
		func(a *Attempt) Position { return Position{a.Deadline(), string(a.ID)} },
		func(seen *Attempt) (bool, error) {
			stale, err := m.onAttempt(ctx, "sweep_attempt", thole.SystemActor, seen.Fence(), m.expire)
			return !stale, err
		})
}

// expire decides about an attempt at its deadline. It re-reads everything: the
// attempt may have moved since the sweep listed it.
func (m *Machine) expire(o *op, b *Batch, a *Attempt) (stale bool, err error) {
	deadline := a.Deadline()
	if deadline.IsZero() {
		return true, nil
	}
	if o.now.Before(deadline) {
		return m.pullBack(o, a)
	}
	switch {
	case a.State == thole.AttemptAcceptPending:
		return false, m.overdue(o, a)
	case a.State == thole.AttemptArmPending:
		return true, nil // sweepArms looks at its heartbeat first
	case a.Tracked():
		if o.now.Equal(deadline) { // completion is still in time
			return true, nil
		}
		a.Observation.State = thole.ObservationExpired
		return false, o.fail(b, a, thole.HoldObservationExpired, map[string]string{"turn": string(a.Observation.Turn), "deadline": stamp(deadline)})
	}
	return true, nil
}

// sweepArms settles armings whose lease is over by what their heartbeats show.
func (m *Machine) sweepArms(ctx context.Context) (moved int, err error) {
	var all []Attempt
	if err := m.store.View(ctx, func(tx Tx) (err error) { all, err = tx.ArmingAttempts(tx.Now()); return err }); err != nil {
		return 0, err
	}
	for i := range all {
		b, err := m.bindingOf(ctx, all[i].LaneID)
		if err != nil {
			return moved, err
		}
		seen := thole.AutomationUnclear
		if b != nil && b.Automation == all[i].Arm.Automation {
			seen = m.automation(*b)
		}
		out, err := m.Reconcile(ctx, thole.SystemActor, all[i].Fence(), "", seen)
		if err != nil {
			return moved, err
		}
		if out == thole.OutcomeAbandoned {
			moved++
		}
	}
	return moved, nil
}

func (m *Machine) bindingOf(ctx context.Context, lane string) (b *Binding, err error) {
	err = m.store.View(ctx, func(tx Tx) error {
		b, err = tx.Binding(lane)
		return err
	})
	return b, err
}

// overdue reports that a call is still neither proven in nor out. Time proves nothing:
// what was sent may start a turn as long as its receiver lives, so the attempt
// keeps its barrier until its channel has proof, and is reported again.
func (m *Machine) overdue(o *op, a *Attempt) error {
	was := a.DeliveryDeadline
	a.DeliveryDeadline, a.UpdatedAt = o.now.Add(m.limits.overdueInterval()), o.now
	if err := o.UpdateAttempt(a); err != nil {
		return err
	}
	return o.log("attempt.overdue", Audit{Batch: a.Batch, Attempt: a.ID, Generation: a.Generation, Proof: map[string]string{
		"request": a.RPC.RequestID, "sent_at": stamp(a.RPC.StartedAt), "deadline": stamp(was), "why": "no proof before the acceptance deadline",
	}})
}

// pullBack shortens a deadline that a clock jump left further off than it was
// ever meant to be.
func (m *Machine) pullBack(o *op, a *Attempt) (stale bool, err error) {
	before := a.Deadline()
	switch {
	case a.State == thole.AttemptAcceptPending:
		a.DeliveryDeadline = clampAhead(a.DeliveryDeadline, o.now, m.limits.overdueInterval())
	case a.State == thole.AttemptArmPending:
		a.Arm.Deadline = clampAhead(a.Arm.Deadline, o.now, m.limits.ArmTimeout)
		a.Arm.LeaseDeadline = clampAhead(a.Arm.LeaseDeadline, o.now, m.limits.ArmLease)
	case a.Tracked():
		a.Observation.Deadline = clampAhead(a.Observation.Deadline, o.now, m.limits.Observation)
	}
	if a.Deadline().Equal(before) {
		return true, nil
	}
	if err := o.UpdateAttempt(a); err != nil {
		return false, err
	}
	return false, o.log("attempt.pull_back", Audit{Batch: a.Batch, Attempt: a.ID, Generation: a.Generation, From: stamp(before), To: stamp(a.Deadline())})
}

func (m *Machine) sweepBatches(ctx context.Context) (int, error) {
	return pages(ctx, m,
		func(tx Tx, now time.Time, after Position) ([]Batch, error) {
			return tx.OverdueBatches(now, far(now, m.limits.Window, m.limits.ManualWindow), after, sweepPage)
		},
		func(b *Batch) Position { return Position{b.WindowEndsAt, string(b.ID)} },
		func(seen *Batch) (bool, error) {
			moved := false
			err := m.onHead(ctx, "sweep_batch", thole.SystemActor, seen.LaneID, seen.ID, true, func(o *op, b *Batch) error {
				open, err := o.OpenAttempt(b.LaneID)
				if err != nil || open.Tracked() && !b.Aside() {
					return err
				}
				end := clampAhead(b.WindowEndsAt, o.now, max(m.limits.Window, m.limits.ManualWindow))
				moved = !o.now.Before(end) || !end.Equal(b.WindowEndsAt)
				if !end.Equal(b.WindowEndsAt) {
					b.WindowEndsAt = end
					return o.UpdateBatch(b)
				}
				if b.Aside() && moved {
					return o.closeBatch(b, thole.CloseManualExpired, map[string]string{"window_ends_at": stamp(end)})
				}
				return nil // in settle: the window is over
			})
			return moved, err
		})
}

func (m *Machine) sweepLanes(ctx context.Context) (int, error) {
	return pages(ctx, m,
		func(tx Tx, now time.Time, after Position) ([]Lane, error) {
			return tx.DueLanes(now, far(now, m.limits.WaitWindow, m.limits.MinInterval, m.limits.RetryMax, m.limits.Cooldown), after, sweepPage)
		},
		func(l *Lane) Position { return Position{l.DueAt, l.ID} },
		func(seen *Lane) (bool, error) {
			err := m.update(ctx, "sweep_lane", thole.SystemActor, func(o *op) error {
				if err := o.onLane(seen.ID); err != nil {
					return err
				}
				if err := m.catchUp(o); err != nil {
					return err
				}
				return o.settle()
			})
			return err == nil, err
		})
}

// catchUp pulls everything a lane may wait for back to its own length from now.
func (m *Machine) catchUp(o *op) error {
	o.lane.EligibleAfter = clampAhead(o.lane.EligibleAfter, o.now, m.limits.RetryMax)
	o.lane.NotBefore = clampAhead(o.lane.NotBefore, o.now, m.limits.MinInterval)
	head, err := o.HeadBatch(o.lane.ID)
	if err != nil {
		return err
	}
	if head != nil && head.State == thole.BatchQueued && head.FirstReadyAt.After(o.now) {
		head.FirstReadyAt = o.now
		if err := o.UpdateBatch(head); err != nil {
			return err
		}
	}
	open, err := o.OpenAttempt(o.lane.ID)
	if err != nil || open == nil {
		return err
	}
	if until := clampAhead(open.CooldownUntil, o.now, m.limits.Cooldown); !until.Equal(open.CooldownUntil) {
		open.CooldownUntil = until
		return o.UpdateAttempt(open)
	}
	return nil
}
