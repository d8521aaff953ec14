package dispatch

import (
	"context"
	"errors"
	"slices"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/backoff"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/measure"
	"github.com/tholehq/thole/internal/thread"
)

// follow brings a run's events into the thread and the thread's wishes to the
// run, until the run is over. It returns errParked when the run ended on a
// question, errLost when its end will never come.
func (w *worker) follow(ctx context.Context, p *place, r wire.Run, again int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sub, err := w.watch(ctx)
	if err != nil {
		return err
	}
	wishes := make(chan struct{})
	go func() {
		defer close(wishes)
		if err := w.forward(ctx, p, r, sub); err != nil {
			cancel(err) // deaf to the thread, nobody may follow a run
		}
	}()
	looks := make(chan struct{})
	go func() {
		defer close(looks)
		w.watchDisk(ctx, p.row.ID, cancel)
	}()
	budgets := make(chan struct{})
	go func() {
		defer close(budgets)
		w.watchBudget(ctx, p.row.ID, cancel)
	}()
	defer func() {
		cancel(nil)
		<-wishes
		<-looks
		<-budgets
	}()
	pump := &pump{worker: w, place: p, run: r.ID, again: again, cursor: r.Acked, receipts: r.Receipts}
	if r.Acked == 0 {
		pump.asked = time.Now()
	}
	broken := backoff.Policy{Min: 50 * time.Millisecond, Max: 2 * time.Second}.Begin()
	for {
		from := pump.cursor
		err := p.client.Events(ctx, r.ID, pump.cursor, func(batch []wire.LogEvent) error { return pump.apply(ctx, batch) })
		switch {
		case pump.ended:
			return pump.close(ctx)
		case errors.Is(err, errLost):
			_ = p.client.Ack(ctx, wire.AckRequest{Run: r.ID, Cursor: pump.cursor, Forget: true})
			return err
		case err == nil:
			// The log is sealed without an end: executord restarted under the run, or says why
			// another one is to take its place.
			err := w.lost(ctx, p, r.ID)
			_ = p.client.Ack(ctx, wire.AckRequest{Run: r.ID, Cursor: pump.cursor, Forget: true})
			return err
		case errors.Is(context.Cause(ctx), errDeaf):
			w.log.Warn("the executor does not end an interrupted turn and is stopped", "turn", w.lease.Turn, "executor", p.row.ID)
			if err := w.cfg.Driver.Stop(context.WithoutCancel(ctx), p.row.ID); err != nil {
				return err // it may still work; the next try asks again
			}
			return errDeaf
		case ctx.Err() != nil:
			if cause := context.Cause(ctx); errors.Is(cause, errTooLong) || beyond(cause) || overspent(cause) {
				_, err = p.client.Cancel(context.WithoutCancel(ctx), wire.CancelRequest{Run: r.ID, Kill: true})
			}
			return errors.Join(context.Cause(ctx), err)
		case errors.Is(err, executorclient.ErrBeyond):
			// It ends whatever it says to that; the turn does here.
			_, _ = p.client.Cancel(ctx, wire.CancelRequest{Run: r.ID, Kill: true})
			return err
		case thole.CodeOf(err) != thole.CodeUnavailable:
			return err
		}
		if err := w.alive(ctx, p); err != nil && !errors.Is(err, errDeaf) {
			return err
		}
		if pump.cursor > from {
			broken.Reset()
		}
		_ = broken.Wait(ctx) // one that never says anything is not asked all the time
	}
}

// lost is errLost, with the reason that the executor has for it.
func (w *worker) lost(ctx context.Context, p *place, id thole.TurnID) error {
	st, err := p.client.Status(ctx)
	if err != nil {
		return errLost //nolint:nilerr // it is lost anyway
	}
	for _, r := range st.Runs {
		if r.ID == id && r.Again != "" {
			return &movedError{why: r.Again}
		}
	}
	return errLost
}

// movedError is errLost of a run whose turn goes on in another box of the same executor.
type movedError struct{ why string }

func (e *movedError) Error() string        { return "dispatch: " + e.why }
func (e *movedError) Is(target error) bool { return target == errLost }

