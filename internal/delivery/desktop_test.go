package delivery_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/store/storetest"
)

// Repeating a repair changes nothing. Another transport resets what was not said again, and
// degrades every binding that was made before it.
func TestInstallationRepair(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		r.bind("a")
		first, err := r.Installation(ctx)
		r.ok(err)
		was := r.binding("a")
		r.c.add(testLimits().Cooldown)
		r.bind("a")
		if again, _ := r.Installation(ctx); again != first || first.ValidatedAt.IsZero() || first.Generation != 1 {
			t.Errorf("a repeated repair changed %+v to %+v", first, again)
		}
		if b := r.binding("a"); b != was {
			t.Errorf("a repeated repair changed %+v to %+v", was, b)
		}
		p := installation(thole.CapabilityUnknown)
		p.Transport = thole.TransportHelper
		in, changed, err := r.RepairInstallation(ctx, actor, p)
		r.ok(err)
		none := delivery.Capabilities{Read: thole.CapabilityUnknown, Artifact: thole.CapabilityUnknown, Writeback: thole.CapabilityUnknown}
		if !changed || in.Generation != 2 || in.Capabilities != none || !in.ValidatedAt.IsZero() {
			t.Errorf("another transport: %+v", in)
		}
		b := r.binding("a")
		if b.State != thole.BindingDegraded || b.DegradedFor != "installation_changed" || b.Capabilities != was.Capabilities {
			t.Errorf("%+v", b)
		}
		out, err := r.RepairBinding(ctx, actor, binding("a"))
		r.ok(err)
		if out.Binding.State != thole.BindingBound || out.Binding.Capabilities != none || out.Installation != in {
			t.Errorf("%+v", out)
		}
		other := binding("b")
		other.Automation = "auto-a"
		if _, err := r.RepairBinding(ctx, actor, other); thole.CodeOf(err) != thole.CodeConflict {
			t.Errorf("one heartbeat woke two threads: %v", err)
		}
		for _, bad := range []delivery.RepairInstallation{
			{Transport: "mail", Capabilities: none, Fingerprint: "f"}, {Transport: thole.TransportFile, Fingerprint: "f"}, {Transport: thole.TransportFile, Capabilities: none},
		} {
			if _, _, err := r.RepairInstallation(ctx, actor, bad); thole.CodeOf(err) != thole.CodeInvalid {
				t.Errorf("%+v: %v", bad, err)
			}
		}
	})
}

// Nothing is prepared, listed or armed for a thread that is not bound or whose installation
// is not the validated one: its results are held, and stand before no other.
func TestUnboundHeartbeatsAreHeld(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		for what, spoil := range map[string]func(thread string){
			"unbound": func(thread string) { _, _, err := r.Unbind(ctx, actor, address(thread).LaneID()); r.ok(err) },
			"degraded": func(string) {
				_, _, err := r.RepairInstallation(ctx, actor, installation(thole.CapabilityUnavailable))
				r.ok(err)
			},
			"other fingerprint": func(string) {
				p := installation(thole.CapabilityValidated)
				p.Fingerprint = "of an older app"
				_, _, err := r.RepairInstallation(ctx, actor, p)
				r.ok(err)
			},
		} {
			thread := strings.ReplaceAll(what, " ", "-")
			r.bind(thread)
			id := r.submit(thread, thole.TargetDesktop, safe)
			r.finish(id, thole.JobReady, "result")
			spoil(thread)
			if what == "other fingerprint" {
				_, err := r.RepairBinding(ctx, actor, binding(thread))
				r.ok(err)
			}
			r.c.add(testLimits().WaitWindow)
			r.sweep()
			v := r.head(thread)
			r.ok(r.PrepareHeartbeats(ctx, print))
			if got := r.batch(v.Batch.ID).Batch; got.HeldFor != thole.HoldNoChannel || got.Generation != 0 {
				t.Errorf("%s: %+v", what, got)
			}
			cli := r.ready(thread, thole.TargetCLI)
			if h := r.head(thread); h.Jobs[0].ID != cli {
				t.Errorf("%s: what no heartbeat takes stands before others", what)
			}
			r.bind(thread)
		}
	})
}

func safe(p *delivery.Submit) { p.Policy = thole.DeliveryPolicy{ReadOnly: true} }

