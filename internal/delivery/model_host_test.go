package delivery_test

import (
	"fmt"
	"slices"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/delivery"
)

func (p *player) stepArm() string {
	l := p.m.lanes["d"]
	f, ok := p.fences["d"]
	if !ok {
		return "-"
	}
	if p.pick(4) == 0 {
		f.Generation--
		ok = false
	}
	cur := ok && l.open != nil && l.open.gen == f.Generation
	switch p.pick(4) {
	case 0, 1:
		legal := cur && l.open.state == thole.AttemptPrepared && p.m.sendable(l)
		again := cur && l.open.state == thole.AttemptArmPending
		var lease delivery.ArmLease
		var stale bool
		p.ok(p.insist(func() (err error) { lease, stale, err = p.NoteArmPending(ctx, actor, f, "bridge", ""); return err }))
		if stale == (legal || again) {
			p.rt.Fatalf("note-arm-pending: stale=%v, legal %v, again %v", stale, legal, again)
		}
		if legal {
			l.open.state, l.open.deadline, l.open.doubt = thole.AttemptArmPending, p.m.now.Add(p.m.l.ArmTimeout), true
			p.leases["d"] = lease.ID
			p.m.rest(l)
		}
		return fmt.Sprint("arm-pending ", legal)
	case 2:
		pending := cur && l.open.state == thole.AttemptArmPending
		var stale bool
		lost, err := p.call(func() (err error) { stale, err = p.NoteArm(ctx, actor, f, "bridge", p.leases["d"], ""); return err })
		p.ok(err)
		again := cur && l.open.state == thole.AttemptCooldown
		if !lost && stale == (pending || again) {
			p.rt.Fatalf("note-arm: stale=%v", stale)
		}
		if pending {
			p.m.counted(l)
		} else if again {
			p.m.rest(l)
		}
		return fmt.Sprint("arm ", pending)
	default:
		pending := cur && l.open.state == thole.AttemptArmPending
		var stale bool
		lost, err := p.call(func() (err error) { stale, err = p.ArmRefused(ctx, actor, f, "paused"); return err })
		p.ok(err)
		if !lost && stale == pending {
			p.rt.Fatalf("arm-refused: stale=%v", stale)
		}
		if pending {
			p.m.end(l, thole.AttemptAbandoned)
			p.m.setback(l)
			p.m.rest(l)
		}
		return fmt.Sprint("arm-refused ", pending)
	}
}

func (p *player) stepOperator() string {
	lane := p.lane()
	l := p.m.lanes[lane]
	if l == nil {
		return "-"
	}
	id := address(lane).LaneID()
	switch p.pick(8) {
	case 0:
		lost, err := p.call(func() error {
			_, err := p.CloseHead(ctx, actor, id, "", thole.CloseOperatorUnconfirmed)
			return err
		})
		b := l.head()
		legal := b != nil && (l.open == nil || l.open.state != thole.AttemptAcceptPending)
		if legal != (lost || err == nil) {
			p.rt.Fatalf("close-head: %v, want %v", err, legal)
		}
		if legal {
			p.m.close(l, b, thole.CloseOperatorUnconfirmed)
			p.m.rest(l)
		}
		return "close-head " + lane
	case 1:
		reason := ""
		if !l.blocked {
			reason = "binding degraded"
		}
		p.ok(p.insist(func() error { return p.Block(ctx, actor, id, reason) }))
		l.blocked = !l.blocked
		p.m.rest(l)
		return "block " + lane
	case 2:
		if b := l.head(); b != nil && l.ready {
			batch := p.head(lane).Batch.ID
			p.ok(p.insist(func() error { return p.Defer(ctx, actor, id, batch, "busy", 0) }))
			p.m.setback(l)
			p.m.rest(l)
		}
		return "defer " + lane
	case 3, 4:
		if l.head() == nil {
			return "-"
		}
		batch, anyway := p.head(lane).Batch.ID, p.pick(3) > 0
		err := p.insist(func() error { _, err := p.Release(ctx, actor, batch, anyway); return err })
		if legal := p.m.release(l, anyway); legal != (err == nil) {
			p.rt.Fatalf("release: %v, want %v", err, legal)
		}
		return "release " + lane
	case 5:
		if b := l.head(); b != nil && b.state == thole.BatchMaterialized && !p.m.following(l) && !b.held {
			batch := p.head(lane).Batch.ID
			p.ok(p.insist(func() error { return p.Hold(ctx, actor, id, batch, thole.HoldPolicy, nil) }))
			p.m.hold(l, b)
			p.m.rest(l)
		}
		return "hold " + lane
	case 6:
		if b := l.head(); b != nil && b.state == thole.BatchMaterialized && !p.m.following(l) && !b.held {
			batch := p.head(lane).Batch.ID
			p.ok(p.insist(func() error { return p.Hold(ctx, actor, id, batch, thole.HoldNoChannel, nil) }))
			p.m.setAside(l, b)
		}
		return "set aside " + lane
	default:
		return p.stepAside(l, id)
	}
}

// stepAside lets a person send or end a batch that is aside.
func (p *player) stepAside(l *mLane, id string) string {
	b := l.firstAside()
	if b == nil {
		return "-"
	}
	job, _, err := p.Job(ctx, actor, b.jobs[0])
	p.ok(err)
	if p.pick(2) == 0 {
		p.ok(p.insist(func() error {
			_, err := p.CloseHead(ctx, actor, id, job.Batch, thole.CloseOperatorUnconfirmed)
			if thole.CodeOf(err) == thole.CodeNotFound || thole.CodeOf(err) == thole.CodeConflict { // closed by the call whose answer was lost
				err = nil
			}
			return err
		}))
		p.m.close(l, b, thole.CloseOperatorUnconfirmed)
		p.m.rest(l)
		return "close aside"
	}
	doubt := slices.ContainsFunc(b.attempts, func(a *mAttempt) bool { return a.doubt })
	err = p.insist(func() error { _, err := p.Release(ctx, actor, job.Batch, !doubt); return err })
	if (err == nil) == doubt {
		p.rt.Fatalf("release of what is aside: %v, in doubt %v", err, doubt)
	}
	if err == nil {
		p.m.readmit(l, b)
	}
	return "release aside"
}
