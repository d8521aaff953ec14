package dispatch

import (
	"context"
	"errors"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/measure"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/thread"
)

// worker has one lease. Its context ends with the lease.
type worker struct {
	*Dispatcher
	lease queue.Lease
	info  provider.Info // of the turn's provider; written under mu, because Steer reads it
	full  *errFull      // it found no room
	// network is what the thread may reach as the executor has it.
	network *event.NetworkPolicy
	budget  chan struct{} // one token: a budget may have something to say
	own     own           // asks through thole's tools
	th      fold.Thread   // as it was when the turn was claimed
	number  int           // of the turn
	kept    <-chan string // what after sends, once the files are kept; nil: not yet
}

// begin works on a lease in a goroutine of its own.
func (d *Dispatcher) begin(ctx context.Context, l queue.Lease) {
	w := &worker{Dispatcher: d, lease: l, budget: make(chan struct{}, 1)}
	if !d.admit(w) {
		w.giveBack(ctx)
		return
	}
	go func() {
		defer d.wg.Done()
		defer func() {
			d.mu.Lock()
			if d.workers[l.Turn] == w { // it may be ours again, under another lease
				delete(d.workers, l.Turn)
			}
			d.mu.Unlock()
			w.ended(ctx)
		}()
		held, letGo := w.hold(ctx)
		defer letGo()
		var err error
		if l.Kind == queue.Turn || l.Kind == "" {
			err = w.turn(held)
		} else {
			err = w.step(held, measure.Maintenance, w.maintain)
		}
		w.finish(held, err)
	}()
}

// admit counts a worker in, unless this dispatcher has stopped: a lease may come
// with a turn's start at any time.
func (d *Dispatcher) admit(w *worker) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.stopped {
		d.wg.Add(1)
		d.workers[w.lease.Turn] = w
	}
	return !d.stopped
}

// hold renews the lease until letGo. The context it returns dies when the lease
// is lost, because from then on another worker may be writing: when a renewal is
// refused, or when none came back for the length of a lease.
func (w *worker) hold(ctx context.Context) (held context.Context, letGo func()) {
	held, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	over := time.AfterFunc(w.cfg.Lease, func() { cancel(queue.ErrLeaseLost) })
	go func() {
		defer close(done)
		defer over.Stop()
		ticker := time.NewTicker(w.cfg.Lease / 3)
		defer ticker.Stop()
		for {
			select {
			case <-held.Done():
				return
			case <-ticker.C:
			}
			asked := time.Now()
			_, err := w.cfg.Queue.Renew(held, w.lease.Turn, w.lease.Token, w.cfg.Lease)
			switch {
			case err == nil:
				over.Reset(w.cfg.Lease - time.Since(asked))
			case errors.Is(err, queue.ErrLeaseLost):
				cancel(queue.ErrLeaseLost)
				return
			}
		}
	}()
	return held, func() {
		cancel(nil)
		<-done
	}
}

// finish gives the lease back: complete when all is done, ready to be tried again
// when not. A lease that is lost, or a dispatcher that stops, leaves the row for
// the next claim.
func (w *worker) finish(ctx context.Context, err error) {
	waits := (*errWaits)(nil)
	if !errors.As(err, &waits) || ctx.Err() != nil {
		w.full = nil
	}
	if ctx.Err() != nil {
		if errors.Is(context.Cause(ctx), queue.ErrLeaseLost) {
			w.cfg.Meter.Count(measure.Fenced)
			w.log.Warn("lease lost", "turn", w.lease.Turn)
			return
		}
		w.giveBack(ctx)
		return
	}
	// A stop that comes now must not leave the thread waiting for the lease's end;
	// the token fences this write, not the context.
	ctx = context.WithoutCancel(ctx)
	if waits == nil {
		w.mu.Lock()
		delete(w.waits, w.lease.Turn)
		w.mu.Unlock()
	}
	switch {
	case waits != nil:
		err = w.cfg.Queue.PutBack(ctx, w.lease.Turn, w.lease.Token, waits.delay, waits.Error())
	case err == nil:
		err = w.cfg.Queue.Complete(ctx, w.lease.Turn, w.lease.Token)
	case errors.Is(err, errParked):
		err = w.park(ctx)
	case isFenced(err):
		w.cfg.Meter.Count(measure.Fenced)
		return
	default:
		w.cfg.Meter.Count(measure.Retried)
		w.log.Warn("turn goes back to the queue", "turn", w.lease.Turn, "thread", w.lease.Thread, "err", err)
		err = w.cfg.Queue.Release(ctx, w.lease.Turn, w.lease.Token, queue.Backoff(w.lease.Attempt), err.Error())
	}
	if err != nil && !errors.Is(err, queue.ErrLeaseLost) {
		w.log.Warn("give lease back", "turn", w.lease.Turn, "err", err)
	}
}

func (w *worker) giveBack(ctx context.Context) {
	if err := w.cfg.Queue.PutBack(context.WithoutCancel(ctx), w.lease.Turn, w.lease.Token, 0, "the dispatcher stopped"); err != nil {
		w.log.Warn("release turn", "turn", w.lease.Turn, "err", err)
	}
}

