package store

import (
	"context"
	"database/sql"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/budget"
	"github.com/tholehq/thole/internal/roster"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/thread"
)

const callColumns = `thread_id, turn_id, executor_id, app_id, project_id, user_id, provider, route, upstream, model, path,
	max_output, reserved_tokens, reserved_micros, started_at, family_id`

func scanCall(rows *sql.Rows) (s budget.Settled, err error) {
	var started int64
	err = rows.Scan(&s.Thread, &s.Turn, &s.Executor, &s.Owner.App, &s.Owner.Project, &s.Owner.User, &s.Provider, &s.Route, &s.Upstream, &s.Model, &s.Path,
		&s.MaxOutput, &s.Most.Tokens, &s.Most.Micros, &started, &s.Family)
	s.Input, s.At = s.Most.Tokens-s.MaxOutput, thole.FromMillis(started)
	return s, err
}

// Settle implements budget.Store.
func (s *Budgets) Settle(ctx context.Context, id string, end budget.Settlement) (done budget.Settled, err error) {
	err = s.db.Update(ctx, "budget.settle", func(tx *sqldb.Tx) error {
		calls, err := sqldb.All(tx, scanCall, `select `+callColumns+` from gateway_calls where id = $1 and state = 'reserved'`+tx.ForUpdate(), id)
		if err != nil {
			return err
		}
		if len(calls) == 0 {
			return thole.Errorf(thole.CodeConflict, "model call %s is not open", id)
		}
		done = calls[0]
		u, known := end.Usage, end.Known
		if end.Lost {
			u, known, done.Used.Micros = thole.Usage{Input: done.Input, Output: done.MaxOutput}, false, done.Most.Micros
		} else if micros, priced := end.Cost(done.Call, u); priced {
			done.Used.Micros = micros
		} else {
			done.Used.Micros = -1
		}
		done.Used.Tokens = u.Input + u.Output + u.Reasoning + u.CacheRead + u.CacheWrite
		err = tx.Must("the call is reserved", `update gateway_calls set state = 'settled', status = $2, error = $3, upstream = case when $4 = '' then upstream else $4 end,
				input = $5, output = $6, reasoning = $7, cache_read = $8, cache_write = $9, cost_micros = $10, known = $11, waited_ms = $12, first_byte_at = $13, ended_at = $14
			where id = $1 and state = 'reserved'`,
			id, int64(end.Status), plainText(end.Error), plainText(end.Upstream), u.Input, u.Output, u.Reasoning, u.CacheRead, u.CacheWrite, done.Used.Micros, known,
			end.Waited.Milliseconds(), instant(end.FirstByteAt), max(instant(end.EndedAt), 1))
		if err != nil {
			return err
		}
		if _, err := lockTurn(tx, done.Thread, done.Turn); err != nil {
			return err
		}
		if err := chargeBudgets(tx, charge{Place: done.Place, at: done.At, used: done.Used, reserved: budget.Amount{Micros: max(done.Most.Micros, 0), Tokens: done.Most.Tokens}}); err != nil {
			return err
		}
		done.Differs, err = sumCalls(tx, done.Thread, done.Turn)
		return err
	})
	return done, err
}

// sumCalls sets the usage of a turn that is over to what its calls used: the same, however
// often. nil: the turn is not over.
func sumCalls(tx *sqldb.Tx, id thole.ThreadID, turn thole.TurnID) (*budget.Difference, error) {
	var sums [5]int64
	var cost, unpriced int64
	err := tx.QueryRow(`select cast(coalesce(sum(input), 0) as bigint), cast(coalesce(sum(output), 0) as bigint), cast(coalesce(sum(reasoning), 0) as bigint),
			cast(coalesce(sum(cache_read), 0) as bigint), cast(coalesce(sum(cache_write), 0) as bigint),
			cast(coalesce(sum(cost_micros), 0) as bigint), cast(coalesce(sum(case when cost_micros < 0 then 1 else 0 end), 0) as bigint)
		from gateway_calls where thread_id = $1 and turn_id = $2 and state = 'settled'`, id, turn).
		Scan(&sums[0], &sums[1], &sums[2], &sums[3], &sums[4], &cost, &unpriced)
	if err != nil {
		return nil, err
	}
	if unpriced > 0 {
		cost = -1
	}
	over, err := tx.ExecOne(`update turn_usage set input = $3, output = $4, reasoning = $5, cache_read = $6, cache_write = $7, cost_micros = $8
		where thread_id = $1 and turn_id = $2 and source = 'gateway'`, id, turn, sums[0], sums[1], sums[2], sums[3], sums[4], cost)
	if err != nil || !over {
		return nil, err
	}
	return differs(tx, id, turn)
}

func differs(tx *sqldb.Tx, id thole.ThreadID, turn thole.TurnID) (*budget.Difference, error) {
	all, err := sqldb.All(tx, func(rows *sql.Rows) (d budget.Difference, err error) { return d, rows.Scan(&d.Counted, &d.Reported) },
		`select `+tokenSum+`, reported_tokens from turn_usage where thread_id = $1 and turn_id = $2 and source = 'gateway'`, id, turn)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}

