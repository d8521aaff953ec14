package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/backoff"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/thread"
)

// AskServer names the tool server of thole's in asks that agents put through it: the CLI
// knows nothing of them.
const AskServer = "thole"

// own are the asks of a turn that came through thole's tools and not from the CLI.
type own struct {
	mu   sync.Mutex // guards what follows
	open map[thole.AskID]int
	park thole.AskID // its run is being stopped, to wait without an agent
	cli  bool        // the CLI waits for a human too
}

func (o *own) has(id thole.AskID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.open[id] > 0
}

// Ask puts a question of the agent of a running turn to its thread, and waits for the
// answer. The same ask again waits for the same answer. CodeGone: the turn does not run
// here, or ended; CodeConflict: nobody will answer.
func (d *Dispatcher) Ask(ctx context.Context, turn thole.TurnID, ask event.Ask) (event.Answer, error) {
	d.mu.Lock()
	w := d.workers[turn]
	d.mu.Unlock()
	if w == nil {
		return event.Answer{}, thole.Errorf(thole.CodeGone, "turn %s does not run any more", turn)
	}
	sub, err := w.watch(ctx)
	if err != nil {
		return event.Answer{}, err
	}
	defer func() { sub.Close() }()
	if ask.Kind == event.AskTool {
		ask.Tool.Server, ask.Item = AskServer, w.callItem(ctx, sub, *ask.Tool)
		defer w.withdraw(context.WithoutCancel(ctx), ask.ID)
	} else {
		ask.Tool = &event.ToolCall{Server: AskServer, Name: "ask_user"}
	}
	w.asking(ctx, ask.ID, 1)
	defer w.asking(context.WithoutCancel(ctx), ask.ID, -1)
	if err := w.record(ctx, ask); err != nil {
		return event.Answer{}, err
	}
	for {
		if a, over, err := w.answered(ctx, ask.ID); over || err != nil {
			return a, err
		}
		if err := w.resolved(ctx, sub, ask.ID); err != nil {
			if !errors.Is(err, thread.ErrSlow) {
				return event.Answer{}, err
			}
			next, err := w.watch(ctx)
			if err != nil {
				return event.Answer{}, err
			}
			sub.Close()
			sub = next
		}
	}
}

// record records an ask, once. A turn whose agent is quicker than its first report is
// not running yet for its thread.
func (w *worker) record(ctx context.Context, ask event.Ask) error {
	var err error
	for range (backoff.Policy{Min: 10 * time.Millisecond, Max: time.Second}).Tries(ctx, 10) {
		var t fold.Turn
		if t, err = w.cfg.Threads.Turn(ctx, thole.SystemActor, w.lease.Thread, w.lease.Turn); err != nil {
			return err
		}
		err = w.cfg.Threads.Apply(ctx, w.ref(t.Executor), []event.Event{{
			ID: provider.StableID[thole.EventID]("ask", string(ask.ID)), Kind: event.AskRequested, Turn: w.lease.Turn, Time: w.cfg.Now().UTC(), Data: event.Data{Ask: &ask},
		}})
		if thole.CodeOf(err) != thole.CodeConflict || isFenced(err) {
			return err
		}
	}
	return err
}

// answered reports whether an ask is over, and with which answer.
func (w *worker) answered(ctx context.Context, id thole.AskID) (a event.Answer, over bool, err error) {
	asks, err := w.cfg.Threads.Asks(ctx, thole.SystemActor, w.lease.Thread, false)
	if err != nil {
		return a, false, err
	}
	i := slices.IndexFunc(asks, func(r fold.AskRecord) bool { return r.Ask.ID == id })
	switch {
	case i < 0:
		return a, true, thole.Errorf(thole.CodeConflict, "the question was not asked: the turn is ending")
	case asks[i].State == event.AskPending:
		return a, false, nil
	case asks[i].State == event.AskAnswered:
		return *asks[i].Answer, true, nil
	}
	return a, true, thole.Errorf(thole.CodeConflict, "nobody answered the question: it is %s", asks[i].State)
}

// resolved waits until an ask is, or its turn.
func (w *worker) resolved(ctx context.Context, sub *thread.Subscription, id thole.AskID) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case batch, ok := <-sub.Events:
			if !ok {
				if err := sub.Err(); err != nil {
					return err
				}
				return thole.Errorf(thole.CodeUnavailable, "watch thread: %w", errEnded)
			}
			for _, ev := range batch.Events {
				if ev.Kind == event.AskResolved && ev.AskID == id || ev.Kind == event.TurnEnded && ev.Turn == w.lease.Turn {
					return nil
				}
			}
		}
	}
}

// asking counts who waits for an ask of thole's tools. A turn that waits for a human takes
// no slot from others.
func (w *worker) asking(ctx context.Context, id thole.AskID, n int) {
	w.own.mu.Lock()
	if w.own.open == nil {
		w.own.open = map[thole.AskID]int{}
	}
	before := len(w.own.open)
	if w.own.open[id] += n; w.own.open[id] <= 0 {
		delete(w.own.open, id)
	}
	after, cli := len(w.own.open), w.own.cli
	w.own.mu.Unlock()
	if (before > 0) != (after > 0) && !cli {
		_ = w.cfg.Queue.Wait(ctx, w.lease.Turn, w.lease.Token, after > 0) // a lease that is lost has no slot
	}
}

// waits records that the CLI of a turn waits for a human, or no longer. It reports whether
// the turn as a whole does.
func (o *own) waits(cli bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cli = cli
	return cli || len(o.open) > 0
}

// parkOwn stops the run of a turn whose question through thole's tools nobody answered
// for long: its end parks the turn.
func (f *forwarder) parkOwn(ctx context.Context, id thole.AskID) {
	f.own.mu.Lock()
	waiting := f.own.open[id] > 0
	if waiting {
		f.own.park = id
	}
	f.own.mu.Unlock()
	if waiting {
		f.cancel(ctx)
	}
}

// parked makes the end of a run that was stopped for that the park of its turn.
func (w *worker) parked(end *event.Event) {
	w.own.mu.Lock()
	defer w.own.mu.Unlock()
	if w.own.park == "" || end.Outcome != thole.OutcomeInterrupted {
		return
	}
	end.Outcome, end.AskID, w.own.park = thole.OutcomeCompleted, w.own.park, ""
}

// ours reports whether an ask was put through thole's tools.
func ours(a event.Ask) bool { return a.Tool != nil && a.Tool.Server == AskServer }

// retell is what an agent hears of the answer to a question that outlived its process.
func retell(a event.Ask, answer event.Answer) []thole.Input {
	var b strings.Builder
	b.WriteString("You had asked the user with ask_user, and your process was stopped while they thought about it.\n")
	for _, q := range a.Questions {
		fmt.Fprintf(&b, "Question: %s\nAnswer: %s\n", q.Text, answerText(q.ID, answer))
	}
	b.WriteString("Go on from there; do not ask again.")
	return thole.Text(b.String())
}

// answerText is the answer to one question of an ask, in words.
func answerText(question string, a event.Answer) string {
	switch given := a.Answers[question]; {
	case a.Decision == event.DecisionDeny || a.Decision == event.DecisionCancel:
		if a.Message != "" {
			return "(the user did not answer: " + a.Message + ")"
		}
		return "(the user did not answer)"
	case len(given) > 0:
		return strings.Join(given, ", ")
	}
	return "(none)"
}