// errParked ends a worker whose turn waits for a human with nothing running.
var errParked = errors.New("dispatch: turn is parked")

// park parks the row. An answer that came before the row was parked found nothing
// to unpark, so look once more.
func (w *worker) park(ctx context.Context) error {
	if err := w.cfg.Queue.Park(ctx, w.lease.Turn, w.lease.Token); err != nil {
		return err
	}
	t, err := w.cfg.Threads.Turn(ctx, thole.SystemActor, w.lease.Thread, w.lease.Turn)
	if err == nil && t.Deferred == "" {
		_, err = w.cfg.Queue.Unpark(ctx, w.lease.Turn)
	}
	return err
}

func (w *worker) ref(id thole.ExecutorID) thread.TurnRef {
	return thread.TurnRef{Thread: w.lease.Thread, Turn: w.lease.Turn, Token: w.lease.Token, Executor: id}
}

// turn finds what was leased and works on it.
func (w *worker) turn(ctx context.Context) error {
	th, err := w.cfg.Threads.Get(ctx, thole.SystemActor, w.lease.Thread)
	if thole.CodeOf(err) == thole.CodeNotFound {
		return w.abandon(ctx)
	}
	if err != nil {
		return err
	}
	t, err := w.cfg.Threads.Turn(ctx, thole.SystemActor, w.lease.Thread, w.lease.Turn)
	if thole.CodeOf(err) == thole.CodeNotFound {
		return w.abandon(ctx)
	}
	if err != nil {
		return err
	}
	return measure.Do(ctx, w.cfg.Meter, w.measured(measure.Turn, t), func(ctx context.Context) error {
		w.claimed(ctx, t)
		return w.pipeline(ctx, th, t)
	})
}

// pipeline takes a turn from wherever it is to its end.
func (w *worker) pipeline(ctx context.Context, th fold.Thread, t fold.Turn) (err error) {
	if t.Outcome != "" {
		return w.finishPipeline(ctx, th, t)
	}
	w.th, w.number = th, t.Number
	info := w.cfg.Info(ctx, t.Settings.Provider)
	w.mu.Lock()
	w.info = info
	w.mu.Unlock()
	if err = errParked; t.Deferred == "" {
		err = w.run(ctx, th, t)
	}
	switch {
	case err == nil:
	case errors.Is(err, errParked):
		w.leave(ctx, th)
		return err
	case ctx.Err() != nil, errors.Is(err, thread.ErrFenced):
		return err
	case isAway(err), errors.As(err, new(*errFull)):
		return w.wait(ctx, t, err)
	case w.lease.Attempt >= queue.MaxAttempts || permanent(err):
		err = w.fail(ctx, t, err)
		if thole.CodeOf(err) == thole.CodeNotFound {
			return w.abandon(ctx)
		}
		if err != nil {
			return err
		}
	default:
		return err
	}
	if t, err = w.cfg.Threads.Turn(ctx, thole.SystemActor, w.lease.Thread, w.lease.Turn); err != nil {
		return err
	}
	return w.finishPipeline(ctx, th, t)
}

// permanent reports whether trying again could not help.
func permanent(err error) bool {
	switch thole.CodeOf(err) {
	case thole.CodeInvalid, thole.CodeUnsupported, thole.CodeForbidden, thole.CodeNotFound, thole.CodeGone, thole.CodeBudgetExceeded:
		return true
	}
	return false
}

// fail ends a turn that could not be run, with a note that says why.
func (w *worker) fail(ctx context.Context, t fold.Turn, why error) error {
	now := w.cfg.Now().UTC()
	te := &thole.TurnError{Code: thole.ErrProviderCrashed, Message: why.Error(), Hint: thole.HintOf(why)}
	if permanent(why) {
		te.Code = thole.ErrBadRequest
	}
	if errors.Is(why, executorclient.ErrBeyond) || beyond(why) {
		te.Code = thole.ErrLimit
	}
	text := "thole could not run this turn: " + why.Error()
	if overspent(why) {
		te.Code, text = thole.ErrBudget, "thole ended this turn: "+why.Error()
	}
	note := event.Item{
		ID: provider.StableID[thole.ItemID]("failed", string(t.ID)), Kind: event.ItemSystem, State: event.StateFailed,
		Text: text, Stamp: thole.Stamp{Started: now, Ended: now},
	}
	return w.cfg.Threads.Apply(ctx, w.ref(t.Executor), []event.Event{
		{ID: provider.StableID[thole.EventID]("failed-note", string(t.ID)), Kind: event.ItemCompleted, Turn: t.ID, Time: now, Data: event.Data{Item: &note, ItemID: note.ID}},
		{ID: provider.StableID[thole.EventID]("failed", string(t.ID)), Kind: event.TurnEnded, Turn: t.ID, Time: now, Data: provider.Ended{Outcome: thole.OutcomeFailed, Error: te}.Data()},
	})
}