// The inbox shows what may be armed, without content; reading it changes nothing.
func TestInbox(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		for _, thread := range []string{"a", "b", "c"} {
			r.bind(thread)
			id := r.submit(thread, thole.TargetDesktop, func(p *delivery.Submit) {
				if thread != "b" {
					safe(p)
				}
			})
			_, err := r.Finish(ctx, actor, delivery.Finish{Job: id, State: thole.JobReady, Request: r.id(), Inline: "secret content", ArtifactOnly: thread == "c"})
			r.ok(err)
		}
		r.c.add(testLimits().WaitWindow)
		r.sweep()
		for range 2 {
			r.ok(r.PrepareHeartbeats(ctx, print))
		}
		in, err := r.Inbox(ctx, print, true)
		r.ok(err)
		if len(in.Ready) != 1 || in.Ready[0].Thread != "a" || in.Ready[0].Generation != 1 || in.Ready[0].Revision == 0 || in.Revision <= in.Ready[0].Revision {
			t.Fatalf("%+v", in)
		}
		if body, _ := json.Marshal(in); strings.Contains(string(body), "secret") {
			t.Errorf("content before the boundary: %s", body)
		}
		for _, thread := range []string{"b", "c"} {
			if b := r.head(thread).Batch; b.HeldFor != thole.HoldPolicy {
				t.Errorf("%s: %+v", thread, b)
			}
		}
		rows := func() string { s, err := (stage{rig: r}).State(); r.ok(err); return s }
		before := rows()
		if peek, err := r.Inbox(ctx, print, false); err != nil || peek.Revision != in.Revision || len(peek.Ready) != 1 {
			t.Errorf("%+v, %v", peek, err)
		}
		if rows() != before {
			t.Error("a peek changed rows")
		}
		if other, _ := r.Inbox(ctx, "another app", false); len(other.Ready) != 0 {
			t.Errorf("another app was shown %+v", other.Ready)
		}
		r.armed("a")
		if in, _ := r.Inbox(ctx, print, true); len(in.Ready)+len(in.Arming)+len(in.PauseDue) != 0 {
			t.Errorf("after arming: %+v", in)
		}
		r.c.add(testLimits().PauseDelay)
		if in, _ := r.Inbox(ctx, print, true); len(in.PauseDue) != 1 || in.PauseDue[0].Armed != 1 {
			t.Errorf("pause due: %+v", in)
		}
	})
}

// While a heartbeat may fire for an older generation nothing else is armed for its thread,
// and a cleanup of another generation does not count.
func TestOneHeartbeatAtATime(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		r.ready("a", thole.TargetDesktop)
		a := r.armed("a")
		if out, err := r.Cross(ctx, actor, r.token("a")); err != nil || out.Outcome != thole.OutcomeCrossed {
			t.Fatal(out, err)
		}
		r.ready("a", thole.TargetDesktop)
		r.c.add(testLimits().Cooldown)
		// Sweeps degrade what nobody pauses: look before they do.
		lane := address("a").LaneID()
		if _, err := r.Prepare(ctx, actor, lane, r.head("a").Batch.ID); thole.CodeOf(err) != thole.CodeConflict {
			t.Fatalf("prepared while the heartbeat may fire: %v", err)
		}
		note := func(generation int64, seen thole.AutomationStatus, want thole.DesktopOutcome) {
			t.Helper()
			if out, err := r.NotePaused(ctx, actor, lane, generation, seen); out != want || err != nil {
				t.Fatalf("%s, %v, want %s", out, err, want)
			}
		}
		note(a.Generation+1, thole.AutomationPaused, thole.OutcomeStale)
		note(a.Generation-1, thole.AutomationPaused, thole.OutcomeStale)
		note(a.Generation, thole.AutomationActive, thole.OutcomeNotQuiet)
		note(a.Generation, thole.AutomationUnclear, thole.OutcomeNotQuiet)
		note(a.Generation, thole.AutomationPaused, thole.OutcomeQuiesced)
		note(a.Generation, thole.AutomationPaused, thole.OutcomeUnchanged)
		r.sweep()
		if next := r.armed("a"); next.Generation != a.Generation+1 {
			t.Errorf("generation %d after %d", next.Generation, a.Generation)
		}
		note(a.Generation, thole.AutomationPaused, thole.OutcomeStale)
		if b := r.binding("a"); b.Armed != a.Generation+1 || b.Quiet() {
			t.Errorf("an old cleanup quieted a new heartbeat: %+v", b)
		}
		note(a.Generation+1, thole.AutomationPaused, thole.OutcomeTooEarly)
	})
}

