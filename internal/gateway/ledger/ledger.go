// Package ledger counts the gateway's calls in the ledger of budgets: it converts between
// their words and decides nothing.
package ledger

import (
	"context"

	"github.com/tholehq/thole/internal/budget"
	"github.com/tholehq/thole/internal/gateway"
)

// Of returns the gateway's view of a ledger.
func Of(l *budget.Ledger) gateway.Ledger { return ledger{l} }

type ledger struct{ books *budget.Ledger }

func (l ledger) Begin(ctx context.Context, c gateway.Call) (string, error) {
	return l.books.Begin(ctx, budget.Call{
		Place: budget.Place{Owner: c.Owner, Thread: c.Thread, Turn: c.Turn}, Executor: c.Executor, Provider: c.Provider,
		Route: c.Route, Upstream: c.Upstream, Model: c.Model, Path: c.Path, Input: c.InputEstimate, MaxOutput: c.MaxOutput, At: c.At,
	})
}

func (l ledger) End(ctx context.Context, id string, r gateway.Result) error {
	return l.books.End(ctx, id, budget.Result{
		Usage: r.Usage, Known: r.Known, Status: r.Status, Upstream: r.Upstream, Error: r.Error,
		FirstByteAt: r.FirstByteAt, EndedAt: r.EndedAt, Waited: r.Waited,
	})
}
