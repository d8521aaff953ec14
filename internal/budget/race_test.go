package budget_test

import (
	"sync"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/budget"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// Fifty turns run into a limit at once, on two servers where the engine allows two.
// Nothing goes beyond it, and what the budget says is what the calls add up to.
func TestFiftyTurnsAtTheLimit(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		db := storetest.SQLite(t)
		fiftyTurns(t, newRig(t, db, "a"), newRig(t, db, "b"))
	})
	t.Run("postgres", func(t *testing.T) {
		lab.Postgres(t)
		var dsn string
		one := storetest.Postgres(t, func(c *sqldb.Config) { dsn = c.DSN })
		two, err := store.Open(ctx, sqldb.Config{DSN: dsn})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = two.Close() })
		fiftyTurns(t, newRig(t, one, "a"), newRig(t, two, "b"))
	})
}

func fiftyTurns(t *testing.T, servers ...*rig) {
	const turns, limit, call = 50, 1000, 30 // 33 calls fit
	user := servers[0].set(perDay(budget.ScopeUser, budget.ActionInterrupt, budget.Amount{Micros: limit}))
	app := servers[0].set(budget.Budget{Scope: budget.ScopeApp, Period: budget.PeriodTotal, Action: budget.ActionWarn, Soft: 50, Tokens: limit})
	var places []budget.Place
	for range turns {
		p, _ := servers[0].turn()
		places = append(places, p)
	}
	var all sync.WaitGroup
	begin := make(chan struct{})
	for i, p := range places {
		all.Go(func() {
			r := servers[i%len(servers)]
			<-begin
			for {
				id, err := r.Begin(ctx, callOf(p, call))
				if err != nil {
					if thole.CodeOf(err) != thole.CodeBudgetExceeded {
						t.Errorf("begin: %v", err)
					}
					return
				}
				if err := r.End(ctx, id, used(call-10, 10)); err != nil {
					t.Errorf("end: %v", err)
				}
			}
		})
	}
	close(begin)
	all.Wait()
	r := servers[0]
	got := r.state(user)
	if got.Spent.Micros > limit || got.Spent.Micros <= limit-call || got.Reserved != (budget.Amount{}) {
		t.Errorf("%+v of a limit of %d", got, limit)
	}
	if sum := r.number(`select cast(sum(cost_micros) as bigint) from gateway_calls where state = 'settled'`); sum != got.Spent.Micros {
		t.Errorf("the calls cost %d and the budget says %d", sum, got.Spent.Micros)
	}
	if n := r.number(`select count(*) from gateway_calls where state = 'refused'`); n != turns {
		t.Errorf("%d calls were refused", n)
	}
	if n := r.number(`select count(*) from budget_notices where budget_id = $1`, app.ID); n != 1 {
		t.Errorf("%d notices of half the limit", n)
	}
}

func callOf(p budget.Place, most int64) budget.Call { return call(p, most-10, 10) }
