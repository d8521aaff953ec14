package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/thread"
)

// The thread's machine records steers, answers and interrupts and then calls its
// Runner; but the worker may live in another process, or not yet. So workers read
// the record, and the Runner's methods only say what can be said at once.
var _ thread.Runner = (*Dispatcher)(nil)

// Wake implements thread.Runner. A turn that came to us with its start is begun.
func (d *Dispatcher) Wake(_ thole.ThreadID, turn thole.TurnID) {
	d.mu.Lock()
	_, begun := d.workers[turn]
	d.mu.Unlock()
	if !begun {
		d.wake()
	}
}

// Steer implements thread.Runner: it refuses what the provider cannot do.
func (d *Dispatcher) Steer(_ context.Context, ref thread.TurnRef, _ []thole.Input, _ string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if w := d.workers[ref.Turn]; w != nil && w.info.Name != "" && !w.info.Capabilities.Steer.OK() {
		return thread.ErrNotSteerable
	}
	return nil
}

// Answer implements thread.Runner.
func (d *Dispatcher) Answer(context.Context, thread.TurnRef, thole.AskID, event.Answer) error {
	return nil
}

// Interrupt implements thread.Runner.
func (d *Dispatcher) Interrupt(context.Context, thread.TurnRef) error { return nil }

// Recover implements thread.Runner: the queue knows every open turn.
func (d *Dispatcher) Recover(ctx context.Context, _ fold.Thread, turn fold.Turn) thread.Fate {
	row, err := d.cfg.Queue.Get(ctx, turn.ID)
	if err == nil && row.State != queue.Done {
		return thread.FateResume
	}
	if err != nil && thole.CodeOf(err) != thole.CodeNotFound {
		return thread.FateLeave // unknown is not gone
	}
	return thread.FateInterrupt
}

// forward sends the thread's wishes to the run: first those recorded before we
// came, then each as it is recorded. It returns an error when the thread can be
// watched no more.
func (w *worker) forward(ctx context.Context, p *place, run wire.Run, sub *thread.Subscription) error {
	f := &forwarder{worker: w, place: p, run: run.ID, timers: map[thole.AskID]*time.Timer{}, due: make(chan func())}
	ctx, cancel := context.WithCancel(ctx)
	defer f.calls.Wait()
	defer cancel()
	defer f.stopTimers()
	defer func() { sub.Close() }()
	// What the run asks from now on is recorded while we watch.
	f.catchUp(ctx, sub.Snapshot, run.State == wire.RunWaiting)
	for {
		select {
		case <-ctx.Done():
			return nil
		case do := <-f.due:
			do()
			if f.deaf {
				return errDeaf
			}
		case batch, ok := <-sub.Events:
			if !ok {
				why := sub.Err()
				sub.Close()
				if !errors.Is(why, thread.ErrSlow) { // who fell behind finds in the record what was missed
					return fmt.Errorf("watch thread: %w", cmp.Or(why, errEnded))
				}
				next, err := w.watch(ctx)
				if err != nil {
					return err
				}
				sub = next
				f.catchUp(ctx, sub.Snapshot, true)
				continue
			}
			for _, ev := range batch.Events {
				if ev.Turn == w.lease.Turn {
					f.event(ctx, ev)
				} else if ev.Kind == event.ThreadUpdated && ev.Settings != nil {
					f.setNetwork(ctx, ev.Settings.Network)
				}
			}
		}
	}
}

// setNetwork sends the executor what the thread may reach now, if it has something else.
func (f *forwarder) setNetwork(ctx context.Context, n *event.NetworkPolicy) {
	if f.network.Equal(n) {
		return
	}
	f.network = n
	f.retryUntilSent(ctx, "network policy", func() error {
		if f.network != n {
			return nil // a later one is on its way
		}
		return f.place.client.SetNetwork(ctx, n)
	})
}

// watch subscribes to what the thread records.
func (w *worker) watch(ctx context.Context) (*thread.Subscription, error) {
	return w.cfg.Threads.Subscribe(ctx, thole.SystemActor, w.lease.Thread, thread.SubscribeOptions{NoDeltas: true})
}

// untilInterrupted returns a context that ends with errInterrupted when the turn is
// to stop, until release.
func (w *worker) untilInterrupted(ctx context.Context) (until context.Context, release func(), err error) {
	sub, err := w.watch(ctx)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { sub.Close() }()
		for {
			if t := sub.Snapshot.Open; t != nil && t.ID == w.lease.Turn && t.Interrupted || w.interrupted(ctx, sub) {
				cancel(errInterrupted)
				return
			}
			if !errors.Is(sub.Err(), thread.ErrSlow) {
				return
			}
			next, err := w.watch(ctx)
			if err != nil {
				return
			}
			sub.Close()
			sub = next
		}
	}()
	return ctx, func() { cancel(nil); <-done }, nil
}