// alive decides what a broken stream means: the executor runs (try again), or it
// does not (the run is lost). An executor that has processes but does not answer
// is asked a few times before it is given up.
func (w *worker) alive(ctx context.Context, p *place) error {
	var last error
	for range (backoff.Policy{Min: 50 * time.Millisecond, Max: 2 * time.Second}).Tries(ctx, 7) {
		info, err := w.cfg.Driver.Inspect(ctx, p.row.ID)
		switch {
		case err == nil && info.State == executor.Running && info.Boot == p.info.Boot:
			return nil
		case err == nil:
			return errDead
		}
		last = err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(errDead, last)
}

// pump appends one run's events to its thread.
type pump struct {
	*worker
	place   *place
	run     thole.TurnID
	again   int // how often the turn was taken up again
	cursor  uint64
	ended   bool
	over    bool // the thread has ended the turn: the run, which is canceled, is only seen out
	parked  bool
	waiting int
	touched time.Time
	// receipts: the executor says with which receipt an answer came. One that was
	// started by an older version does not.
	receipts bool
	asked    time.Time // when the run began, until its agent has shown something
}

// apply stores a batch, then acknowledges it: a crash in between reads it again,
// and the thread drops what it knows by its id.
func (p *pump) apply(ctx context.Context, batch []wire.LogEvent) error {
	if p.over {
		p.ended = slices.ContainsFunc(batch, func(ev wire.LogEvent) bool { return ev.Event.Kind == event.TurnEnded })
		p.cursor = batch[len(batch)-1].Cursor
		return nil
	}
	events := make([]event.Event, len(batch))
	waiting := p.waiting
	for i, ev := range batch {
		events[i] = ev.Event
		events[i].Turn = p.lease.Turn
		switch ev.Event.Kind {
		case event.AskRequested:
			waiting++
		case event.AskResolved:
			waiting = max(0, waiting-1)
		case event.TurnEnded:
			if ev.Event.Outcome == "" {
				return thole.Errorf(thole.CodeInternal, "executor reported an end without an outcome")
			}
			p.ended = true
			events[i].Error = p.explain(ev.Event.Error)
			p.worker.parked(&events[i])
		case event.UsageUpdated:
			events[i].Usage = p.priced(ev.Event.Usage)
		}
	}
	var posted []string
	if p.ended {
		var err error
		if events, posted, err = p.judge(ctx, events); err != nil {
			p.ended = false
			return err
		}
		p.parked = events[len(events)-1].AskID != ""
	}
	if err := p.vouch(ctx, events); err != nil {
		p.ended = false
		return err
	}
	if err := p.stillborn(ctx, events); err != nil {
		p.ended = false
		return err
	}
	p.heard(events)
	if p.ended && !p.parked {
		p.first(ctx, p.place.row.ID)
	}
	err := p.step(ctx, measure.Apply, func(ctx context.Context) error { return p.cfg.Threads.Apply(ctx, p.ref(p.place.row.ID), events) })
	if errors.Is(err, thread.ErrOver) { // it was stopped before the thread heard of its run
		p.over, p.parked = true, false
		return p.apply(ctx, batch)
	}
	if err != nil {
		p.ended = false
		return err
	}
	p.reported(ctx, posted)
	if (waiting > 0) != (p.waiting > 0) && !p.ended {
		// Who waits for a human takes no slot from those who do not.
		if err := p.cfg.Queue.Wait(ctx, p.lease.Turn, p.lease.Token, p.own.waits(waiting > 0)); err != nil {
			return err
		}
	}
	p.waiting = waiting
	p.cursor = batch[len(batch)-1].Cursor
	if now := p.cfg.Now(); now.Sub(p.touched) > time.Minute {
		p.touched = now
		if err := p.cfg.Rows.Touch(ctx, p.place.row.ID); err != nil {
			return err
		}
	}
	if p.ended {
		return nil
	}
	return p.place.client.Ack(ctx, wire.AckRequest{Run: p.run, Cursor: p.cursor})
}

// vouch gives answers their receipts that an older executor could not give them.
func (p *pump) vouch(ctx context.Context, events []event.Event) error {
	for i := range events {
		if e := &events[i]; p.receipts || e.Kind != event.AskResolved || e.Answer == nil {
			continue
		}
		asks, err := p.cfg.Threads.Asks(ctx, thole.SystemActor, p.lease.Thread, false)
		if err != nil {
			return err
		}
		for _, a := range asks {
			if a.Ask.ID == events[i].AskID {
				events[i].Receipt = a.Receipt
			}
		}
	}
	return nil
}

// heard measures how long the agent's first words took.
func (p *pump) heard(events []event.Event) {
	if !p.asked.IsZero() && slices.ContainsFunc(events, func(e event.Event) bool { return e.Kind == event.ItemDelta || e.Item != nil && shows(*e.Item) }) {
		p.cfg.Meter.Took(measure.ModelWait, time.Since(p.asked))
		p.asked = time.Time{}
	}
}

// explain adds an out-of-memory hint when the agent was killed for its memory use.
func (p *pump) explain(end *thole.TurnError) *thole.TurnError {
	if end == nil || end.Code != thole.ErrProviderCrashed || !p.starved(p.place) {
		return end
	}
	te := *end
	te.Message += "; the executor went beyond its memory limit"
	te.Hint = "raise executor.memory_mb, or ask for less at once"
	return &te
}

// stillborn is errDiedBeforeOutput when a turn's first run ended with its agent's death
// before the agent showed anything. It may have died while it was idle, and then
// the turn's message only came at the wrong moment.
func (p *pump) stillborn(ctx context.Context, events []event.Event) error {
	end := events[len(events)-1]
	if p.again > 0 || end.Kind != event.TurnEnded || end.Error == nil || end.Error.Code != thole.ErrProviderCrashed {
		return nil
	}
	for _, e := range events {
		if e.Item != nil && shows(*e.Item) {
			return nil
		}
	}
	begun, err := p.begun(ctx, shows)
	if err == nil && !begun {
		err = errDiedBeforeOutput
	}
	return err
}

// close lets executord forget a run that the thread has whole.
func (p *pump) close(ctx context.Context) error {
	err := p.place.client.Ack(ctx, wire.AckRequest{Run: p.run, Cursor: p.cursor, Forget: true})
	if err != nil {
		// It keeps a log nobody reads; the executor's removal takes it along.
		p.log.Debug("forget run", "turn", p.lease.Turn, "err", err)
	}
	if p.parked {
		return errParked
	}
	return nil
}
