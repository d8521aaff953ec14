package turnstart_test

import (
	"strings"
	"testing"
)

// A server that shows no queue is sent the turn directly.
func TestWithoutTheQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.plain = true
	r.deliver()
	r.job("sim: say got it")
	r.delivered(t)
	if !strings.Contains(r.story(), "guarded turn/start") {
		t.Errorf("the queue was used:\n%s", r.story())
	}
}

// Without the queue a user can be faster: the message then goes into the user's
// turn. It is recorded as steered and held, and that turn's end delivers nothing.
func TestSteeredIsNoDelivery(t *testing.T) {
	t.Parallel()
	c := newCodex(t)
	p := newProxy(t, c.sock, cut{up: true, after: 1 << 30})
	r := c.rig(t, p)
	r.plain = true
	turn := make(chan string, 1)
	p.onUp = func(n int) {
		if n != 2 { // the thread was seen idle, and turn/start is on its way
			return
		}
		turn <- r.say("sim: wait 1s ;; say of the user")
		r.asked("of the user")
	}
	r.deliver()
	r.job("sim: say got it")
	v := r.until(settled)
	if v.Batch.HeldFor != "steered" || v.Batch.AttemptCount != 0 {
		t.Fatalf("%+v\n%s", v.Batch, r.story())
	}
	r.await(<-turn, "completed")
	full, err := r.run.Inspect(bg, me, v.Batch.ID)
	if err != nil || full.Batch.HeldFor != "steered" || len(full.Next()) == 0 {
		t.Fatalf("%+v, %v", full.Batch, err)
	}
}
