package turnstart_test

import (
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/channel/turnstart"
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
// turn. That is an acceptance by exactly that turn, and its completion the delivery.
func TestTakenIntoARunningTurn(t *testing.T) {
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
	theirs := <-turn
	r.await(theirs, "completed")
	if v.Batch.CloseReason != thole.CloseDelivered || v.Batch.AttemptCount != 1 {
		t.Fatalf("%+v\n%s", v.Batch, r.story())
	}
	full, err := r.run.Inspect(bg, me, v.Batch.ID)
	if err != nil || len(full.Attempts) != 1 {
		t.Fatalf("%+v, %v", full, err)
	}
	if got := full.Attempts[0].Observation.Turn; string(got) != theirs {
		t.Fatalf("delivered by turn %s, and the message is in %s\n%s", got, theirs, r.story())
	}
}

// A server that refuses the queue of one thread still has one: nothing is sent past it,
// whatever words it refuses in.
func TestRefusedQueueIsNoMissingOne(t *testing.T) {
	t.Parallel()
	c := newCodex(t)
	r := c.rigOn(t, c.join(), newStore(t), nil)
	r.s.a.Thread = thole.NewID[thole.ThreadID](time.Now()) // which the server does not know
	ch := turnstart.New(r.s, nil)
	defer ch.Close()
	got, err := ch.Probe(bg, channel.Query{User: thole.LocalUser, Endpoint: r.home, Thread: r.s.a.Thread, Batch: "b"})
	if err != nil || got.Verdict != channel.NotNow || got.Why != channel.ReasonServer || !strings.Contains(got.Reason, "refuses the queue of thread") {
		t.Fatalf("%+v, %v", got, err)
	}
}
