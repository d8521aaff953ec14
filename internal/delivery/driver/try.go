package driver

import (
	"context"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/measure"
)

// try takes one candidate as far as it goes now.
func (d *Driver) try(ctx context.Context, ch channel.Channel, c delivery.Candidate) error {
	m := d.cfg.Machine
	r, err := ch.Probe(ctx, query(&c.Lane, &c.Batch))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		r = channel.Readiness{Verdict: channel.NotNow, Why: channel.ReasonUnknown, Reason: err.Error()}
	}
	switch r.Verdict {
	case channel.Now:
	case channel.Never:
		return m.Hold(ctx, thole.SystemActor, c.Lane.ID, c.Batch.ID, r.Why.Hold(), map[string]string{"reason": string(r.Why), "detail": r.Reason})
	default:
		return m.Defer(ctx, thole.SystemActor, c.Lane.ID, c.Batch.ID, r.Reason, r.RetryAfter)
	}
	s := measure.Step{What: measure.Deliver, Trace: string(c.Batch.ID), About: []string{"batch", string(c.Batch.ID), "thread", string(c.Lane.Thread), "target", string(c.Batch.Target)}}
	run := ctx // the attempt is followed for longer than its step
	return measure.Do(ctx, d.cfg.Meter, s, func(ctx context.Context) error { return d.deliver(ctx, run, ch, c, r) })
}

// deliver goes through the barrier, sends, and records the answer.
func (d *Driver) deliver(ctx, run context.Context, ch channel.Channel, c delivery.Candidate, r channel.Readiness) error {
	m := d.cfg.Machine
	now := time.Now()
	parcel, err := m.BeginAccept(ctx, thole.SystemActor, delivery.BeginAccept{
		LaneID: c.Lane.ID, Batch: c.Batch.ID, Kind: r.Mode, Request: d.cfg.NewID(now), Marker: "thole-" + d.cfg.NewID(now),
		Attachment: r.Attachment, Epoch: r.Epoch, Holder: d.cfg.Holder, Lease: leaseTime, Proof: r.Reason,
	})
	if thole.CodeOf(err) == thole.CodeConflict {
		return nil // no longer next: someone else, or time, moved it
	}
	if err != nil {
		return err
	}
	if !d.startFollowing(parcel.Attempt.ID) {
		return thole.Errorf(thole.CodeInternal, "attempt %s is already followed", parcel.Attempt.ID)
	}
	p := proposal(parcel)
	p.Text = d.cfg.Compose(parcel)
	answer, err := ch.Propose(ctx, p)
	if err != nil {
		answer = channel.Answer{Acceptance: thole.AcceptanceUnknown, Evidence: err.Error()}
	}
	w := channel.Watch{Proposal: p}
	// The answer is recorded even when the driver was stopped meanwhile.
	rec, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	//exhaustive:enforce
	switch answer.Acceptance {
	case thole.Accepted:
		if answer.Turn == "" {
			break // accepted as what? Look for the marker.
		}
		_, err := m.Accept(rec, thole.SystemActor, parcel.Attempt.Fence(), delivery.Acceptance{
			Turn: answer.Turn, Attachment: answer.Attachment, Epoch: answer.Epoch, Evidence: answer.Evidence,
		})
		if err != nil {
			d.stopFollowing(parcel.Attempt.ID)
			return err
		}
		w.Turn, w.Attachment, w.Epoch = answer.Turn, answer.Attachment, answer.Epoch
	case thole.Rejected:
		d.stopFollowing(parcel.Attempt.ID)
		if answer.Hold != "" {
			_, err := m.Refuse(rec, thole.SystemActor, parcel.Attempt.Fence(), answer.Evidence, answer.Hold.Hold())
			return err
		}
		_, err := m.Reject(rec, thole.SystemActor, parcel.Attempt.Fence(), answer.Evidence, answer.RetryAfter)
		return err
	case thole.AcceptanceUnknown: // held below
	}
	if w.Turn == "" {
		if _, err := m.Unsettled(rec, thole.SystemActor, parcel.Attempt.Fence(), answer.Evidence); err != nil {
			d.cfg.Log.Error("cannot record a missing answer", "attempt", parcel.Attempt.ID, "err", err)
		}
	}
	// Accepted: follow the turn. Unknown: look for proof, however long it takes.
	d.wg.Go(func() { d.followUp(run, ch, parcel.Attempt.Fence(), w) })
	return nil
}

func query(l *delivery.Lane, b *delivery.Batch) channel.Query {
	return channel.Query{
		User: l.User, Endpoint: l.Endpoint, Thread: l.Thread, Batch: b.ID,
		Policy: b.Policy, ArtifactRead: b.RequiresArtifactRead, Released: b.ReleasedBy == l.User, Brings: b.Plugin,
	}
}

func proposal(p delivery.Parcel) channel.Proposal {
	return channel.Proposal{
		User: p.Lane.User, Thread: p.Lane.Thread, Mode: p.Attempt.RPC.Kind, Request: p.Attempt.RPC.RequestID,
		Marker: p.Attempt.RPC.Marker, Attachment: p.Attempt.Observation.Attachment, Epoch: p.Attempt.Observation.Epoch,
		Batch: p.Batch.ID, Asked: query(&p.Lane, &p.Batch),
	}
}
