package thread_test

import (
	"context"
	"slices"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/thread"
	"pgregory.net/rapid"
)

func (w *world) steer() {
	w.tick()
	ref := w.reference()
	expected := ref.open
	if rapid.IntRange(0, 4).Draw(w.d, "wrong") == 0 {
		expected = "somebody else's"
	}
	_, err := w.m.Steer(bg, me, thread.Steer{Thread: w.id, Expected: expected, Input: thole.Text(w.next("also "))})
	switch {
	case ref.open != "" && expected == ref.open && ref.command:
		w.code("steer a command turn", err, thole.CodeUnsupported)
	case ref.open != "" && expected == ref.open:
		w.code("steer", err, "")
	default:
		w.code("steer wrongly", err, thole.CodeConflict)
	}
}

func (w *world) interrupt() {
	w.tick()
	ref := w.reference()
	err := w.m.Interrupt(bg, me, w.id, ref.open)
	if ref.open == "" {
		w.code("interrupt nothing", err, thole.CodeConflict)
		return
	}
	w.code("interrupt", err, "")
	if left := w.reference().pending; len(left) > 0 {
		w.t.Fatalf("asks %v survived an interrupt", left)
	}
}

func (w *world) answer() {
	w.tick()
	ref := w.reference()
	if len(ref.asked) == 0 {
		return
	}
	id := rapid.SampledFrom(ref.asked).Draw(w.d, "ask")
	a := event.Answer{Decision: rapid.SampledFrom([]event.Decision{event.DecisionAllow, event.DecisionDeny, event.DecisionCancel}).Draw(w.d, "decision")}
	if a.Decision == event.DecisionAllow {
		a.Answers = map[string][]string{"q": {"yes"}}
	}
	_, err := w.m.Answer(bg, me, w.id, id, a)
	first, answered := w.answers[id]
	switch {
	case slices.Contains(ref.pending, id):
		w.code("answer", err, "")
		w.answers[id] = a
	case answered && first.Decision == a.Decision:
		w.code("repeat an answer", err, "")
	default:
		w.code("answer a settled ask", err, thole.CodeConflict)
	}
}

func (w *world) queue() {
	w.tick()
	ref := w.reference()
	some := func() thole.MessageID {
		if len(ref.queue) == 0 {
			return "none"
		}
		return rapid.SampledFrom(ref.queue).Draw(w.d, "message")
	}
	switch rapid.SampledFrom([]string{"add", "add", "command", "edit", "remove", "reorder", "start", "promote"}).Draw(w.d, "queue") {
	case "add":
		_, err := w.m.Enqueue(bg, me, thread.Enqueue{Thread: w.id, Input: thole.Text(w.next("later ")), Start: rapid.Bool().Draw(w.d, "start")})
		w.code("enqueue", err, "")
	case "command":
		_, err := w.m.Enqueue(bg, me, thread.Enqueue{Thread: w.id, Input: thole.Shell(w.next("run ")), Command: true, Start: true})
		w.code("command", err, "")
		if after := w.reference(); ref.open == "" && (after.open == "" || !after.command || !slices.Equal(after.queue, ref.queue)) {
			w.t.Fatalf("a command turn on an idle thread is not what runs: %q, queue %v", after.open, after.queue)
		}
	case "edit":
		id := some()
		_, err := w.m.EditQueued(bg, me, w.id, id, thole.Text(w.next("rather ")))
		switch {
		case id == "none":
			w.code("edit nothing", err, thole.CodeNotFound)
		case ref.commands[id]:
			w.code("edit a command turn", err, thole.CodeConflict)
		default:
			w.code("edit", err, "")
		}
	case "remove":
		id := some()
		ok, err := w.m.RemoveQueued(bg, me, w.id, id)
		w.code("remove", err, "")
		if ok != (id != "none") {
			w.t.Fatalf("removed %v", ok)
		}
	case "reorder":
		order := rapid.Permutation(ref.queue).Draw(w.d, "order")
		w.code("reorder", w.m.ReorderQueued(bg, me, w.id, order), "")
		if got := w.reference().queue; !slices.Equal(got, order) {
			w.t.Fatalf("order is %v, want %v", got, order)
		}
	case "start":
		id := some()
		_, err := w.m.StartQueued(bg, me, w.id, id)
		switch {
		case ref.open != "":
			w.code("start queued while busy", err, thole.CodeBusy)
		case id == "none":
			w.code("start nothing", err, thole.CodeNotFound)
		default:
			w.code("start queued", err, "")
		}
	case "promote":
		id := some()
		_, err := w.m.PromoteQueued(bg, me, w.id, id)
		switch {
		case ref.open == "":
			w.code("promote while idle", err, thole.CodeConflict)
		case id == "none":
			w.code("promote nothing", err, thole.CodeNotFound)
		case ref.command || ref.commands[id]:
			w.code("promote a command turn", err, thole.CodeUnsupported)
		default:
			w.code("promote", err, "")
		}
	}
}

func (w *world) phase() {
	ref := w.reference()
	if ref.open == "" || !w.take() {
		return
	}
	p := rapid.SampledFrom([]thole.Phase{thole.PhaseClaimed, thole.PhaseRestoring, thole.PhasePreparing, thole.PhaseRunning, thole.PhaseQueued}).Draw(w.d, "phase")
	w.tick()
	w.code("phase", w.m.SetPhase(bg, w.agent.ref, p, ""), "", thole.CodeConflict)
	if p == thole.PhaseQueued { // the driver lost it
		w.agent = agent{}
	}
}

// later lets questions run out.
func (w *world) later() {
	w.clock = w.clock.Add(16 * time.Minute)
	if err := w.m.Sweep(bg); err != nil {
		w.t.Fatalf("sweep: %v", err)
	}
	for _, id := range w.reference().pending {
		asks, _ := w.m.Asks(bg, me, w.id, true)
		for _, a := range asks {
			if a.Ask.ID == id && !a.Ask.Deadline.IsZero() && !a.Ask.Deadline.After(w.clock) {
				w.t.Fatalf("ask %s is overdue and pending", id)
			}
		}
	}
}

// crash drops the machine without a word and makes a new one on the same store.
func (w *world) crash() {
	ended, cancel := context.WithCancel(bg)
	cancel()
	for _, c := range w.clients {
		c.finish(false)
	}
	w.clients = nil
	_ = w.m.Close(ended)
	w.tick()
	w.machine()
	ran := w.reference()
	if err := w.m.Recover(bg); err != nil {
		w.t.Fatalf("recover: %v", err)
	}
	if after := w.reference(); ran.open != "" && ran.began && !ran.parked && after.outcomes[ran.open] == "" {
		w.t.Fatalf("a running turn is %q after a restart", after.outcomes[ran.open])
	}
	w.agent = agent{}
}

func (w *world) compact() {
	th := w.thread()
	floor, err := w.m.Compact(bg, me, w.id, th.Seq-min(th.Seq, 20))
	if err != nil {
		w.t.Fatalf("compact: %v", err)
	}
	if floor > 0 {
		_, err := w.m.Events(bg, me, w.id, floor-1, 1)
		w.code("events behind the floor", err, thole.CodeGone)
	}
}
