package delivery_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/crash"
)

// stage is a rig whose life can be cut off and taken up again. Its part is which
// acts it does: fewer of them make a shorter life to repeat.
type stage struct {
	*rig
	part string
}

// panics makes a failure in the child end it loudly.
type panics struct{}

func (panics) Helper()                      {}
func (panics) Fatal(args ...any)            { panic(fmt.Sprint(args...)) }
func (panics) Errorf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }
func (s stage) Close() error                { return s.db.Close() }
func (s stage) fence(thread string) delivery.Fence {
	a := s.head(thread).Attempts
	return a[len(a)-1].Fence()
}

func openStage(part string) func(dir string, hook sqldb.Hook) (stage, error) {
	return func(dir string, hook sqldb.Hook) (stage, error) {
		db, err := storetest.OpenAt(ctx, sqldb.Config{Path: filepath.Join(dir, "thole.db"), Hook: hook})
		if err != nil {
			return stage{}, err
		}
		return stage{newRig(panics{}, db, testLimits()), part}, nil
	}
}

func (s stage) State() (string, error) {
	return crash.Rows(s.db, "delivery_lanes", "delivery_scopes", "delivery_jobs", "delivery_batches", "delivery_attempts", "delivery_audit", "desktop_installation", "desktop_bindings")
}

