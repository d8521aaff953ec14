package delivery_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"pgregory.net/rapid"
)

// TestModel drives the machine and the model with the same random steps, stale
// calls, clock jumps and restarts included, and compares them after every step.
// Each run is done twice and must leave the same trace.
func TestModel(t *testing.T) {
	steps, checks := 60, "15"
	if os.Getenv("THOLE_SOAK") != "" {
		steps, checks = 200, "10000"
	}
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		db := open(t)
		if db.Engine() == "postgres" { // the same code on slower ground
			checks = checks[:len(checks)-1]
		}
		if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
			_ = f.Value.Set(checks)
			defer f.Value.Set(f.DefValue)
		}
		rapid.Check(t, func(rt *rapid.T) {
			script := rapid.SliceOfN(rapid.Uint64(), steps/2, steps).Draw(rt, "script")
			first := play(rt, db, script)
			if second := play(rt, db, script); first != second {
				rt.Fatalf("the same script left two traces")
			}
		})
	})
}

// player holds both sides and what the caller of a real machine would remember.
type player struct {
	*rig
	rt     *rapid.T
	m      *model
	bits   uint64
	fences map[string]delivery.Fence // newest per lane
	old    []delivery.Fence
	leases map[string]string
	jobIDs []thole.JobID
	back   bool // the clock went back: from here on only the rules are checked
	trace  strings.Builder
}

func play(rt *rapid.T, db *store.DB, script []uint64) string {
	wipe(rt, db)
	p := &player{rig: newRig(rt, db, testLimits()), rt: rt, fences: map[string]delivery.Fence{}, leases: map[string]string{}}
	p.m = newModel(testLimits(), p.c.Now())
	for i, word := range script {
		p.bits = word
		what := p.step()
		p.compare(i, what)
	}
	p.finale()
	return p.trace.String()
}

