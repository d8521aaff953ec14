package store

import (
	"context"
	"database/sql"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/budget"
	"github.com/tholehq/thole/internal/sqldb"
)

// Notices implements budget.Store.
func (s *Budgets) Notices(ctx context.Context, id thole.ThreadID) (all []budget.Notice, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		all, err = sqldb.All(tx, func(rows *sql.Rows) (n budget.Notice, err error) {
			var at int64
			err = rows.Scan(&n.ID, &n.Turn, &n.Text, &at)
			n.At = thole.FromMillis(at)
			return n, err
		}, `select id, turn_id, body, at from budget_notices where thread_id = $1 and not posted order by at, id`, id)
		return err
	})
	return all, err
}

// Posted implements budget.Store.
func (s *Budgets) Posted(ctx context.Context, ids []string) error {
	return s.db.Update(ctx, "budget.posted", func(tx *sqldb.Tx) error {
		for _, id := range ids {
			if _, err := tx.Exec(`update budget_notices set posted = true where id = $1 and not posted`, id); err != nil {
				return err
			}
		}
		return nil
	})
}

// Set implements budget.Store.
func (s *Budgets) Set(ctx context.Context, b budget.Budget, expect int64, by thole.Actor, at time.Time) (set budget.Budget, err error) {
	err = s.db.Update(ctx, "budget.set", func(tx *sqldb.Tx) error {
		if s.db.Engine() == sqldb.Postgres {
			// Calls and turns that are being recorded may not see the new budget: they come
			// before it and are in its sums. Those after it see it.
			if _, err := tx.Exec(`lock table gateway_calls, turn_usage in share mode`); err != nil {
				return err
			}
		}
		set = b
		if err := subjectExists(tx, b); err != nil {
			return err
		}
		have, err := sqldb.All(tx, scanBudget, `select `+budgetColumns+` from budgets where scope = $1 and subject = $2 and period = $3`+tx.ForUpdate(), string(b.Scope), b.Subject, string(b.Period))
		if err != nil {
			return err
		}
		set.Version, set.By, set.Created, set.Updated = 1, by.User, at, at
		if len(have) == 1 {
			old := have[0]
			set.ID, set.Version, set.By, set.Created = old.ID, old.Version+1, old.By, old.Created
			if expect < 0 || expect > 0 && expect != old.Version {
				return errBudgetMoved(old.ID)
			}
			// What was said of the old limits is over; what is reached of the new ones is said again.
			if err := tx.Must("the budget is there", `update budgets set limit_micros = $2, limit_tokens = $3, soft_pct = $4, action = $5, version = $6, updated_at = $7
				where id = $1 and version = $8`, set.ID, set.Micros, set.Tokens, set.Soft, string(set.Action), set.Version, instant(at), old.Version); err != nil {
				return err
			}
			if _, err := tx.Exec(`update budget_states set notified = 0 where budget_id = $1`, set.ID); err != nil {
				return err
			}
			if _, err := tx.Exec(`delete from budget_notices where budget_id = $1 and not posted`, set.ID); err != nil {
				return err
			}
		} else {
			if expect > 0 {
				return budget.NotFound(b.ID)
			}
			_, err := tx.Exec(`insert into budgets (`+budgetColumns+`) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
				set.ID, string(set.Scope), set.Subject, string(set.Period), set.Micros, set.Tokens, set.Soft, string(set.Action), set.Version, set.By, instant(at), instant(at))
			if err != nil {
				return err
			}
		}
		return recordChange(tx, "set", set, by, at)
	})
	return set, err
}

// subjectExists refuses a budget for something that is not there: it would never hold.
func subjectExists(tx *sqldb.Tx, b budget.Budget) error {
	table, limited := map[budget.Scope]string{budget.ScopeUser: "users", budget.ScopeProject: "projects", budget.ScopeApp: "apps", budget.ScopeThread: "threads"}[b.Scope]
	if b.Subject == "" || !limited {
		return nil
	}
	found, err := sqldb.All(tx, scanID[string], `select id from `+table+` where id = $1`, b.Subject)
	if err == nil && len(found) == 0 {
		err = thole.Errorf(thole.CodeNotFound, "there is no %s %s", b.Scope, b.Subject).WithHint("leave the id out to limit each %s by itself", b.Scope)
	}
	return err
}

func recordChange(tx *sqldb.Tx, action string, b budget.Budget, by thole.Actor, at time.Time) error {
	_, err := tx.Exec(`insert into budget_changes (budget_id, seq, action, actor, body, at)
		select $1, coalesce(max(seq), 0) + 1, $2, $3, $4, $5 from budget_changes where budget_id = $1`, b.ID, action, asJSON(by), asJSON(b), instant(at))
	if err != nil {
		return err
	}
	_, err = link(tx, byActor(tx, by, audit.Entry{At: at, Action: "budget." + action, Kind: "budget", ID: string(b.ID), After: asJSON(b)}))
	return err
}

func errBudgetMoved(id budget.ID) error {
	return thole.Errorf(thole.CodeConflict, "budget %s was changed meanwhile", id).WithHint("look at it again")
}

// Remove implements budget.Store.
func (s *Budgets) Remove(ctx context.Context, id budget.ID, expect int64, by thole.Actor, at time.Time) error {
	return s.db.Update(ctx, "budget.remove", func(tx *sqldb.Tx) error {
		have, err := sqldb.All(tx, scanBudget, `select `+budgetColumns+` from budgets where id = $1`+tx.ForUpdate(), id)
		if err != nil {
			return err
		}
		if len(have) == 0 {
			return budget.NotFound(id)
		}
		if expect > 0 && expect != have[0].Version {
			return errBudgetMoved(id)
		}
		if err := tx.Must("the budget is there", `delete from budgets where id = $1 and version = $2`, id, have[0].Version); err != nil {
			return err
		}
		if _, err := tx.Exec(`delete from budget_notices where budget_id = $1 and not posted`, id); err != nil {
			return err
		}
		return recordChange(tx, "remove", have[0], by, at)
	})
}

// Get implements budget.Store.
func (s *Budgets) Get(ctx context.Context, id budget.ID) (b budget.Budget, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		have, err := sqldb.All(tx, scanBudget, `select `+budgetColumns+` from budgets where id = $1`, id)
		if err == nil && len(have) == 0 {
			err = budget.NotFound(id)
		}
		if err == nil {
			b = have[0]
		}
		return err
	})
	return b, err
}

// List implements budget.Store.
func (s *Budgets) List(ctx context.Context) (all []budget.Budget, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		all, err = sqldb.All(tx, scanBudget, `select `+budgetColumns+` from budgets order by scope, subject, period`)
		return err
	})
	return all, err
}

// States implements budget.Store.
func (s *Budgets) States(ctx context.Context, b budget.Budget, at time.Time, limit int) (all []budget.State, err error) {
	start, _ := b.Period.Bounds(at)
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		if b.Subject != "" {
			st, _, err := readState(tx, b, b.Subject, at, "")
			all = []budget.State{st}
			return err
		}
		all, err = sqldb.All(tx, scanState, `select `+stateColumns+` from budget_states where budget_id = $1 and period_start = $2
			order by spent_micros desc, spent_tokens desc, subject limit $3 + 0`, b.ID, instant(start), int64(limit))
		return err
	})
	return all, err
}

// Changes implements budget.Store.
func (s *Budgets) Changes(ctx context.Context, id budget.ID, limit int) (all []budget.Change, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		all, err = sqldb.All(tx, func(rows *sql.Rows) (c budget.Change, err error) {
			var actor, body string
			var at int64
			if err = rows.Scan(&c.Action, &actor, &body, &at); err == nil {
				err = fromJSON(actor, &c.Actor)
			}
			if err == nil {
				err = fromJSON(body, &c.Budget)
			}
			c.At = thole.FromMillis(at)
			return c, err
		}, `select action, actor, body, at from budget_changes where budget_id = $1 order by seq desc limit $2 + 0`, id, int64(limit))
		return err
	})
	return all, err
}