// Acts are the ways an attempt, a batch or a lane is settled outside the straight
// path of a delivery, each on a thread of its own name.
func (s stage) Acts() []crash.Act {
	act := func(name string, set func(thread string), do func(thread, lane string) (bool, error)) crash.Act {
		return crash.Act{
			Name: name,
			Set:  func() error { set(name); return nil },
			Do: func() error {
				stale, err := do(name, address(name).LaneID())
				if err == nil && stale {
					err = fmt.Errorf("stale")
				}
				return err
			},
		}
	}
	sweep := func(string, string) (bool, error) {
		n, err := s.Sweep(ctx)
		return n != 1, err
	}
	cli := func(thread string) { s.ready(thread, thole.TargetCLI) }
	begun := func(thread string) { cli(thread); s.begin(thread) }
	followed := func(thread string) { cli(thread); s.accept(s.begin(thread), "turn") }
	desktop := func(thread string) { s.ready(thread, thole.TargetDesktop) }
	prepare := func(thread, lane string) (bool, error) {
		_, err := s.Prepare(ctx, actor, lane, s.head(thread).Batch.ID)
		return false, err
	}
	prepared := func(thread string) {
		desktop(thread)
		_, err := prepare(thread, address(thread).LaneID())
		s.ok(err)
	}
	arm := func(thread, _ string) (bool, error) {
		_, stale, err := s.NoteArmPending(ctx, actor, s.fence(thread), "bridge", print)
		return stale, err
	}
	arming := func(thread string) {
		prepared(thread)
		_, err := arm(thread, "")
		s.ok(err)
	}
	armed := func(thread, _ string) (bool, error) {
		a := s.head(thread).Attempts[0]
		_, stale, err := s.NoteArm(ctx, actor, a.Fence(), "bridge", a.Arm.Lease)
		return stale, err
	}
	reconcile := func(seen thole.AutomationStatus, want thole.DesktopOutcome) func(thread, _ string) (bool, error) {
		return func(thread, _ string) (bool, error) {
			out, err := s.Reconcile(ctx, actor, s.fence(thread), "bridge", seen)
			return out != want, err
		}
	}
	armedAt := func(thread string) {
		arming(thread)
		_, err := armed(thread, "")
		s.ok(err)
	}
	l := testLimits()
	parts := map[string][]crash.Act{"sweep": {
		act("sweep_lane", func(thread string) {
			s.finish(s.submit(thread, thole.TargetCLI), thole.JobReady, "result")
			s.c.add(l.WaitWindow)
		}, sweep),
		act("sweep_attempt", func(thread string) { begun(thread); s.c.add(l.AcceptTimeout) }, sweep),
		act("sweep_batch", func(string) {
			_, err := s.Unknown(ctx, actor, s.fence("sweep_attempt"), "gone")
			s.ok(err)
			s.c.add(l.Window - l.AcceptTimeout - l.WaitWindow)
		}, sweep),
	}, "call": {
		act("reject", begun, func(thread, _ string) (bool, error) { return s.Reject(ctx, actor, s.fence(thread), "busy", 0) }),
		act("refuse", begun, func(thread, _ string) (bool, error) {
			return s.Refuse(ctx, actor, s.fence(thread), "no such program", thole.HoldNoServer)
		}),
		act("acceptance_unknown", begun, func(thread, _ string) (bool, error) { return s.Unknown(ctx, actor, s.fence(thread), "no answer") }),
		act("unsettled", begun, func(thread, _ string) (bool, error) { return s.Unsettled(ctx, actor, s.fence(thread), "no answer") }),
		act("adopt", begun, func(thread, _ string) (bool, error) {
			took, err := s.Adopt(ctx, actor, s.fence(thread), "next", time.Minute, true)
			return !took, err
		}),
		act("observation_lost", followed, func(thread, _ string) (bool, error) { return s.Lost(ctx, actor, s.fence(thread), "gap") }),
	}, "head": {
		act("enqueue_job", func(string) {}, func(thread, _ string) (bool, error) {
			s.enqueue(thread, "k", owned("codex"))
			return false, nil
		}),
		act("defer", cli, func(thread, lane string) (bool, error) {
			return false, s.Defer(ctx, actor, lane, s.head(thread).Batch.ID, "busy", l.RetryMax)
		}),
		act("hold", cli, func(thread, lane string) (bool, error) {
			return false, s.Hold(ctx, actor, lane, s.head(thread).Batch.ID, "policy", nil)
		}),
		act("note", cli, func(thread, _ string) (bool, error) {
			return false, s.Note(ctx, actor, thole.DefaultOwner, address(thread), "session.drift", map[string]string{"drift": "wider: network"})
		}),
		act("release_batch", func(thread string) {
			begun(thread)
			_, err := s.Unknown(ctx, actor, s.fence(thread), "no answer")
			s.ok(err)
		}, func(thread, _ string) (bool, error) {
			_, err := s.Release(ctx, actor, s.head(thread).Batch.ID, true)
			return false, err
		}),
		act("close_head", followed, func(thread, lane string) (bool, error) {
			_, err := s.CloseHead(ctx, actor, lane, s.head(thread).Batch.ID, thole.CloseOperatorUnconfirmed)
			return false, err
		}),
	}, "arm": {
		act("prepare", desktop, prepare),
		act("note_arm_pending", prepared, arm),
		act("note_arm", arming, armed),
		act("reconcile_arm", arming, reconcile(thole.AutomationPaused, thole.OutcomeAbandoned)),
	}, "quiet": {
		act("reconcile_unclear", func(thread string) { arming(thread); s.c.add(l.ArmTimeout) }, reconcile(thole.AutomationUnclear, thole.OutcomeAbandoned)),
		act("note_paused", func(thread string) { armedAt(thread); s.c.add(l.PauseDelay) }, func(thread, lane string) (bool, error) {
			out, err := s.NotePaused(ctx, actor, lane, s.head(thread).Batch.Generation, thole.AutomationPaused)
			return out != thole.OutcomeQuiesced, err
		}),
		act("sweep_binding", func(thread string) { armedAt(thread); s.c.add(l.PauseDelay + l.PauseTime + l.PauseRetry) }, sweep),
	}, "bind": {
		act("repair_installation", func(string) {}, func(string, string) (bool, error) {
			_, changed, err := s.RepairInstallation(ctx, actor, installation(thole.CapabilityValidated))
			return !changed, err
		}),
		act("repair_binding", func(string) {}, func(thread, _ string) (bool, error) {
			out, err := s.RepairBinding(ctx, actor, binding(thread))
			return !out.Changed, err
		}),
		act("unbind", func(thread string) { s.bind(thread) }, func(_, lane string) (bool, error) {
			_, changed, err := s.Unbind(ctx, actor, lane)
			return !changed, err
		}),
		act("publish_inbox", desktop, func(string, string) (bool, error) {
			in, err := s.Inbox(ctx, print, true)
			return in.Revision == 0, err
		}),
	}, "cross": {
		act("note_boundary_crossed", armedAt, func(thread, _ string) (bool, error) {
			out, err := s.Cross(ctx, actor, s.token(thread))
			return out.Payload == "", err
		}),
	}}
	return parts[s.part]
}

