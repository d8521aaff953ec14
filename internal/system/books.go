package system

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/budget"
	"github.com/tholehq/thole/internal/config"
	people "github.com/tholehq/thole/internal/identity"
	"github.com/tholehq/thole/internal/metrics"
	"github.com/tholehq/thole/internal/platform/spend"
	"github.com/tholehq/thole/internal/price"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/thread"
)

// books are the price table and the ledger of model calls.
type books struct {
	db     *store.DB
	prices *price.File
	ledger *budget.Ledger
	log    *slog.Logger
}

// openBooks reads the price table: the file that the configuration names, which must be
// there, else prices.toml of the home, else the built-in one.
func openBooks(cfg *config.Config, db *store.DB, m *meter, log *slog.Logger) (*books, error) {
	file, must := cfg.Prices.File, true
	if file == "" {
		file, must = filepath.Join(cfg.Home, "prices.toml"), false
	}
	prices, err := price.Open(file, must, log)
	if err != nil {
		return nil, err
	}
	return &books{db: db, prices: prices, log: log, ledger: budget.NewLedger(db.Budgets(), prices.Table, thole.NewID[string], newBudgetMeter(m.set, db), log)}, nil
}

func (b *books) admit(ctx context.Context, o thole.Owner, id thole.ThreadID) error {
	return b.ledger.Admit(ctx, budget.Place{Owner: o, Thread: id}, time.Now())
}

// reconcile settles the calls of the process before this one. The home is ours, so
// whatever is reserved was left behind, also by a clock that was ahead.
func (b *books) reconcile(ctx context.Context) error {
	now := time.Now()
	n, err := b.ledger.Reconcile(ctx, now.AddDate(1, 0, 0), now)
	if n > 0 {
		b.log.Warn("model calls were cut off with the last process; they count with what was reserved for them", "err", fmt.Errorf("%d calls", n))
	}
	return err
}

func (b *books) service(threads *thread.Machine, accounts *people.Machine) *spend.Service {
	return spend.New(spend.Config{
		Can: accounts.Can, Budgets: b.db.Budgets(), Usage: b.db.Index().Usage, Prices: b.prices.Table, Thread: threads.Get, Now: time.Now, NewID: thole.NewID[string]})
}

// budgetMeter counts what the ledger reports.
type budgetMeter struct{ refused, unknown, differs func() }

func newBudgetMeter(set *metrics.Set, db *store.DB) budgetMeter {
	set.Gauge("thole_budget_used_ratio", "What is used of a budget in this period, by the subject that used the most.", []string{"budget", "scope"}, func(ctx context.Context) ([]metrics.Value, error) {
		all, err := db.Budgets().List(ctx)
		var out []metrics.Value
		for _, b := range all {
			states, err := db.Budgets().States(ctx, b, time.Now(), 1)
			if err != nil {
				return out, err
			}
			v := metrics.Value{Labels: []string{string(b.ID), string(b.Scope)}}
			if len(states) > 0 {
				v.Value = b.Share(states[0])
			}
			out = append(out, v)
		}
		return out, err
	})
	return budgetMeter{
		refused: set.Counter("thole_budget_refusals_total", "Turns and model calls that a budget refused."),
		unknown: set.Counter("thole_gateway_unknown_usage_total", "Model calls whose usage nobody knows; they count with an upper bound."),
		differs: set.Counter("thole_usage_differences_total", "Turns whose agent reported more than 5 % more or fewer tokens than its calls used."),
	}
}

func (m budgetMeter) Refused() { m.refused() }
func (m budgetMeter) Unknown() { m.unknown() }
func (m budgetMeter) Differs() { m.differs() }