// putUsage settles ended turns: by their calls if they made any through the gateway, else
// by what the agent reported, which then counts in budgets. The key makes a second
// settlement impossible; a call that ends later is added by its own settlement.
func putUsage(tx *sqldb.Tx, id thole.ThreadID, c *thread.Commit) error {
	o, family := c.Row.Thread.Owner, id
	if th := c.Row.Thread; th.Source == thole.ThreadOfAgent && th.Parent != "" {
		family = th.Parent
	}
	for _, t := range c.Settled {
		u, cost := t.Usage, int64(-1)
		if u.CostMicros != nil {
			cost = *u.CostMicros
		}
		model := u.Model
		if model == "" {
			model = t.Settings.Model
		}
		tokens := u.Input + u.Output + u.Reasoning + u.CacheRead + u.CacheWrite
		reported := tokens
		if tokens == 0 && u.CostMicros == nil {
			reported = -1
		}
		var calls int64
		if err := tx.QueryRow(`select count(*) from gateway_calls where thread_id = $1 and turn_id = $2`, id, t.ID).Scan(&calls); err != nil {
			return err
		}
		source := "cli"
		if calls > 0 {
			source = "gateway"
		}
		_, err := tx.Exec(`insert into turn_usage (thread_id, turn_id, app_id, project_id, user_id, provider, model, outcome,
				input, output, reasoning, cache_read, cache_write, cost_micros, settled_at, source, reported_tokens, reported_micros, family_id)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)`,
			id, t.ID, o.App, o.Project, o.User, t.Settings.Provider, model, string(t.Outcome),
			u.Input, u.Output, u.Reasoning, u.CacheRead, u.CacheWrite, cost, thole.Millis(t.Stamp.Ended), source, reported, cost, family)
		if err != nil {
			return err
		}
		if calls > 0 {
			if _, err := sumCalls(tx, id, t.ID); err != nil {
				return err
			}
			continue
		}
		if tokens == 0 && cost <= 0 {
			continue // nothing was used
		}
		place := budget.Place{Owner: o, Thread: id, Turn: t.ID, Family: family}
		if err := chargeBudgets(tx, charge{Place: place, at: t.Stamp.Ended, used: budget.Amount{Micros: cost, Tokens: tokens}}); err != nil {
			return err
		}
	}
	return nil
}

// Reserved implements budget.Store. Calls of a server that may still make them are its own.
func (s *Budgets) Reserved(ctx context.Context, before time.Time, limit int) (ids []string, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		ids, err = sqldb.All(tx, scanID[string], `select id from gateway_calls where state = 'reserved' and (server_id = $3 and started_at < $1
			or server_id <> $3 and not exists (select 1 from servers where servers.id = gateway_calls.server_id and not departed and heartbeat_at + $4 >= $5))
			order by started_at, id limit $2 + 0`, instant(before), int64(limit), s.db.server, roster.DeadAfter.Milliseconds(), thole.Millis(tx.Now()))
		return err
	})
	return ids, err
}

// Admit implements budget.Store.
func (s *Budgets) Admit(ctx context.Context, p budget.Place, at time.Time) (refusal *budget.Refusal, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		if p.Family, err = familyOf(tx, p.Thread); err != nil {
			return err
		}
		budgets, err := sqldb.All(tx, scanBudget, selectBudgetsOf, p.Owner.User, p.Owner.Project, p.Owner.App, p.Family)
		if err != nil {
			return err
		}
		for _, b := range budgets {
			if b.Scope == budget.ScopeTurn || b.Action == budget.ActionWarn {
				continue
			}
			st, _, err := readState(tx, b, b.SubjectOf(p), at, "")
			if err != nil {
				return err
			}
			if !b.Admits(st) {
				r := b.Refuse(st, budget.Amount{}, at)
				refusal = &r
				return nil
			}
		}
		return nil
	})
	return refusal, err
}

// Refused implements budget.Store.
func (s *Budgets) Refused(ctx context.Context, id thole.ThreadID, turn thole.TurnID) (refusal *budget.Refusal, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		all, err := sqldb.All(tx, func(rows *sql.Rows) (r budget.Refusal, err error) {
			var body string
			if err = rows.Scan(&body); err == nil {
				err = fromJSON(body, &r)
			}
			return r, err
		}, `select refusal from gateway_calls where turn_id = $2 and thread_id = $1 and state = 'refused' order by started_at, id limit 1`, id, turn)
		if err == nil && len(all) > 0 {
			refusal = &all[0]
		}
		return err
	})
	return refusal, err
}

// Differs implements budget.Store.
func (s *Budgets) Differs(ctx context.Context, id thole.ThreadID, turn thole.TurnID) (d *budget.Difference, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		d, err = differs(tx, id, turn)
		return err
	})
	return d, err
}
