package turnstart_test

import (
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/store/storetest"
)

// asked waits until the model got a prompt with this text.
func (r *rig) asked(text string) {
	r.t.Helper()
	if _, err := r.sim.Await(bg, func(q modelsim.Request) bool { return strings.Contains(q.Prompt, text) }); err != nil {
		r.t.Error(err)
	}
}

// The user types in the moment between the look at the idle thread and the
// message: the user's turn goes first and stays whole, the result gets its own.
func TestUserIsFaster(t *testing.T) {
	t.Parallel()
	c := newCodex(t)
	p := newProxy(t, c.sock, cut{up: true, after: 1 << 30})
	r := c.rig(t, p)
	turn := make(chan string, 1)
	p.onUp = func(n int) {
		if n == 1 {
			turn <- r.say("sim: wait 1s ;; say of the user")
			r.asked("of the user")
		}
	}
	r.deliver()
	r.job("sim: say got it")
	r.await(<-turn, "completed")
	r.delivered(t)
	if !strings.Contains(r.story(), "taken back") {
		t.Logf("the message started at once:\n%s", r.story())
	}
}

// Two deliverers of two homes have a result for one thread at the same moment.
// Each becomes a turn of its own.
func TestTwoDeliverers(t *testing.T) {
	t.Parallel()
	one := newRig(t)
	two := one.codex.rigOn(t, one.user, storetest.SQLite(t), nil)
	for _, r := range []*rig{one, two} {
		r.deliver()
	}
	for _, r := range []*rig{one, two} {
		r.job("sim: wait 300ms ;; say got it")
	}
	for _, r := range []*rig{one, two} {
		if v := r.until(settled); v.Batch.CloseReason != thole.CloseDelivered || v.Batch.AttemptCount != 1 {
			t.Fatalf("%+v\n%s", v.Batch, r.story())
		}
	}
	if n := one.carrying(); n != 2 {
		t.Fatalf("%d turns carry the two deliveries", n)
	}
}

// A review or a compaction that runs is waited for; one that is begun in the
// delivered turn ends it, and that is no delivery.
func TestReviewAndCompaction(t *testing.T) {
	t.Parallel()
	for method, p := range map[string]map[string]any{
		"thread/compact/start": {},
		"review/start":         {"target": map[string]any{"type": "custom", "instructions": "sim: wait 1s ;; say reviewed"}},
	} {
		t.Run(strings.ReplaceAll(method, "/", " "), func(t *testing.T) {
			r := newRig(t)
			r.deliver()
			r.must(method, p, nil)
			r.job("sim: say got it")
			r.delivered(t)
		})
		t.Run(strings.ReplaceAll(method, "/", " ")+" in the turn", func(t *testing.T) {
			r := newRig(t)
			r.deliver()
			r.job("sim: say before ;; hang")
			r.until(func(v delivery.BatchView) bool { return v.Batch.AttemptCount == 1 })
			r.asked("hang")
			r.must(method, p, nil)
			if v := r.until(settled); v.Batch.HeldFor != thole.HoldTurnInterrupted {
				t.Fatalf("held for %q\n%s", v.Batch.HeldFor, r.story())
			}
		})
	}
}