// interrupted waits for the turn's interrupt; false when the watch is over.
func (w *worker) interrupted(ctx context.Context, sub *thread.Subscription) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case batch, ok := <-sub.Events:
			if !ok {
				return false
			}
			for _, ev := range batch.Events {
				if ev.Turn == w.lease.Turn && ev.Kind == event.TurnInterrupt {
					return true
				}
			}
		}
	}
}

// errEnded: the thread's machine closed, or the thread is gone.
var errEnded = errors.New("it ended")

type forwarder struct {
	*worker
	place  *place
	run    thole.TurnID
	timers map[thole.AskID]*time.Timer // park a question nobody answers
	kill   *time.Timer                 // ends a run that does not stop by itself
	deaf   bool                        // its executor did not hear of that

	pendingSteers []event.Message // steers that the agent has not got, oldest first
	again         *time.Timer     // sends them

	due   chan func()    // what timers and calls ask for; forward does it, so that nothing outlives it
	calls sync.WaitGroup // those that may wait for the agent
}

// aside makes a call that may wait for the agent, and then goes on in forward: an
// interrupt must not wait for a message that an agent does not take.
func (f *forwarder) aside(ctx context.Context, call func() error, then func(error)) {
	f.calls.Go(func() {
		err := call()
		select {
		case f.due <- func() { then(err) }:
		case <-ctx.Done():
		}
	})
}

// later does something after d, unless the follow is over by then.
func (f *forwarder) later(ctx context.Context, d time.Duration, do func()) *time.Timer {
	return time.AfterFunc(d, func() {
		select {
		case f.due <- do:
		case <-ctx.Done():
		}
	})
}

// catchUp delivers what was recorded while nobody followed: steers are distinguished
// by their id, so a repeat is harmless; an ask that the run waits on and the
// thread has settled gets its answer.
func (f *forwarder) catchUp(ctx context.Context, s thread.Snapshot, asks bool) {
	f.setNetwork(ctx, s.Thread.Settings.Network)
	if s.Open == nil || s.Open.ID != f.lease.Turn {
		f.cancel(ctx)
		return
	}
	if s.Open.Interrupted {
		f.cancel(ctx)
	}
	for _, m := range s.Open.Steers {
		f.steer(ctx, m)
	}
	for _, a := range s.Asks {
		if f.own.has(a.Ask.ID) {
			f.parkLater(ctx, a.Ask)
		}
	}
	if asks {
		f.retryUntilSent(ctx, "settled asks", func() error { return f.settle(ctx) })
	}
}

// settle answers what the run waits on and the thread has settled.
func (f *forwarder) settle(ctx context.Context) error {
	pending, err := f.place.client.Pending(ctx)
	if err != nil || len(pending) == 0 {
		return err
	}
	asks, err := f.cfg.Threads.Asks(ctx, thole.SystemActor, f.lease.Thread, false)
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "read asks: %w", err)
	}
	for _, p := range pending {
		for _, a := range asks {
			switch {
			case a.Ask.ID != p.Ask.ID:
			case a.State == event.AskAnswered:
				f.answer(ctx, p.Ask.ID, *a.Answer, a.Receipt)
			case a.State == event.AskPending:
				f.parkLater(ctx, a.Ask)
			}
		}
	}
	return nil
}

func (f *forwarder) event(ctx context.Context, ev event.Event) {
	switch ev.Kind {
	case event.TurnSteered:
		f.steer(ctx, *ev.Data.Message)
	case event.TurnInterrupt:
		f.cancel(ctx)
	case event.AskRequested:
		f.parkLater(ctx, *ev.Data.Ask)
	case event.AskResolved:
		if t := f.timers[ev.Data.AskID]; t != nil {
			t.Stop()
		}
		// What the agent answered itself is no answer to be repeated.
		if ev.Data.Answer != nil && ev.Data.AskState == event.AskAnswered && !f.own.has(ev.Data.AskID) {
			f.answer(ctx, ev.Data.AskID, *ev.Data.Answer, ev.ID)
		}
	}
}

// steer gives the agent a message, after those before it.
func (f *forwarder) steer(ctx context.Context, m event.Message) {
	if m.Waits || slices.ContainsFunc(f.pendingSteers, func(have event.Message) bool { return have.ID == m.ID }) {
		return // not for this turn, or read in the record once more
	}
	if f.pendingSteers = append(f.pendingSteers, m); len(f.pendingSteers) == 1 {
		f.sendSteers(ctx)
	}
}

// steerRetry is the delay before a rejected steer is sent again.
const steerRetry = 100 * time.Millisecond

