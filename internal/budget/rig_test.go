package budget_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/budget"
	"github.com/tholehq/thole/internal/price"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/thread"
)

var noon = time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)

// A token of model m costs a millionth of a dollar, whatever it is for.
var table = func() *price.Table {
	t, err := price.Parse("test", "version = \"1\"\nas_of = \"2026-11\"\n[[price]]\nmodel = \"m\"\nin = 1\nout = 1\ncache_read = 1\ncache_write = 1\n")
	if err != nil {
		panic(err)
	}
	return t
}()

type counts struct{ refused, unknown, differs atomic.Int64 }

func (c *counts) Refused() { c.refused.Add(1) }
func (c *counts) Unknown() { c.unknown.Add(1) }
func (c *counts) Differs() { c.differs.Add(1) }

// rig is a ledger over a real store with running turns.
type rig struct {
	t testing.TB
	*budget.Ledger
	db      *store.DB
	store   *store.Budgets
	threads *thread.Machine
	counts  counts
	ids     atomic.Int64
}

var ctx = context.Background()

func newRig(t testing.TB, db *store.DB, name string) *rig {
	r := &rig{t: t, db: db, store: db.Budgets()}
	var err error
	if r.threads, err = thread.New(thread.Config{Store: db.Threads(), Now: func() time.Time { return noon }}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.ok(r.threads.Close(ctx)) })
	r.Ledger = budget.NewLedger(r.store, func() *price.Table { return table }, func(time.Time) string { return fmt.Sprintf("%s-%06d", name, r.ids.Add(1)) }, &r.counts, slog.New(slog.DiscardHandler))
	return r
}

func (r *rig) ok(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// turn starts a turn in a new thread and returns where its calls are made and the fence
// of its driver.
func (r *rig) turn() (budget.Place, thread.TurnRef) {
	r.t.Helper()
	th, err := r.threads.Create(ctx, thole.LocalActor, thread.Create{})
	r.ok(err)
	return r.again(th.ID)
}

// again starts another turn of a thread.
func (r *rig) again(id thole.ThreadID) (budget.Place, thread.TurnRef) {
	r.t.Helper()
	turn, err := r.threads.StartTurn(ctx, thole.LocalActor, thread.StartTurn{Thread: id, Input: thole.Text("x"), Settings: &event.Settings{Provider: "p"}})
	r.ok(err)
	leases, err := r.db.Queue().Claim(ctx, queue.Claim{Owner: "w", Lease: time.Hour, Token: "token-" + string(turn.ID), Max: 1})
	r.ok(err)
	if len(leases) != 1 || leases[0].Turn != turn.ID {
		r.t.Fatalf("claimed %+v", leases)
	}
	return budget.Place{Owner: thole.DefaultOwner, Thread: id, Turn: turn.ID}, thread.TurnRef{Thread: id, Turn: turn.ID, Token: leases[0].Token}
}

// end ends a turn, after the agent reported its usage if it did.
func (r *rig) end(ref thread.TurnRef, u *thole.Usage) {
	r.t.Helper()
	var events []event.Event
	if u != nil {
		events = append(events, event.Event{ID: thole.EventID("u-" + ref.Turn), Kind: event.UsageUpdated, Data: event.Data{Usage: u}})
	}
	events = append(events, event.Event{ID: thole.EventID("e-" + ref.Turn), Kind: event.TurnEnded, Data: event.Data{Outcome: thole.OutcomeCompleted}})
	r.ok(r.threads.Apply(ctx, ref, events))
	r.ok(r.db.Queue().Complete(ctx, ref.Turn, ref.Token))
}

func (r *rig) set(b budget.Budget) budget.Budget {
	r.t.Helper()
	r.ok(b.Check())
	b.ID = budget.ID(fmt.Sprintf("budget-%d", r.ids.Add(1)))
	b, err := r.store.Set(ctx, b, 0, thole.LocalActor, noon)
	r.ok(err)
	return b
}

func perDay(scope budget.Scope, action budget.Action, limit budget.Amount) budget.Budget {
	return budget.Budget{Scope: scope, Period: budget.PeriodDay, Action: action, Micros: limit.Micros, Tokens: limit.Tokens, Soft: 80}
}

func call(p budget.Place, in, out int64) budget.Call {
	return budget.Call{Place: p, Provider: "p", Route: "r", Upstream: "u", Model: "m", Path: "/x", Input: in, MaxOutput: out, At: noon}
}

func used(in, out int64) budget.Result {
	return budget.Result{Usage: thole.Usage{Input: in, Output: out}, Known: true, Status: 200, EndedAt: noon.Add(time.Second)}
}

func (r *rig) begin(p budget.Place, in, out int64) string {
	r.t.Helper()
	id, err := r.Begin(ctx, call(p, in, out))
	r.ok(err)
	return id
}

func (r *rig) refused(err error) {
	r.t.Helper()
	if thole.CodeOf(err) != thole.CodeBudgetExceeded {
		r.t.Fatalf("not refused by a budget: %v", err)
	}
}

func (r *rig) state(b budget.Budget) budget.State {
	r.t.Helper()
	all, err := r.store.States(ctx, b, noon, 10)
	r.ok(err)
	if len(all) != 1 {
		r.t.Fatalf("states %+v", all)
	}
	return all[0]
}

func (r *rig) number(query string, args ...any) (n int64) {
	r.t.Helper()
	r.ok(r.db.View(ctx, func(tx *sqldb.Tx) error { return tx.QueryRow(query, args...).Scan(&n) }))
	return n
}

// empty takes everything out of a store that the next test would count.
func empty(t testing.TB, db *store.DB) {
	t.Helper()
	err := db.Update(ctx, "test.empty", func(tx *sqldb.Tx) error {
		for _, name := range []string{"budget_notices", "budget_changes", "budgets", "gateway_calls", "turn_usage", "turn_queue", "threads"} {
			if _, err := tx.Exec("delete from " + name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