// A heartbeat that nobody pauses in time is degraded, and its thread goes on without it.
func TestHeartbeatNotPaused(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		r.ready("a", thole.TargetDesktop)
		a := r.armed("a")
		l := testLimits()
		r.c.add(l.PauseDelay + l.PauseTime + l.PauseRetry)
		r.sweep()
		if b := r.binding("a"); b.State != thole.BindingDegraded || b.DegradedFor != "not_paused_in_time" {
			t.Fatalf("%+v", b)
		}
		if out, err := r.Cross(ctx, actor, crossing("a", a.Fence())); err != nil || out.Payload != "" || out.Outcome != thole.OutcomeStale {
			t.Errorf("a late wake-up got %+v, %v", out, err)
		}
		r.seen = thole.AutomationPaused
		old := binding("a")
		old.Automation = "another"
		out, err := r.RepairBinding(ctx, actor, old)
		r.ok(err)
		if out.Replaced != "auto-a" || out.OldQuiesced || out.Binding.Armed != 0 {
			t.Errorf("%+v", out)
		}
	})
}

// Any token that is not exactly the present one changes no row and gets nothing.
func TestCrossingFences(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		r.ready("a", thole.TargetDesktop)
		r.armed("a")
		rows := func() string { s, err := (stage{rig: r}).State(); r.ok(err); return s }
		before, good := rows(), r.token("a")
		for what, edit := range map[string]func(*delivery.Cross){
			"thread":      func(p *delivery.Cross) { p.Thread = "b" },
			"batch":       func(p *delivery.Cross) { p.Batch = "another" },
			"attempt":     func(p *delivery.Cross) { p.Attempt = "another" },
			"generation":  func(p *delivery.Cross) { p.Gen++ },
			"revision":    func(p *delivery.Cross) { p.Revision++ },
			"no revision": func(p *delivery.Cross) { p.Revision = 0 },
			"fingerprint": func(p *delivery.Cross) { p.Observed = "another app" },
		} {
			p := good
			edit(&p)
			out, err := r.Cross(ctx, actor, p)
			if err != nil || out.Payload != "" || out.Outcome == thole.OutcomeCrossed {
				t.Errorf("%s: %+v, %v", what, out, err)
			}
			if want := thole.OutcomeInvalid; what == "fingerprint" && out.Outcome != want {
				t.Errorf("%s: %s", what, out.Outcome)
			}
		}
		if out, err := r.Cross(ctx, thole.Actor{User: "other", Via: "test"}, good); err != nil || out.Outcome != thole.OutcomeStale {
			t.Errorf("another user got %+v, %v", out, err)
		}
		if rows() != before {
			t.Error("a token that does not match changed rows")
		}
	})
}

// Its content is given to one caller, however many ask, and kept for recovery.
func TestContentIsGivenOnce(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		r := newRig(t, open(t), testLimits())
		id := r.ready("a", thole.TargetDesktop)
		a := r.armed("a")
		callers := 1000
		if r.db.Engine() == "postgres" {
			callers = 50
		}
		p := r.token("a")
		var given atomic.Int64
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				out, err := r.Cross(context.Background(), actor, p)
				if err != nil {
					t.Error(err)
				}
				if out.Payload != "" {
					given.Add(1)
				}
				if (out.Payload != "") != (out.Outcome == thole.OutcomeCrossed) || out.Outcome != thole.OutcomeCrossed && out.Outcome != thole.OutcomeCrossedOnce {
					t.Errorf("%+v", out)
				}
			})
		}
		wg.Wait()
		if given.Load() != 1 {
			t.Fatalf("given %d times", given.Load())
		}
		r.restart()
		b := r.batch(a.Batch).Batch
		if b.CloseReason != thole.CloseHandoffRecorded || b.Replay != thole.ReplayManual || b.HeldFor != thole.HoldHandedOver {
			t.Errorf("%+v", b)
		}
		var env delivery.Envelope
		r.ok(json.Unmarshal([]byte(b.Boundary.Envelope), &env))
		if env.Payload != "content of "+string(a.Batch) || env.Attempt != a.ID || env.Reason != thole.CloseHandoffRecorded || env.RetainedUntil.Before(b.ClosedAt.Add(testLimits().RecoveryKeep)) {
			t.Errorf("%+v", env)
		}
		j, _, err := r.Job(ctx, actor, id)
		r.ok(err)
		for range 3 { // its recovery outlives its retention
			n, err := r.Forget(ctx, testLimits().RecoveryKeep/2)
			if r.ok(err); n != 0 {
				t.Error("what was handed over is forgotten")
			}
			r.c.add(testLimits().RecoveryKeep / 2)
		}
		r.c.add(testLimits().RecoveryKeep)
		if n, err := r.Forget(ctx, testLimits().RecoveryKeep/2); err != nil || n != 1 {
			t.Errorf("forgot %d, %v; job %s", n, err, j.ID)
		}
		r.check()
	})
}