// sendSteers sends the pending steers, one after the other. An agent that is still
// starting, or between two things, is asked again; a steer it never takes goes back to
// the queue when the turn ends.
func (f *forwarder) sendSteers(ctx context.Context) {
	if len(f.pendingSteers) == 0 {
		return
	}
	m := f.pendingSteers[0]
	f.aside(ctx, func() error {
		_, err := f.place.client.Steer(ctx, wire.SteerRequest{Run: f.run, ID: m.ID, Input: m.Input, ClientID: m.ClientID})
		return err
	}, func(err error) {
		if code := thole.CodeOf(err); (code == thole.CodeConflict || code == thole.CodeUnavailable) && ctx.Err() == nil {
			f.again = f.later(ctx, steerRetry, func() { f.sendSteers(ctx) })
			return
		}
		f.tolerate("steer", err)
		f.pendingSteers = f.pendingSteers[1:]
		f.sendSteers(ctx)
	})
}

// answer brings the run an answer with its receipt: the event that recorded it. By
// that the thread knows it again, and distinguishes it from one that the agent gave itself.
func (f *forwarder) answer(ctx context.Context, id thole.AskID, a event.Answer, receipt thole.EventID) {
	f.aside(ctx, func() error {
		_, err := f.place.client.Reply(ctx, wire.ReplyRequest{Run: f.run, Ask: id, Answer: a, Receipted: wire.Receipted{Receipt: receipt}})
		return err
	}, func(err error) {
		if thole.CodeOf(err) == thole.CodeUnavailable && ctx.Err() == nil {
			f.later(ctx, steerRetry, func() { f.answer(ctx, id, a, receipt) })
			return
		}
		f.tolerate("answer", err)
	})
}

// retryUntilSent does what the run waits for, again and again while nobody can be asked:
// it is recorded, so nobody else will say it. It ends with the follow.
func (f *forwarder) retryUntilSent(ctx context.Context, what string, do func() error) {
	err := do()
	if thole.CodeOf(err) == thole.CodeUnavailable && ctx.Err() == nil {
		f.later(ctx, steerRetry, func() { f.retryUntilSent(ctx, what, do) })
		return
	}
	f.tolerate(what, err)
}

// cancelGrace is how long a provider has to stop before its process is killed.
const cancelGrace = 15 * time.Second

func (f *forwarder) cancel(ctx context.Context) {
	f.retryUntilSent(ctx, "interrupt", func() error { return f.sendCancel(ctx, false) })
	if f.kill == nil {
		f.kill = f.later(ctx, cancelGrace, func() {
			f.retryUntilSent(ctx, "kill", func() error { return f.sendCancel(ctx, true) })
			f.kill = f.later(ctx, cancelGrace, func() { f.deaf = true })
		})
	}
}

// sendCancel asks once; an executor that takes its time holds nothing else up for long.
func (f *forwarder) sendCancel(ctx context.Context, kill bool) error {
	within, done := context.WithTimeout(ctx, cancelGrace/3)
	defer done()
	_, err := f.place.client.Cancel(within, wire.CancelRequest{Run: f.run, Kill: kill})
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return thole.Errorf(thole.CodeUnavailable, "the executor does not answer in time: %w", err)
	}
	return err
}

// parkLater gives an ask some time to be answered while the agent waits, and then
// parks the turn, if the provider can take the answer up later.
func (f *forwarder) parkLater(ctx context.Context, ask event.Ask) {
	if ask.Kind == event.AskTool {
		return // gone with its agent
	}
	if f.timers[ask.ID] == nil && f.own.has(ask.ID) { // the CLI knows nothing of it
		f.timers[ask.ID] = f.later(ctx, f.cfg.ParkAfter, func() { f.parkOwn(ctx, ask.ID) })
		return
	}
	if f.timers[ask.ID] != nil || !ask.Kind.Parks() || !f.info.Capabilities.AskSurvives.OK() {
		return
	}
	f.timers[ask.ID] = f.later(ctx, f.cfg.ParkAfter, func() {
		f.retryUntilSent(ctx, "park", func() error {
			_, err := f.place.client.Reply(ctx, wire.ReplyRequest{Run: f.run, Ask: ask.ID, Defer: true})
			return err
		})
	})
}

func (f *forwarder) stopTimers() {
	for _, t := range f.timers {
		t.Stop()
	}
	for _, t := range []*time.Timer{f.kill, f.again} {
		if t != nil {
			t.Stop()
		}
	}
}

// tolerate notes what a wish met. A run that is over or an ask that is settled is
// no failure: the thread hears of it through the log.
func (f *forwarder) tolerate(what string, err error) {
	if err == nil || errors.Is(err, context.Canceled) || thole.CodeOf(err) == thole.CodeConflict || thole.CodeOf(err) == thole.CodeNotFound {
		return
	}
	f.log.Warn("forward "+what, "turn", f.lease.Turn, "err", err)
}