// TestKillAtEverySettlement: a kill leaves a settlement wholly done or not begun,
// the next process can take up what is open, sends nothing that is in doubt, and
// brings every batch to its end.
func TestKillAtEverySettlement(t *testing.T) {
	for _, part := range []string{"sweep", "call", "head", "arm", "quiet", "bind", "cross"} {
		t.Run(part, func(t *testing.T) { crash.Acts(t, openStage(part), checkSettled) })
	}
}

func checkSettled(t *testing.T, s stage, done []string) {
	s.t, s.n = t, 1_000_000
	s.check()
	s.resume(t)
	s.resend(t, done)
	for range 5 {
		s.c.add(5 * time.Minute)
		s.sweep()
	}
	open, err := s.Batches(ctx, actor, delivery.BatchFilter{Open: true})
	s.ok(err)
	for _, v := range open {
		t.Errorf("batch of %s is stuck: %+v", v.Lane.Thread, v.Batch)
	}
	rest, err := s.State()
	s.ok(err)
	s.sweep()
	if again, err := s.State(); err != nil || again != rest {
		t.Errorf("a sweep of what is at rest changed it (%v):\n%s\n%s", err, rest, again)
	}
}

// resume is a driver's start: it takes every live attempt and can prove nothing.
func (s stage) resume(t *testing.T) {
	rows, err := s.Ledger(ctx, actor, delivery.AuditFilter{})
	s.ok(err)
	for _, r := range rows {
		if r.At.After(s.c.Now()) {
			s.c.add(r.At.Sub(s.c.Now()))
		}
	}
	live, err := s.Live(ctx)
	s.ok(err)
	for range 2 { // the second start finds everything settled
		for _, p := range live {
			f := p.Attempt.Fence()
			took, err := s.Adopt(ctx, actor, f, "successor", time.Minute, true)
			s.ok(err)
			if p.Attempt.State == thole.AttemptAcceptPending {
				_, err = s.Unknown(ctx, actor, f, "the process died")
			} else {
				_, err = s.Lost(ctx, actor, f, "the process died")
			}
			s.ok(err)
			after := s.batch(p.Batch.ID)
			if after.Batch.Replay != thole.ReplayManual || after.Batch.AttemptCount > 1 {
				t.Errorf("an attempt in %s (taken %v) left its batch %+v", p.Attempt.State, took, after.Batch)
			}
		}
		s.check()
	}
}

// resend delivers everything that may be sent and checks that nothing else is.
func (s stage) resend(t *testing.T, done []string) {
	s.c.add(testLimits().RetryMax)
	s.sweep()
	cs, err := s.Candidates(ctx, thole.TargetCLI, 100)
	s.ok(err)
	for _, c := range cs {
		thread := string(c.Lane.Thread)
		v := s.head(thread)
		if v.Batch.Replay != thole.ReplayAutomatic || v.Batch.AttemptCount > 0 || len(v.Attempts) > 1 {
			t.Errorf("%s is to be sent again: %+v", thread, v.Batch)
		}
		if slices.Contains(done, thread) && !slices.Contains([]string{"sweep_lane", "reject", "enqueue_job", "defer", "note", "release_batch"}, thread) {
			t.Errorf("%s is to be sent although it was settled", thread)
		}
		p := s.begin(thread)
		s.accept(p, "again")
		if !s.see(p, "again", thole.TurnEventCompleted) {
			t.Errorf("%s: the completion of a new turn is stale", thread)
		}
		if got := s.batch(p.Batch.ID).Batch.CloseReason; got != thole.CloseDelivered {
			t.Errorf("%s: closed as %q", thread, got)
		}
		s.check()
	}
	for _, thread := range []string{"reject", "defer", "release_batch"} {
		if slices.Contains(done, thread) && !slices.ContainsFunc(cs, func(c delivery.Candidate) bool { return string(c.Lane.Thread) == thread }) {
			t.Errorf("%s is not offered again", thread)
		}
	}
}
