package delivery

import (
	"strconv"
	"time"

	thole "github.com/tholehq/thole"
)

// settle brings the lane to rest: it applies decide until time or someone else
// has to act, and records the lane's place. Every change to a lane ends with it.
func (o *op) settle() error {
	for {
		head, err := o.HeadBatch(o.lane.ID)
		if err != nil {
			return err
		}
		open, err := o.OpenAttempt(o.lane.ID)
		if err != nil {
			return err
		}
		next := decide(o.lane, head, open, o.now, o.m.limits)
		switch next.kind {
		case stepMaterialize:
			err = o.materialize(head)
		case stepClose:
			err = o.closeBatch(head, next.reason, map[string]string{
				"window_ends_at": stamp(head.WindowEndsAt), "delivery_attempt_count": strconv.FormatInt(head.AttemptCount, 10),
			})
		default:
			return o.place(head, open, next)
		}
		if err != nil {
			return err
		}
	}
}

// place records where the lane stands: nowhere, waiting for a time, or in the
// fair order. A lane that already has a ticket keeps it.
func (o *op) place(head *Batch, open *Attempt, next step) error {
	l := o.lane
	l.DueAt = time.Time{}
	switch next.kind {
	case stepWait:
		l.DueAt, l.Ticket = next.until, 0
	case stepReady:
		if l.Ticket == 0 || l.Scope != head.Target {
			s, err := o.Advance(head.Target, Advance{Tickets: 1})
			if err != nil {
				return err
			}
			l.Ticket, l.Scope = s.LastTicket, head.Target
		}
	default:
		l.Ticket = 0
	}
	if err := o.UpdateLane(l); err != nil {
		return err
	}
	o.AfterCommit(func() {
		if next.kind != stepReady {
			o.m.wake(nil)
			return
		}
		o.m.wake(&Candidate{Lane: *l, Batch: *head, Attempt: open})
	})
	return nil
}

// advanceCursor records that the lane was served: its ticket is used up.
func (o *op) advanceCursor() error {
	if o.lane.Ticket == 0 {
		return nil
	}
	_, err := o.Advance(o.lane.Scope, Advance{Served: o.lane.Ticket})
	o.lane.Ticket = 0
	return err
}

// materialize fixes the batch's content and starts its redelivery window.
func (o *op) materialize(b *Batch) error {
	b.State, b.MaterializedAt, b.UpdatedAt = thole.BatchMaterialized, o.now, o.now
	b.WindowEndsAt = o.now.Add(o.m.limits.Window)
	b.MaxAttempts = max(o.m.limits.MaxAttempts, b.AttemptCount+1)
	b.NotBefore = o.lane.NotBefore
	jobs, err := o.JobsOf(b.ID)
	if err != nil {
		return err
	}
	b.Summary = summarize(jobs)
	if err := o.UpdateBatch(b); err != nil {
		return err
	}
	return o.log("batch.materialize", Audit{Batch: b.ID, From: string(thole.BatchQueued), To: string(thole.BatchMaterialized), Proof: map[string]string{
		"jobs": strconv.FormatInt(b.Jobs, 10), "inline_payload_bytes": strconv.FormatInt(b.InlineBytes, 10),
		"redelivery_window_ends_at": stamp(b.WindowEndsAt),
	}})
}

// rejoin makes the lane queue again after all others, not before a pause. It is
// what a failure before acceptance costs.
func (o *op) rejoin(retryAfter time.Duration) {
	o.lane.Failures++
	pause := o.m.limits.backoff(o.lane.Failures)
	if retryAfter > 0 {
		pause = min(retryAfter, o.m.limits.RetryMax)
	}
	o.lane.EligibleAfter = o.now.Add(pause)
	o.lane.Ticket = 0
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}
