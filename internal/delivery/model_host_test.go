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
	switch p.pick(5) {
	case 0, 1:
		prepared := cur && l.open.state == thole.AttemptPrepared && p.m.sendable(l)
		legal := prepared && l.bound == thole.BindingBound
		again := cur && l.open.state == thole.AttemptArmPending
		var lease delivery.ArmLease
		var stale bool
		err := p.insist(func() (err error) { lease, stale, err = p.NoteArmPending(ctx, actor, f, "bridge", print); return err })
		if prepared && !legal {
			if thole.CodeOf(err) != thole.CodeConflict {
				p.rt.Fatalf("note-arm-pending without a bound binding: stale=%v, %v", stale, err)
			}
			return "arm-pending unfit"
		}
		p.ok(err)
		if stale == (legal || again) {
			p.rt.Fatalf("note-arm-pending: stale=%v, legal %v, again %v", stale, legal, again)
		}
		if legal {
			l.open.state, l.open.deadline, l.open.doubt = thole.AttemptArmPending, p.m.now.Add(p.m.l.ArmTimeout), true
			l.open.lease = p.m.now.Add(p.m.l.ArmLease)
			p.leases["d"] = lease.ID
			p.m.rest(l)
		}
		return fmt.Sprint("arm-pending ", legal)
	case 2:
		pending := cur && l.open.state == thole.AttemptArmPending
		var stale bool
		lost, err := p.call(func() (err error) { _, stale, err = p.NoteArm(ctx, actor, f, "bridge", p.leases["d"]); return err })
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
	case 3:
		return p.stepCross(l, f, cur)
	default:
		pending := cur && l.open.state == thole.AttemptArmPending
		request := []string{"bridge", "another"}[p.pick(2)]
		legal := pending && (request == "bridge" || !p.m.now.Before(l.open.lease))
		var out thole.DesktopOutcome
		lost, err := p.call(func() (err error) { out, err = p.Reconcile(ctx, actor, f, request, p.seen); return err })
		p.ok(err)
		ended := legal && p.m.reconcile(l, p.seen)
		if !lost && ended != (out == thole.OutcomeAbandoned) {
			p.rt.Fatalf("reconcile: %s, want ended=%v", out, ended)
		}
		return fmt.Sprint("reconcile ", ended)
	}
}

// stepCross asks for the content of a batch, as often as it likes: once it is given.
func (p *player) stepCross(l *mLane, f delivery.Fence, cur bool) string {
	legal := cur && l.open.state == thole.AttemptCooldown && l.bound == thole.BindingBound && l.armed == l.open.gen && p.m.now.Before(l.open.batch.window)
	for n := range 2 {
		var out delivery.Crossed
		lost, err := p.call(func() (err error) { out, err = p.Cross(ctx, actor, crossing("d", f)); return err })
		p.ok(err)
		if want := legal && n == 0; !lost && want != (out.Outcome == thole.OutcomeCrossed) || want && !lost && out.Payload == "" || !want && out.Payload != "" {
			p.rt.Fatalf("cross: %+v, want %v", out, want)
		}
		if legal && n == 0 {
			b := l.open.batch
			p.m.close(l, b, thole.CloseHandoffRecorded)
			b.held = true
			p.m.rest(l)
		}
	}
	return fmt.Sprint("cross ", legal)
}

// stepHeartbeat is what happens to the heartbeat of thread d outside an arming.
func (p *player) stepHeartbeat() string {
	l := p.m.lanes["d"]
	id := address("d").LaneID()
	switch p.pick(5) {
	case 0, 1:
		p.seen = []thole.AutomationStatus{thole.AutomationActive, thole.AutomationPaused, thole.AutomationUnclear, thole.AutomationGone}[p.pick(4)]
		return "heartbeat is " + string(p.seen)
	case 2:
		gen := l.armed - int64(p.pick(2))
		legal := l.bound != thole.BindingUnbound && l.armed != 0 && gen == l.armed && !l.quiet && !p.m.now.Before(l.pauseFrom) && p.seen.Quiet()
		var out thole.DesktopOutcome
		lost, err := p.call(func() (err error) { out, err = p.NotePaused(ctx, actor, id, gen, p.seen); return err })
		p.ok(err)
		if !lost && legal != (out == thole.OutcomeQuiesced) {
			p.rt.Fatalf("note-paused: %s, want %v", out, legal)
		}
		if legal {
			l.quiet, l.blocked = true, false
			p.m.rest(l)
		}
		return fmt.Sprint("note-paused ", legal)
	case 3:
		p.ok(p.insist(func() error { _, _, err := p.Unbind(ctx, actor, id); return err }))
		if l.bound != thole.BindingUnbound {
			l.bound, l.armed, l.quiet, l.blocked = thole.BindingUnbound, 0, false, false
			p.m.forsake(l)
			p.m.rest(l)
		}
		return "unbind"
	default:
		repair := binding("d")
		repair.Seen = p.seen
		p.ok(p.insist(func() error { _, err := p.RepairBinding(ctx, actor, repair); return err }))
		unquiet := l.armed != 0 && !l.quiet
		if l.bound != thole.BindingBound || unquiet && p.seen.Quiet() {
			if l.bound == thole.BindingDegraded {
				p.m.forsake(l)
			}
			l.bound = thole.BindingBound
			if unquiet && p.seen.Quiet() {
				l.quiet = true
			} else if unquiet {
				l.pauseFrom, l.pauseBy = p.m.now.Add(p.m.l.PauseDelay), p.m.now.Add(p.m.l.PauseDelay+p.m.l.PauseTime)
			}
			l.blocked = l.armed != 0 && !l.quiet
			p.m.rest(l)
		}
		return "repair binding"
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
		legal := b != nil && (l.open == nil || l.open.state != thole.AttemptAcceptPending && l.open.state != thole.AttemptArmPending)
		if legal != (lost || err == nil) {
			p.rt.Fatalf("close-head: %v, want %v", err, legal)
		}
		if legal {
			p.m.close(l, b, thole.CloseOperatorUnconfirmed)
			p.m.rest(l)
		}
		return "close-head " + lane
	case 1, 2:
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
