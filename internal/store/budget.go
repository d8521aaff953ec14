package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/budget"
	"github.com/tholehq/thole/internal/sqldb"
)

// Budgets are the rows of model calls and of the limits on them: budget.Store.
//
// Rows are locked in one order: the call, its turn, budgets by id, their states. A turn's
// end goes the same way.
type Budgets struct{ db *DB }

var _ budget.Store = (*Budgets)(nil)

// Budgets gives the ledger's side of the store.
func (db *DB) Budgets() *Budgets { return &Budgets{db} }

const budgetTopic = "budgets"

// Watch implements budget.Store.
func (s *Budgets) Watch(fn func(thole.TurnID)) (cancel func()) {
	return s.db.Subscribe(budgetTopic, func(key string) { fn(thole.TurnID(key)) })
}

// Reserve implements budget.Store. The row comes first: it is what budget.set waits for.
func (s *Budgets) Reserve(ctx context.Context, id string, c budget.Call, most budget.Amount) (refusal *budget.Refusal, err error) {
	err = s.db.Update(ctx, "budget.reserve", func(tx *sqldb.Tx) error {
		refusal = nil
		var err error
		if c.Family, err = familyOf(tx, c.Thread); err != nil {
			return err
		}
		_, err = tx.Exec(`insert into gateway_calls (id, thread_id, turn_id, executor_id, app_id, project_id, user_id, provider, route, upstream, model, path,
				state, status, error, refusal, max_output, reserved_tokens, reserved_micros, input, output, reasoning, cache_read, cache_write,
				cost_micros, known, waited_ms, started_at, first_byte_at, ended_at, family_id, server_id)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 'reserved', 0, '', '', $13, $14, $15, 0, 0, 0, 0, 0, -1, false, 0, $16, 0, 0, $17, $18)`,
			id, c.Thread, c.Turn, c.Executor, c.Owner.App, c.Owner.Project, c.Owner.User, plainText(c.Provider), plainText(c.Route), plainText(c.Upstream), plainText(c.Model), plainText(c.Path),
			c.MaxOutput, most.Tokens, most.Micros, instant(c.At), c.Family, s.db.server)
		if err != nil {
			return err
		}
		if open, err := lockTurn(tx, c.Thread, c.Turn); err != nil || !open {
			if err == nil {
				err = thole.Errorf(thole.CodeGone, "turn %s is over", c.Turn)
			}
			return err
		}
		budgets, err := budgetsOf(tx, c.Place)
		if err != nil {
			return err
		}
		amount := budget.Amount{Micros: max(most.Micros, 0), Tokens: most.Tokens}
		states := make([]budget.State, len(budgets))
		for i, b := range budgets {
			if states[i], _, err = ensureState(tx, b, b.SubjectOf(c.Place), c.At, id); err != nil {
				return err
			}
			if !b.Fits(states[i], most) {
				r := b.Refuse(states[i], most, c.At)
				refusal = &r
				tx.Notify(budgetTopic, string(c.Turn))
				return refuseCall(tx, id, r, c.At)
			}
		}
		for i, b := range budgets {
			// The condition repeats Fits: whatever the locks are worth, no row goes beyond its limit.
			err := tx.Must("the budget has room", `update budget_states set reserved_micros = reserved_micros + $4, reserved_tokens = reserved_tokens + $5
				where budget_id = $1 and subject = $2 and period_start = $3 and ($6 <> 'interrupt'
					or (cast($7 as bigint) = 0 or spent_micros + reserved_micros + $4 <= $7) and (cast($8 as bigint) = 0 or spent_tokens + reserved_tokens + $5 <= $8))`,
				b.ID, states[i].Subject, instant(states[i].Start), amount.Micros, amount.Tokens, string(b.Action), b.Micros, b.Tokens)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return refusal, err
}

func refuseCall(tx *sqldb.Tx, id string, r budget.Refusal, at time.Time) error {
	return tx.Must("the call is reserved", `update gateway_calls set state = 'refused', refusal = $2, error = 'budget_exceeded', cost_micros = 0, known = true, ended_at = $3
		where id = $1 and state = 'reserved'`, id, asJSON(r), instant(at))
}

// lockTurn orders a call against the end of its turn. A turn that is not there is over.
func lockTurn(tx *sqldb.Tx, thread thole.ThreadID, turn thole.TurnID) (open bool, err error) {
	outcome, err := sqldb.All(tx, scanID[string], `select outcome from turns where thread_id = $1 and turn_id = $2`+tx.ForUpdate(), thread, turn)
	return len(outcome) == 1 && outcome[0] == "", err
}

const budgetColumns = `id, scope, subject, period, limit_micros, limit_tokens, soft_pct, action, version, created_by, created_at, updated_at`

func scanBudget(rows *sql.Rows) (b budget.Budget, err error) {
	var created, updated int64
	err = rows.Scan(&b.ID, &b.Scope, &b.Subject, &b.Period, &b.Micros, &b.Tokens, &b.Soft, &b.Action, &b.Version, &b.By, &created, &updated)
	b.Created, b.Updated = thole.FromMillis(created), thole.FromMillis(updated)
	return b, err
}

// selectBudgetsOf finds the budgets of a place.
const selectBudgetsOf = `select ` + budgetColumns + ` from budgets where scope = 'user' and subject in ('', $1) or scope = 'project' and subject in ('', $2)
	or scope = 'app' and subject in ('', $3) or scope = 'thread' and subject in ('', $4) or scope = 'turn' order by id`

// budgetsOf locks the budgets that apply to a place.
func budgetsOf(tx *sqldb.Tx, p budget.Place) ([]budget.Budget, error) {
	return sqldb.All(tx, scanBudget, selectBudgetsOf+tx.ForUpdate(), p.Owner.User, p.Owner.Project, p.Owner.App, p.Family)
}

// familyOf is the thread in whose budget another one counts.
func familyOf(tx *sqldb.Tx, id thole.ThreadID) (thole.ThreadID, error) {
	all, err := sqldb.All(tx, scanID[thole.ThreadID], `select case when source = $2 and parent_id <> '' then parent_id else id end from threads where id = $1`, id, thole.ThreadOfAgent)
	return append(all, id)[0], err
}

const stateColumns = `subject, period_start, spent_micros, spent_tokens, reserved_micros, reserved_tokens, unpriced, notified`

func scanState(rows *sql.Rows) (s budget.State, err error) {
	var start int64
	err = rows.Scan(&s.Subject, &start, &s.Spent.Micros, &s.Spent.Tokens, &s.Reserved.Micros, &s.Reserved.Tokens, &s.Unpriced, &s.Notified)
	s.Start = thole.FromMillis(start)
	return s, err
}

// readState reads what a subject uses of a budget, from the sums when there is no row yet.
// except is a call that is not to be counted.
func readState(tx *sqldb.Tx, b budget.Budget, subject string, at time.Time, except string) (st budget.State, there bool, err error) {
	start, next := b.Period.Bounds(at)
	have, err := sqldb.All(tx, scanState, `select `+stateColumns+` from budget_states where budget_id = $1 and subject = $2 and period_start = $3`, b.ID, subject, instant(start))
	if err != nil || len(have) == 1 {
		return append(have, st)[0], err == nil, err
	}
	st, err = sumState(tx, b.Scope, subject, start, next, except)
	return st, false, err
}

// scopeColumn is the column of a charge that a scope's subject stands in.
var scopeColumn = map[budget.Scope]string{
	budget.ScopeUser: "user_id", budget.ScopeProject: "project_id", budget.ScopeApp: "app_id", budget.ScopeThread: "family_id", budget.ScopeTurn: "turn_id",
}

const tokenSum = `input + output + reasoning + cache_read + cache_write`

// sumState computes a state from what happened in its period.
func sumState(tx *sqldb.Tx, scope budget.Scope, subject string, start, next time.Time, except string) (st budget.State, err error) {
	st.Subject, st.Start = subject, start
	column, to := scopeColumn[scope], int64(1)<<62
	if !next.IsZero() {
		to = instant(next)
	}
	err = tx.QueryRow(`select cast(coalesce(sum(case when cost_micros > 0 then cost_micros else 0 end), 0) as bigint), cast(coalesce(sum(`+tokenSum+`), 0) as bigint),
			cast(coalesce(sum(case when cost_micros < 0 then 1 else 0 end), 0) as bigint)
		from usage_charges where `+column+` = $1 and at >= $2 and at < $3`, subject, instant(start), to).Scan(&st.Spent.Micros, &st.Spent.Tokens, &st.Unpriced)
	if err != nil {
		return st, err
	}
	return st, tx.QueryRow(`select cast(coalesce(sum(case when reserved_micros > 0 then reserved_micros else 0 end), 0) as bigint), cast(coalesce(sum(reserved_tokens), 0) as bigint)
		from gateway_calls where state = 'reserved' and `+column+` = $1 and started_at >= $2 and started_at < $3 and id <> $4`,
		subject, instant(start), to, except).Scan(&st.Reserved.Micros, &st.Reserved.Tokens)
}

// ensureState makes the row of a state that has none. Its budget is locked.
func ensureState(tx *sqldb.Tx, b budget.Budget, subject string, at time.Time, except string) (st budget.State, fresh bool, err error) {
	st, there, err := readState(tx, b, subject, at, except)
	if err != nil || there {
		return st, false, err
	}
	_, err = tx.Exec(`insert into budget_states (budget_id, `+stateColumns+`) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		b.ID, st.Subject, instant(st.Start), st.Spent.Micros, st.Spent.Tokens, st.Reserved.Micros, st.Reserved.Tokens, st.Unpriced, int64(st.Notified))
	return st, true, err
}

// charge is something used that is already in usage_charges.
type charge struct {
	budget.Place
	at       time.Time
	used     budget.Amount // Micros is -1 without a price
	reserved budget.Amount // given back
}

// chargeBudgets adds a charge to every budget that applies, and leaves a notice for the
// thread where one reached a level.
func chargeBudgets(tx *sqldb.Tx, c charge) error {
	budgets, err := budgetsOf(tx, c.Place)
	if err != nil {
		return err
	}
	unpriced := int64(0)
	if c.used.Micros < 0 {
		c.used.Micros, unpriced = 0, 1
	}
	for _, b := range budgets {
		st, fresh, err := ensureState(tx, b, b.SubjectOf(c.Place), c.at, "")
		if err != nil {
			return err
		}
		if !fresh { // a new row was made of sums that have it
			err := tx.Must("the budget has a state", `update budget_states set spent_micros = spent_micros + $4, spent_tokens = spent_tokens + $5,
				reserved_micros = reserved_micros - $6, reserved_tokens = reserved_tokens - $7, unpriced = unpriced + $8
				where budget_id = $1 and subject = $2 and period_start = $3`,
				b.ID, st.Subject, instant(st.Start), c.used.Micros, c.used.Tokens, c.reserved.Micros, c.reserved.Tokens, unpriced)
			if err != nil {
				return err
			}
			st.Spent.Micros += c.used.Micros
			st.Spent.Tokens += c.used.Tokens
		}
		if err := notify(tx, b, st, c); err != nil {
			return err
		}
	}
	return nil
}

func notify(tx *sqldb.Tx, b budget.Budget, st budget.State, c charge) error {
	level := b.Level(st)
	first, err := tx.ExecOne(`update budget_states set notified = $4 where budget_id = $1 and subject = $2 and period_start = $3 and notified < $4`,
		b.ID, st.Subject, instant(st.Start), int64(level))
	if err != nil || !first {
		return err
	}
	id := fmt.Sprintf("%s/%d/%s/%d/%d", b.ID, b.Version, st.Subject, instant(st.Start), level)
	tx.Notify(budgetTopic, string(c.Turn))
	_, err = tx.Exec(`insert into budget_notices (id, budget_id, thread_id, turn_id, body, at, posted) values ($1, $2, $3, $4, $5, $6, false) on conflict do nothing`,
		id, b.ID, c.Thread, c.Turn, b.Notice(st, level, c.at), instant(c.at))
	return err
}

// plainText takes out of a client's words what a text column refuses, and bounds them.
func plainText(s string) string {
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "")
	if len(s) > 300 {
		s = strings.ToValidUTF8(s[:300], "")
	}
	return s
}
