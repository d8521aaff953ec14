package dispatch

import (
	"context"
	"slices"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/backoff"
	"github.com/tholehq/thole/internal/budget"
	"github.com/tholehq/thole/internal/provider"
)

// Budgets are what is recorded of the model calls of turns. Calls are safe to repeat.
type Budgets interface {
	// Refused is the error of a turn one of whose calls a budget refused, nil otherwise.
	Refused(ctx context.Context, thread thole.ThreadID, turn thole.TurnID) (*thole.Error, error)
	// Notices lists what is not yet in a thread's log, Posted takes them off.
	Notices(ctx context.Context, thread thole.ThreadID) ([]budget.Notice, error)
	Posted(ctx context.Context, ids []string) error
	// Watch calls fn when one of the two may have something new about a turn, "" for any.
	Watch(fn func(thole.TurnID)) (cancel func())
	// Ended compares the figures of a turn that is over.
	Ended(ctx context.Context, thread thole.ThreadID, turn thole.TurnID) error
	// Cost prices what an agent used that reported no cost; nil when nobody knows.
	Cost(provider string, at time.Time, u thole.Usage) *int64
}

type noBudgets struct{}

func (noBudgets) Refused(context.Context, thole.ThreadID, thole.TurnID) (*thole.Error, error) {
	return nil, nil
}
func (noBudgets) Notices(context.Context, thole.ThreadID) ([]budget.Notice, error) { return nil, nil }
func (noBudgets) Posted(context.Context, []string) error                           { return nil }
func (noBudgets) Watch(func(thole.TurnID)) func()                                  { return func() {} }
func (noBudgets) Ended(context.Context, thole.ThreadID, thole.TurnID) error        { return nil }
func (noBudgets) Cost(string, time.Time, thole.Usage) *int64                       { return nil }

// overspent reports whether a budget ended or refused something.
func overspent(err error) bool { return thole.CodeOf(err) == thole.CodeBudgetExceeded }

// budgetMoved lets the worker of a turn look what budgets say of it.
func (d *Dispatcher) budgetMoved(turn thole.TurnID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, w := range d.workers {
		if turn == "" || turn == id {
			select {
			case w.budget <- struct{}{}:
			default: // it will look
			}
		}
	}
}

// refused is the refusal of one of the turn's calls. It is durable: a turn whose
// process was killed right after the refusal ends with it all the same.
func (w *worker) refused(ctx context.Context) error {
	why, err := w.cfg.Budgets.Refused(ctx, w.lease.Thread, w.lease.Turn)
	if err != nil || why == nil {
		return err
	}
	return why
}

// watchBudget ends a run one of whose calls a budget refused, and puts notices into the
// thread's log meanwhile.
func (w *worker) watchBudget(ctx context.Context, id thole.ExecutorID, end context.CancelCauseFunc) {
	for {
		err := w.refused(ctx)
		if overspent(err) {
			w.log.Info("a budget ends a turn", "thread", w.lease.Thread, "turn", w.lease.Turn, "err", err)
			end(err)
			return
		}
		if err == nil {
			err = w.notify(ctx, id)
		}
		if err != nil && ctx.Err() == nil {
			w.log.Warn("read what budgets say of a turn", "turn", w.lease.Turn, "err", err)
			if backoff.Sleep(ctx, time.Second) != nil {
				return
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-w.budget:
		}
	}
}

// notify puts notices into the log of the running turn.
func (w *worker) notify(ctx context.Context, id thole.ExecutorID) error {
	notices, err := w.cfg.Budgets.Notices(ctx, w.lease.Thread)
	if err != nil || len(notices) == 0 {
		return err
	}
	events, ids := w.items(notices)
	if err := w.cfg.Threads.Apply(ctx, w.ref(id), events); err != nil {
		return err
	}
	return w.cfg.Budgets.Posted(ctx, ids)
}

// items makes items of notices. Their ids are the notices', so that none is there twice.
func (w *worker) items(notices []budget.Notice) (events []event.Event, ids []string) {
	for _, n := range notices {
		item := event.Item{
			ID: provider.StableID[thole.ItemID]("budget", n.ID), Kind: event.ItemSystem, State: event.StateCompleted, Text: n.Text,
			Stamp: thole.Stamp{Started: n.At, Ended: n.At},
		}
		ids = append(ids, n.ID)
		events = append(events, event.Event{
			ID: provider.StableID[thole.EventID]("budget", n.ID), Kind: event.ItemCompleted, Turn: w.lease.Turn, Time: n.At, Data: event.Data{Item: &item, ItemID: item.ID},
		})
	}
	return events, ids
}

// judge lets the refusal of a budget stand over what the agent says of its end: to the
// agent it was one more error of its model. A turn that its user stopped stays so.
// Notices go before the end.
func (p *pump) judge(ctx context.Context, events []event.Event) (judged []event.Event, posted []string, err error) {
	notices, err := p.cfg.Budgets.Notices(ctx, p.lease.Thread)
	if err != nil {
		return nil, nil, err
	}
	why, err := p.cfg.Budgets.Refused(ctx, p.lease.Thread, p.lease.Turn)
	if err != nil {
		return nil, nil, err
	}
	last := slices.IndexFunc(events, func(e event.Event) bool { return e.Kind == event.TurnEnded })
	end := events[last] // what comes after it is nobody's
	if why != nil && end.Outcome != thole.OutcomeInterrupted {
		end.Outcome, end.AskID = thole.OutcomeFailed, ""
		end.Error = &thole.TurnError{Code: thole.ErrBudget, Message: why.Error(), Hint: thole.HintOf(why)}
	}
	items, posted := p.items(notices)
	return append(append(events[:last:last], items...), end), posted, nil
}

// reported takes off what is in the log. A failure shows the notice to nobody twice: the
// log knows it.
func (p *pump) reported(ctx context.Context, posted []string) {
	if !p.ended {
		return
	}
	if len(posted) > 0 {
		if err := p.cfg.Budgets.Posted(ctx, posted); err != nil {
			p.log.Warn("take a budget's notice off", "turn", p.lease.Turn, "err", err)
		}
	}
	if err := p.cfg.Budgets.Ended(ctx, p.lease.Thread, p.lease.Turn); err != nil {
		p.log.Warn("compare the usage of a turn", "turn", p.lease.Turn, "err", err)
	}
}

// priced gives a usage a cost that its agent does not report.
func (p *pump) priced(u *thole.Usage) *thole.Usage {
	if u == nil || u.CostMicros != nil {
		return u
	}
	with := *u
	with.CostMicros = p.cfg.Budgets.Cost(p.info.Name, p.cfg.Now(), with)
	return &with
}