func wipe(rt *rapid.T, db *store.DB) {
	err := db.Update(context.Background(), "test.wipe", func(tx *store.Tx) error {
		for _, q := range []string{
			"delete from delivery_audit", "delete from delivery_attempts", "delete from delivery_batches", "delete from delivery_jobs",
			"delete from delivery_lanes", "update delivery_scopes set ready_cursor = 0, last_ticket = 0, revision = 0",
		} {
			if _, err := tx.Exec(q); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		rt.Fatal(err)
	}
}

// pick takes the next choice out of the step's word.
func (p *player) pick(n int) int {
	v := int(p.bits % uint64(n))
	p.bits /= uint64(n)
	return v
}

func (p *player) lane() string { return []string{"a", "b", "c", "d"}[p.pick(4)] }

func targetOf(lane string) thole.Target {
	if lane == "d" {
		return thole.TargetDesktop
	}
	return thole.TargetCLI
}

// fence is the newest of a lane, or sometimes an outdated or damaged one.
func (p *player) fence(lane string) (f delivery.Fence, good bool) {
	f, good = p.fences[lane]
	switch p.pick(6) {
	case 0:
		if len(p.old) > 0 {
			return p.old[p.pick(len(p.old))], false
		}
	case 1:
		f.Generation++
		return f, false
	case 2:
		f.Request = "another"
		return f, false
	}
	return f, good
}

func (p *player) remember(lane string, a delivery.Attempt) {
	if f, ok := p.fences[lane]; ok {
		p.old = append(p.old, f)
	}
	p.fences[lane] = a.Fence()
}

var jumps = []time.Duration{
	0, time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 30 * time.Second, 50 * time.Second, 70 * time.Second,
	3 * time.Minute, 3*time.Minute + time.Millisecond, 4 * time.Minute, 10 * time.Minute,
}

func (p *player) step() string {
	if p.back {
		return p.blind()
	}
	switch p.pick(14) {
	case 0, 1:
		return p.stepSubmit()
	case 2, 3:
		return p.stepFinish()
	case 4:
		return p.stepCancel()
	case 5, 6:
		return p.stepBegin()
	case 7:
		return p.stepSettle()
	case 8:
		return p.stepObserve()
	case 9:
		return p.stepArm()
	case 10:
		return p.stepOperator()
	case 11, 12:
		d := jumps[p.pick(len(jumps))]
		if p.pick(60) == 0 {
			d, p.back = -d, true
		}
		p.c.add(d)
		p.m.now = p.c.Now()
		return "clock " + d.String()
	default:
		_, err := p.Sweep(ctx)
		p.ok(err)
		p.m.sweep()
		return "sweep"
	}
}

// blind goes on without the model, which knows no clock that goes back: whatever
// is called with whatever success, the rules must hold and everything must end.
func (p *player) blind() string {
	lane := p.lane()
	f := p.fences[lane]
	switch p.pick(9) {
	case 0:
		p.jobIDs = append(p.jobIDs, p.submit(lane, targetOf(lane)))
	case 1:
		if id, ok := p.someJob(); ok {
			_, _ = p.Finish(ctx, actor, delivery.Finish{Job: id, State: thole.JobReady, Request: p.id(), Inline: "x"})
		}
	case 2, 3:
		cs, err := p.Candidates(ctx, thole.TargetCLI, 1)
		p.ok(err)
		if len(cs) > 0 {
			parcel, err := p.BeginAccept(ctx, actor, delivery.BeginAccept{
				LaneID: cs[0].Lane.ID, Batch: cs[0].Batch.ID, Kind: thole.ModeTurnStart, Request: p.id(), Marker: "m", Epoch: 1,
			})
			if err == nil {
				p.remember(string(cs[0].Lane.Thread), parcel.Attempt)
			}
		}
	case 4:
		_, err := p.Accept(ctx, actor, f, delivery.Acceptance{Turn: "turn", Epoch: 1})
		p.ok(err)
	case 5:
		_, err := p.Observe(ctx, actor, f, delivery.Sighting{Turn: "turn", Epoch: 1, Event: thole.TurnEventCompleted})
		p.ok(err)
	case 6:
		_, err := p.Reject(ctx, actor, f, "busy", 0)
		p.ok(err)
	case 7:
		d := jumps[p.pick(len(jumps))]
		if p.pick(3) == 0 {
			d = -d
		}
		p.c.add(d)
	default:
		_, err := p.Sweep(ctx)
		p.ok(err)
	}
	return "blind"
}

func (p *player) stepSubmit() string {
	lane := p.lane()
	var parent thole.JobID
	if len(p.jobIDs) > 0 && p.pick(3) == 0 {
		c := p.jobIDs[p.pick(len(p.jobIDs))]
		if j := p.m.jobs[c]; j.lane.name == lane && j.state == thole.JobRunning {
			parent = c
		}
	}
	id := p.submit(lane, targetOf(lane), func(s *delivery.Submit) { s.Parent = parent })
	p.m.submit(lane, targetOf(lane) == thole.TargetDesktop, id, parent)
	p.jobIDs = append(p.jobIDs, id)
	return "submit " + lane
}

func (p *player) someJob() (thole.JobID, bool) {
	if len(p.jobIDs) == 0 {
		return "", false
	}
	return p.jobIDs[p.pick(len(p.jobIDs))], true
}

func (p *player) stepFinish() string {
	id, ok := p.someJob()
	if !ok {
		return "-"
	}
	state := []thole.JobState{thole.JobReady, thole.JobFailed}[p.pick(2)]
	text := strings.Repeat("x", []int{1, 40, 70, 200}[p.pick(4)])
	j := p.m.jobs[id]
	legal := j.state == thole.JobRunning && j.settled == ""
	_, err := p.Finish(ctx, actor, delivery.Finish{Job: id, State: state, Request: p.id(), Inline: text})
	if legal != (err == nil) {
		p.rt.Fatalf("finish of %s job: %v", j.state, err)
	}
	if legal {
		p.m.finish(id, state, len(text))
	}
	return fmt.Sprintf("finish %s %v", id, legal)
}

func (p *player) stepCancel() string {
	id, ok := p.someJob()
	if !ok {
		return "-"
	}
	_, err := p.Cancel(ctx, actor, id, p.id(), "")
	if want := p.m.cancel(id); want != (err == nil) {
		p.rt.Fatalf("cancel: %v, want %v", err, want)
	}
	return "cancel " + string(id)
}

// stepBegin takes a ready head through the barrier, or is refused.
func (p *player) stepBegin() string {
	lane := p.lane()
	l := p.m.lanes[lane]
	if l == nil || l.head() == nil {
		return "-"
	}
	v := p.head(lane)
	// Between two sweeps the fair order may lag behind time: the machine asks again.
	legal := l.ready && p.m.sendable(l)
	var parcel delivery.Parcel
	var err error
	if l.desktop {
		parcel, err = p.Prepare(ctx, actor, v.Lane.ID, v.Batch.ID)
	} else {
		parcel, err = p.BeginAccept(ctx, actor, delivery.BeginAccept{
			LaneID: v.Lane.ID, Batch: v.Batch.ID, Kind: thole.ModeTurnStart, Request: p.id(), Marker: "m", Holder: "h", Lease: time.Minute, Epoch: 1,
		})
	}
	if legal != (err == nil) {
		p.rt.Fatalf("begin %s: %v, want %v", lane, err, legal)
	}
	if legal {
		p.m.prepare(l)
		if !l.desktop {
			l.open.state, l.open.deadline = thole.AttemptAcceptPending, p.m.now.Add(p.m.l.AcceptTimeout)
		}
		p.m.rest(l)
		p.remember(lane, parcel.Attempt)
	}
	return fmt.Sprintf("begin %s %v", lane, legal)
}

func (p *player) stepSettle() string {
	lane := p.lane()
	f, good := p.fence(lane)
	l := p.m.lanes[lane]
	good = good && l.open != nil && l.open.state == thole.AttemptAcceptPending
	kind := p.pick(5)
	var stale bool
	var err error
	switch kind {
	case 0:
		stale, err = p.Accept(ctx, actor, f, delivery.Acceptance{Turn: "turn", Epoch: 1})
		if good {
			p.m.counted(l)
		} else if l != nil && !l.desktop && f == p.fences[lane] && l.open != nil && l.open.state == thole.AttemptCooldown {
			good = true // the same acceptance again
		}
	case 1:
		stale, err = p.Reject(ctx, actor, f, "busy", 0)
		if good {
			l.open.state = thole.AttemptPrepared
			p.m.setback(l)
			p.m.rest(l)
		}
	case 2:
		stale, err = p.Unsettled(ctx, actor, f, "silence")
	default:
		if kind == 3 {
			stale, err = p.Unknown(ctx, actor, f, "gone")
		} else {
			stale, err = p.Steered(ctx, actor, f, "another")
		}
		if good {
			p.m.hold(l, l.open.batch)
			p.m.rest(l)
		}
	}
	p.ok(err)
	if stale == good {
		p.rt.Fatalf("settle %d of %s: stale=%v, want %v", kind, lane, stale, !good)
	}
	return fmt.Sprintf("settle %s %d %v", lane, kind, good)
}

func (p *player) stepObserve() string {
	lane := p.lane()
	f, good := p.fence(lane)
	if f.Request == "another" { // the request does not fence observations
		f.Request = p.fences[lane].Request
	}
	l := p.m.lanes[lane]
	events := []thole.TurnEvent{thole.TurnEventStarted, thole.TurnEventCompleted, thole.TurnEventFailed, thole.TurnEventReplaced}
	e := events[p.pick(4)]
	epoch := int64(1)
	if p.pick(5) == 0 {
		epoch = 2
	}
	same := f == p.fences[lane]
	good = (good || same) && l != nil && l.open != nil && l.open.gen == f.Generation && l.open.state == thole.AttemptCooldown && !l.desktop
	if p.pick(6) == 0 {
		stale, err := p.Lost(ctx, actor, f, "cut")
		p.ok(err)
		if stale == good {
			p.rt.Fatalf("lost: stale=%v, want %v", stale, !good)
		}
		if good {
			p.m.hold(l, l.open.batch)
			p.m.rest(l)
		}
		return "lost " + lane
	}
	stale, err := p.Observe(ctx, actor, f, delivery.Sighting{Turn: "turn", Epoch: epoch, Event: e})
	p.ok(err)
	good = good && epoch == 1 && !p.m.now.After(l.open.deadline)
	if stale == good {
		p.rt.Fatalf("observe %s: stale=%v, want %v", e, stale, !good)
	}
	if good && e == thole.TurnEventCompleted {
		p.m.close(l, l.open.batch, thole.CloseDelivered)
		p.m.rest(l)
	} else if good && e.Terminal() {
		p.m.hold(l, l.open.batch)
		p.m.rest(l)
	} else if good {
		p.m.rest(l)
	}
	return fmt.Sprintf("observe %s %s %v", lane, e, good)
}

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
		lease, stale, err := p.NoteArmPending(ctx, actor, f, "bridge", "")
		p.ok(err)
		if stale == (legal || again) {
			p.rt.Fatalf("note-arm-pending: stale=%v, legal %v, again %v", stale, legal, again)
		}
		if legal {
			l.open.state, l.open.deadline = thole.AttemptArmPending, p.m.now.Add(p.m.l.ArmTimeout)
			p.leases["d"] = lease.ID
			p.m.rest(l)
		}
		return fmt.Sprint("arm-pending ", legal)
	case 2:
		pending := cur && l.open.state == thole.AttemptArmPending
		stale, err := p.NoteArm(ctx, actor, f, "bridge", p.leases["d"], "")
		p.ok(err)
		again := cur && l.open.state == thole.AttemptCooldown
		if stale == (pending || again) {
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
		stale, err := p.ArmRefused(ctx, actor, f, "paused")
		p.ok(err)
		if stale == pending {
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
	switch p.pick(4) {
	case 0:
		_, err := p.CloseHead(ctx, actor, id, "", thole.CloseOperatorUnconfirmed)
		b := l.head()
		legal := b != nil && (l.open == nil || l.open.state != thole.AttemptAcceptPending)
		if legal != (err == nil) {
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
		p.ok(p.Block(ctx, actor, id, reason))
		l.blocked = !l.blocked
		p.m.rest(l)
		return "block " + lane
	case 2:
		if b := l.head(); b != nil && l.ready {
			p.ok(p.Defer(ctx, actor, id, p.head(lane).Batch.ID, "busy", 0))
			p.m.setback(l)
			p.m.rest(l)
		}
		return "defer " + lane
	default:
		if b := l.head(); b != nil && b.state == thole.BatchMaterialized && !p.m.following(l) && !b.held {
			p.ok(p.Hold(ctx, actor, id, p.head(lane).Batch.ID, "policy", nil))
			p.m.hold(l, b)
			p.m.rest(l)
		}
		return "hold " + lane
	}
}

// compare reads the whole stored state and puts it beside the model's.
func (p *player) compare(i int, what string) {
	fmt.Fprintf(&p.trace, "%d %s\n", i, what)
	p.check()
	if p.back {
		return
	}
	got := p.text()
	p.trace.WriteString(got)
	if want := p.m.text(); got != want {
		p.rt.Fatalf("after step %d (%s):\nmachine:\n%s\nmodel:\n%s", i, what, got, want)
	}
}

func (p *player) text() string {
	var w strings.Builder
	for _, name := range []string{"a", "b", "c", "d"} {
		lane, err := p.FindLane(ctx, actor, thole.ThreadID(name), "")
		if err != nil {
			continue
		}
		fmt.Fprintf(&w, "%s ready=%v\n", name, lane.Ticket != 0)
		views, err := p.Batches(ctx, actor, delivery.BatchFilter{Thread: thole.ThreadID(name)})
		p.ok(err)
		slices.SortFunc(views, func(a, b delivery.BatchView) int { return int(a.Batch.Seq - b.Batch.Seq) })
		for _, v := range views {
			full := p.batch(v.Batch.ID)
			b := full.Batch
			ids := []thole.JobID{}
			for _, j := range full.Jobs {
				ids = append(ids, j.ID)
			}
			fmt.Fprintf(&w, "  %v %s held=%v %s n=%d", ids, b.State, b.Replay == thole.ReplayManual, b.CloseReason, b.AttemptCount)
			if b.State != thole.BatchQueued && b.State != thole.BatchClosed {
				fmt.Fprintf(&w, " until=%d", b.WindowEndsAt.UnixMilli())
			}
			for _, a := range full.Attempts {
				fmt.Fprintf(&w, " %d:%s", a.Generation, a.State)
			}
			w.WriteString("\n")
		}
	}
	return w.String()
}

// settleAll is what channels do in the end: whatever was sent is proven to be
// beyond proof, because its receiver is gone. Time alone must not have done it.
func (p *player) settleAll() {
	live, err := p.Live(ctx)
	p.ok(err)
	for _, c := range live {
		if c.Attempt.State == thole.AttemptAcceptPending {
			stale, err := p.Unknown(ctx, actor, c.Attempt.Fence(), "gone")
			p.ok(err)
			if stale {
				p.rt.Fatal("a live attempt cannot be settled")
			}
		}
	}
}

// finale lets time pass: whatever state the script left, every batch must end.
func (p *player) finale() {
	l := testLimits()
	for range 200 {
		open, err := p.Batches(ctx, actor, delivery.BatchFilter{Open: true})
		p.ok(err)
		if len(open) == 0 {
			break
		}
		p.c.add(l.Window)
		_, err = p.Sweep(ctx)
		p.ok(err)
		p.settleAll()
		p.check()
	}
	open, err := p.Batches(ctx, actor, delivery.BatchFilter{Open: true})
	p.ok(err)
	if len(open) > 0 {
		p.rt.Fatalf("stuck for ever: %+v", open[0].Batch)
	}
}
