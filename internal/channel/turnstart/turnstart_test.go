package turnstart_test

import (
	"encoding/json"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/channel/turnstart"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/modelsim"
)

func jsonUnmarshal(raw json.RawMessage, v any) error { return json.Unmarshal(raw, v) }

func (r *rig) delivered(t *testing.T) {
	t.Helper()
	if v := r.until(settled); v.Batch.CloseReason != thole.CloseDelivered || v.Batch.AttemptCount != 1 {
		t.Fatalf("%+v\n%s", v.Batch, r.story())
	}
	if n := r.carrying(); n != 1 {
		t.Fatalf("%d turns carry the delivery\n%s", n, r.story())
	}
}

func TestResultBecomesOneTurnOfARealCodexThread(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.deliver()
	asked := len(r.sim.Turns())
	r.job("sim: say got it")
	r.delivered(t)
	if n := len(r.sim.Turns()) - asked; n != 1 {
		t.Errorf("the model was asked %d times for one delivery", n)
	}
}

// A server of another Codex home is not the one that was attached.
func TestServerOfAnotherHome(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.s.a.Home = t.TempDir()
	ch := turnstart.New(r.s, nil)
	defer ch.Close()
	got, err := ch.Probe(bg, channel.Query{User: thole.LocalUser, Thread: thole.ThreadID(r.thread)})
	if err != nil || got.Verdict != channel.NotNow || !strings.Contains(got.Reason, "serves the Codex home") {
		t.Fatalf("%+v, %v", got, err)
	}
}

func TestBusyThreadWaits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.deliver()
	turn := r.say("sim: say before ;; hang")
	if _, err := r.sim.Await(bg, func(q modelsim.Request) bool { return len(q.Prompt) > 0 && strings.Contains(q.Prompt, "hang") }); err != nil {
		t.Fatal(err)
	}
	r.job("sim: say got it")
	r.until(func(v delivery.BatchView) bool { return v.Lane.Failures > 0 })
	if n := r.carrying(); n != 0 {
		t.Fatal("a busy thread got a delivery")
	}
	r.must("turn/interrupt", map[string]any{"turnId": turn}, nil)
	r.await(turn, "interrupted")
	r.delivered(t) // although the user's Esc paused the queue
}

func TestEscHoldsTheBatch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.deliver()
	r.job("sim: say before ;; hang")
	v := r.until(func(v delivery.BatchView) bool { return v.Batch.AttemptCount == 1 || settled(v) })
	full, err := r.run.Inspect(bg, me, v.Batch.ID)
	if err != nil {
		t.Fatal(err)
	}
	r.must("turn/interrupt", map[string]any{"turnId": string(full.Attempts[0].Observation.Turn)}, nil)
	if v := r.until(settled); v.Batch.HeldFor != thole.HoldTurnInterrupted {
		t.Fatalf("held for %q\n%s", v.Batch.HeldFor, r.story())
	}
}
