package delivery

import (
	"context"
	"time"

	thole "github.com/tholehq/thole"
)

// inboxLimit bounds what one wake-up of a bridge is shown.
const inboxLimit = 200

// Inbox is what awaits Desktop threads, at one moment, without any content.
type Inbox struct {
	Revision     int64
	At           time.Time
	Installation Installation
	Ready        []Ready
	Arming       []Arming
	PauseDue     []Binding
}

// Ready is a prepared attempt that is next in the fair order.
type Ready struct {
	Fence
	Address
	Binding      Binding
	ArtifactRead bool
}

// Arming is an attempt whose heartbeat is being armed.
type Arming struct {
	Fence
	Address
	Binding  Binding
	Deadline time.Time
}

// PrepareHeartbeats goes through the fair order of Desktop threads: what goes to nobody by
// itself is held, and of the rest the next attempt is prepared. observed is the fingerprint
// of the installation now. Doing it twice is doing it once.
func (m *Machine) PrepareHeartbeats(ctx context.Context, observed string) error {
	ready, err := m.Candidates(ctx, thole.TargetDesktop, inboxLimit)
	if err != nil {
		return err
	}
	in, err := m.Installation(ctx)
	if err != nil {
		return err
	}
	for i := range ready {
		c := &ready[i]
		b, err := m.bindingOf(ctx, c.Lane.ID)
		if err != nil {
			return err
		}
		why, detail := thole.HoldNoChannel, in.Unfit(b, observed)
		switch {
		case detail != "":
		case c.Batch.RequiresArtifactRead:
			why, detail = thole.HoldPolicy, "requires_artifact_read=true"
		case len(c.Batch.Policy.Objections()) > 0 && c.Batch.ReleasedBy == "":
			why, detail = thole.HoldPolicy, c.Batch.Policy.Objections()[0]
		case c.Attempt != nil && c.Attempt.State == thole.AttemptPrepared:
			continue
		default:
			_, err := m.Prepare(ctx, thole.SystemActor, c.Lane.ID, c.Batch.ID)
			if err != nil && thole.CodeOf(err) != thole.CodeConflict { // moved on meanwhile
				return err
			}
			continue
		}
		if err := m.Hold(ctx, thole.SystemActor, c.Lane.ID, c.Batch.ID, why, map[string]string{"reason": string(why), "detail": detail}); err != nil {
			return err
		}
	}
	return nil
}

// Inbox reads what awaits Desktop threads. publish gives it a revision of its own; without it
// nothing changes, and the revision is that of the last one that was published.
func (m *Machine) Inbox(ctx context.Context, observed string, publish bool) (in Inbox, err error) {
	read := func(tx Tx, s *Scope) error {
		in = Inbox{Revision: s.Revision, At: tx.Now()}
		have, err := tx.Installation()
		if err != nil {
			return err
		}
		in.Installation = *have
		return in.read(tx, observed)
	}
	if publish {
		err = m.store.Update(ctx, "delivery.publish_inbox", func(tx Tx) error {
			s, err := tx.Advance(thole.TargetDesktop, Advance{Revisions: 1})
			if err != nil {
				return err
			}
			return read(tx, s)
		})
		return in, err
	}
	err = m.store.View(ctx, func(tx Tx) error {
		s, err := tx.Scope(thole.TargetDesktop)
		if err != nil {
			return err
		}
		return read(tx, s)
	})
	return in, err
}

func (in *Inbox) read(tx Tx, observed string) error {
	lanes, err := tx.Ready(thole.TargetDesktop, inboxLimit)
	if err != nil {
		return err
	}
	for _, l := range lanes {
		b, err := tx.Binding(l.ID)
		if err != nil {
			return err
		}
		a, err := tx.OpenAttempt(l.ID)
		if err != nil {
			return err
		}
		if a == nil || a.State != thole.AttemptPrepared || in.Installation.Unfit(b, observed) != "" || !b.Quiet() {
			continue
		}
		batch, err := tx.Batch(a.Batch)
		if err != nil {
			return err
		}
		if batch.Target != thole.TargetDesktop || batch.RequiresArtifactRead {
			continue
		}
		in.Ready = append(in.Ready, Ready{Fence: a.Fence(), Address: l.Address, Binding: *b, ArtifactRead: batch.RequiresArtifactRead})
	}
	arming, err := tx.ArmingAttempts(in.At.Add(365 * 24 * time.Hour))
	if err != nil {
		return err
	}
	for i := range arming {
		b, err := tx.Binding(arming[i].LaneID)
		if err != nil {
			return err
		}
		if b != nil {
			in.Arming = append(in.Arming, Arming{Fence: arming[i].Fence(), Address: b.Address, Binding: *b, Deadline: arming[i].Arm.Deadline})
		}
	}
	restless, err := tx.RestlessBindings(in.At, in.At.Add(365*24*time.Hour))
	for _, b := range restless {
		if b.State == thole.BindingBound {
			in.PauseDue = append(in.PauseDue, b)
		}
	}
	return err
}

// BatchOf is the batch of an attempt, "" if there is no such attempt.
func (m *Machine) BatchOf(ctx context.Context, id thole.AttemptID) (batch thole.BatchID, err error) {
	err = m.store.View(ctx, func(tx Tx) error {
		a, err := tx.Attempt(id)
		if err == nil && a != nil {
			batch = a.Batch
		}
		return err
	})
	return batch, err
}
