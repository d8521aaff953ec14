package system

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/budget"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/metrics"
	"github.com/tholehq/thole/internal/price"
	"github.com/tholehq/thole/internal/store"
)

// books are the price table and the ledger of model calls.
type books struct {
	ledger *budget.Ledger
	log    *slog.Logger
}

// openBooks reads the price table: prices.toml of the home, else the built-in one.
func openBooks(cfg *config.Config, db *store.DB, m *meter, log *slog.Logger) (*books, error) {
	prices, err := price.Open(filepath.Join(cfg.Home, "prices.toml"), false, log)
	if err != nil {
		return nil, err
	}
	return &books{log: log, ledger: budget.NewLedger(db.Budgets(), prices.Table, thole.NewID[string], newBudgetMeter(m.set), log)}, nil
}

func (b *books) admit(ctx context.Context, o thole.Owner, id thole.ThreadID) error {
	return b.ledger.Admit(ctx, budget.Place{Owner: o, Thread: id}, time.Now())
}

// reconcile settles the calls of the process before this one. The home is ours, so
// whatever is reserved was left behind, also by a clock that was ahead.
func (b *books) reconcile(ctx context.Context) error {
	n, err := b.ledger.Reconcile(ctx, time.Now())
	if n > 0 {
		b.log.Warn("model calls were cut off with the last process; they count with what was reserved for them", "calls", n)
	}
	return err
}

// budgetMeter counts what the ledger reports.
type budgetMeter struct{ refused, unknown, differs func() }

func newBudgetMeter(set *metrics.Set) budgetMeter {
	return budgetMeter{
		refused: set.Counter("thole_budget_refusals_total", "Turns and model calls that a budget refused."),
		unknown: set.Counter("thole_gateway_unknown_usage_total", "Model calls whose usage nobody knows; they count with an upper bound."),
		differs: set.Counter("thole_usage_differences_total", "Turns whose agent reported more than 5 % more or fewer tokens than its calls used."),
	}
}

func (m budgetMeter) Refused() { m.refused() }
func (m budgetMeter) Unknown() { m.unknown() }
func (m budgetMeter) Differs() { m.differs() }
