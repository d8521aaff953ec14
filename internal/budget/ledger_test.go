package budget_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/budget"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/crash"
	"github.com/tholehq/thole/internal/thread"
)

// TestLedger runs all of it on one store per engine: a new PostgreSQL database takes
// longer than any of them.
func TestLedger(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		db := open(t)
		for _, c := range []struct {
			name string
			test func(*rig)
		}{
			{"nothing is limited without a budget", unlimited}, {"reserve and settle", reserveAndSettle}, {"actions", actions},
			{"all budgets must have room", allMustHaveRoom}, {"unpriced calls count tokens", unpriced}, {"a new budget knows the period", newBudget},
			{"notices are given once", notices}, {"the usage of turns", turnUsage}, {"calls of a server that died", reconcile}, {"states of a call", transitions}, {"rows of budgets", budgetRows}, {"a thread of an agent", threadOfAgent},
		} {
			t.Run(c.name, func(t *testing.T) {
				empty(t, db)
				c.test(newRig(t, db, "a"))
			})
		}
	})
}

func unlimited(r *rig) {
	t := r.t
	p, _ := r.turn()
	r.ok(r.Admit(ctx, p, noon))
	id := r.begin(p, 1<<60, 1<<60)
	r.ok(r.End(ctx, id, used(10, 20)))
	if n := r.number(`select count(*) from budget_states`); n != 0 {
		t.Errorf("%d states without a budget", n)
	}
}

// A reservation counts until it is settled, and then what was used does.
func reserveAndSettle(r *rig) {
	t := r.t
	b := r.set(perDay(budget.ScopeUser, budget.ActionInterrupt, budget.Amount{Micros: 100}))
	p, _ := r.turn()
	first := r.begin(p, 40, 20)
	_, err := r.Begin(ctx, call(p, 30, 11))
	r.refused(err)
	second := r.begin(p, 30, 10)
	r.ok(r.End(ctx, first, used(10, 5)))
	if err := r.End(ctx, first, used(10, 5)); thole.CodeOf(err) != thole.CodeConflict {
		t.Errorf("settled twice: %v", err)
	}
	if err := r.End(ctx, "no such call", used(1, 1)); thole.CodeOf(err) != thole.CodeConflict {
		t.Errorf("settled nothing: %v", err)
	}
	if got := r.state(b); got.Spent != (budget.Amount{Micros: 15, Tokens: 15}) || got.Reserved != (budget.Amount{Micros: 40, Tokens: 40}) {
		t.Errorf("%+v", got)
	}
	r.ok(r.End(ctx, second, used(30, 10)))
	r.begin(p, 45, 0)
	_, err = r.Begin(ctx, call(p, 1, 0))
	r.refused(err)
	refusal, err := r.Refused(ctx, p.Thread, p.Turn)
	r.ok(err)
	if thole.CodeOf(refusal) != thole.CodeBudgetExceeded || !strings.Contains(refusal.Error(), "user") {
		t.Errorf("the turn's refusal: %v", refusal)
	}
	if r.counts.refused.Load() != 2 {
		t.Errorf("counted %d refusals", r.counts.refused.Load())
	}
}

// Who warns or blocks refuses no call; who blocks or interrupts admits no turn once the
// limit is reached, and a budget of another subject means nothing.
func actions(r *rig) {
	for _, c := range []struct {
		action       budget.Action
		calls, turns bool
	}{{budget.ActionWarn, true, true}, {budget.ActionBlockNew, true, false}, {budget.ActionInterrupt, false, false}} {
		other, _ := r.turn()
		p, _ := r.turn()
		b := perDay(budget.ScopeThread, c.action, budget.Amount{Tokens: 100})
		b.Subject = string(p.Thread)
		r.set(b)
		r.ok(r.Admit(ctx, p, noon))
		r.ok(r.End(ctx, r.begin(p, 50, 50), used(50, 50)))
		if _, err := r.Begin(ctx, call(p, 1, 0)); (err == nil) != c.calls {
			r.t.Errorf("%s: a call at the limit: %v", c.action, err)
		}
		if err := r.Admit(ctx, p, noon); (err == nil) != c.turns {
			r.t.Errorf("%s: a turn at the limit: %v", c.action, err)
		}
		r.ok(r.Admit(ctx, p, noon.AddDate(0, 0, 1)))
		r.ok(r.Admit(ctx, other, noon))
		r.begin(other, 1000, 1000)
	}
}

// Every budget that applies must have room, and a refusal reserves nothing anywhere.
func allMustHaveRoom(r *rig) {
	t := r.t
	wide := r.set(perDay(budget.ScopeApp, budget.ActionInterrupt, budget.Amount{Micros: 1000}))
	narrow := r.set(budget.Budget{Scope: budget.ScopeTurn, Period: budget.PeriodTotal, Action: budget.ActionInterrupt, Tokens: 50})
	p, _ := r.turn()
	r.begin(p, 25, 25)
	_, err := r.Begin(ctx, call(p, 1, 0))
	r.refused(err)
	if !strings.Contains(err.Error(), "turn") {
		t.Errorf("%v", err)
	}
	other, _ := r.turn()
	r.begin(other, 50, 0) // each turn by itself
	if got := r.state(wide); got.Reserved.Micros != 100 {
		t.Errorf("the wide budget has %+v", got)
	}
	states, err := r.store.States(ctx, narrow, noon, 10)
	r.ok(err)
	if len(states) != 2 || states[0].Reserved.Tokens != 50 || states[1].Reserved.Tokens != 50 {
		t.Errorf("%+v", states)
	}
}

// A model without a price counts tokens only, and is counted.
func unpriced(r *rig) {
	t := r.t
	b := r.set(perDay(budget.ScopeUser, budget.ActionInterrupt, budget.Amount{Micros: 100, Tokens: 1000}))
	p, _ := r.turn()
	c := call(p, 200, 200)
	c.Model = "nobody-knows"
	id, err := r.Begin(ctx, c)
	r.ok(err)
	r.ok(r.End(ctx, id, used(150, 100)))
	if got := r.state(b); got.Spent != (budget.Amount{Tokens: 250}) || got.Reserved != (budget.Amount{}) || got.Unpriced != 1 {
		t.Errorf("%+v", got)
	}
	if n := r.number(`select cost_micros from gateway_calls`); n != -1 {
		t.Errorf("cost %d", n)
	}
	c.Input = 800
	_, err = r.Begin(ctx, c)
	r.refused(err)
}

// What was used before the budget was made counts, calls that run included.
func newBudget(r *rig) {
	t := r.t
	p, _ := r.turn()
	r.ok(r.End(ctx, r.begin(p, 30, 0), used(30, 0)))
	running := r.begin(p, 20, 0)
	early := call(p, 500, 0)
	early.At = noon.AddDate(0, 0, -1)
	id, err := r.Begin(ctx, early)
	r.ok(err)
	r.ok(r.End(ctx, id, used(500, 0)))
	quiet, ref := r.turn()
	r.end(ref, &thole.Usage{Input: 7, CostMicros: new(int64)}) // without the gateway
	b := r.set(perDay(budget.ScopeUser, budget.ActionInterrupt, budget.Amount{Tokens: 1000}))
	if n := r.number(`select count(*) from budget_states`); n != 0 {
		t.Fatalf("%d states before they are needed", n)
	}
	r.begin(p, 1, 0)
	if got := r.state(b); got.Spent.Tokens != 37 || got.Reserved.Tokens != 21 {
		t.Errorf("%+v", got)
	}
	r.ok(r.End(ctx, running, used(5, 0)))
	if got := r.state(b); got.Spent.Tokens != 42 || got.Reserved.Tokens != 1 {
		t.Errorf("%+v", got)
	}
	if n := r.number(`select cast(sum(input) as bigint) from usage_charges where thread_id = $1`, quiet.Thread); n != 7 {
		t.Errorf("the turn without the gateway used %d", n)
	}
}

// The soft limit and the limit are each said once in a period, to the thread that
// reached them.
func notices(r *rig) {
	t := r.t
	b := r.set(perDay(budget.ScopeUser, budget.ActionWarn, budget.Amount{Micros: 100}))
	p, _ := r.turn()
	for _, step := range []struct{ use, notices int64 }{{79, 0}, {1, 1}, {10, 1}, {10, 2}, {500, 2}} {
		r.ok(r.End(ctx, r.begin(p, 600, 0), used(step.use, 0)))
		notices, err := r.Notices(ctx, p.Thread)
		r.ok(err)
		if int64(len(notices)) != step.notices {
			t.Fatalf("after %d more: %+v", step.use, notices)
		}
	}
	notices, err := r.Notices(ctx, p.Thread)
	r.ok(err)
	if !strings.Contains(notices[0].Text, "80 %") || !strings.Contains(notices[1].Text, "100 %") || notices[0].Turn != p.Turn {
		t.Errorf("%+v", notices)
	}
	r.ok(r.Posted(ctx, []string{notices[0].ID, notices[1].ID}))
	if rest, err := r.Notices(ctx, p.Thread); err != nil || len(rest) != 0 {
		t.Errorf("posted and still there: %+v, %v", rest, err)
	}
	// Another limit is reached and reported again.
	b.Micros = 1000
	_, err = r.store.Set(ctx, b, b.Version, thole.LocalActor, noon)
	r.ok(err)
	r.ok(r.End(ctx, r.begin(p, 600, 0), used(300, 0)))
	if rest, err := r.Notices(ctx, p.Thread); err != nil || len(rest) != 1 || !strings.Contains(rest[0].Text, "90 %") {
		t.Errorf("%+v, %v", rest, err)
	}
}

// A turn that made calls has their figures, also those of a call that ends after it; one
// that made none has what its agent reported.
func turnUsage(r *rig) {
	t := r.t
	b := r.set(budget.Budget{Scope: budget.ScopeApp, Period: budget.PeriodTotal, Action: budget.ActionWarn, Micros: 1 << 40})
	const sum = `select input + output from turn_usage where turn_id = $1`
	p, ref := r.turn()
	r.ok(r.End(ctx, r.begin(p, 100, 100), used(60, 40)))
	late := r.begin(p, 100, 100)
	cost := int64(1)
	r.end(ref, &thole.Usage{Input: 60, Output: 41, CostMicros: &cost})
	if n := r.number(sum, p.Turn); n != 100 {
		t.Errorf("a turn of its calls used %d", n)
	}
	r.ok(r.Ended(ctx, p.Thread, p.Turn))
	if n := r.counts.differs.Load(); n != 0 {
		t.Errorf("1 %% is reported as a difference")
	}
	if _, err := r.Begin(ctx, call(p, 1, 1)); thole.CodeOf(err) != thole.CodeGone {
		t.Errorf("a call after the turn's end: %v", err)
	}
	r.ok(r.End(ctx, late, used(5, 5)))
	if n := r.number(sum, p.Turn); n != 110 {
		t.Errorf("with the late call: %d", n)
	}
	if n := r.counts.differs.Load(); n != 1 {
		t.Errorf("a difference of 8 %% is reported %d times", n)
	}
	if n := r.number(`select cost_micros from turn_usage where turn_id = $1`, p.Turn); n != 110 {
		t.Errorf("cost %d", n)
	}
	q, ref := r.turn()
	r.end(ref, &thole.Usage{Input: 7, Output: 3, CostMicros: &cost})
	if n := r.number(sum, q.Turn); n != 10 {
		t.Errorf("a turn without calls used %d", n)
	}
	if got := r.state(b); got.Spent != (budget.Amount{Micros: 111, Tokens: 120}) || got.Reserved != (budget.Amount{}) {
		t.Errorf("budget %+v", got)
	}
	if n := r.number(`select cast(sum(` + tokens + `) as bigint) from usage_charges`); n != 120 {
		t.Errorf("charges %d", n)
	}
}

const tokens = `input + output + reasoning + cache_read + cache_write`

// Calls whose server died are charged at what was reserved, once, and marked.
func reconcile(r *rig) {
	t := r.t
	b := r.set(perDay(budget.ScopeUser, budget.ActionInterrupt, budget.Amount{Micros: 100}))
	p, ref := r.turn()
	id := r.begin(p, 40, 20)
	r.end(ref, nil)
	if n, err := r.Reconcile(ctx, noon, noon); n != 0 || err != nil {
		t.Fatalf("a call that has just begun: %d, %v", n, err)
	}
	for _, want := range []int{1, 0} {
		if n, err := r.Reconcile(ctx, noon.Add(time.Minute), noon); n != want || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
	}
	if err := r.End(ctx, id, used(1, 1)); thole.CodeOf(err) != thole.CodeConflict {
		t.Errorf("settled after it was given up: %v", err)
	}
	if got := r.state(b); got.Spent != (budget.Amount{Micros: 60, Tokens: 60}) || got.Reserved != (budget.Amount{}) {
		t.Errorf("%+v", got)
	}
	if n := r.number(`select count(*) from gateway_calls where not known and input = 40 and output = 20`); n != 1 {
		t.Errorf("%d marked", n)
	}
	if n := r.number(`select cost_micros from turn_usage where turn_id = $1`, p.Turn); n != 60 {
		t.Errorf("the turn cost %d", n)
	}
	if r.counts.unknown.Load() != 1 {
		t.Errorf("counted %d", r.counts.unknown.Load())
	}
}

// A budget changes by compare-and-set, and its history says who did what.
func budgetRows(r *rig) {
	t := r.t
	b := r.set(perDay(budget.ScopeUser, budget.ActionWarn, budget.Amount{Micros: 100}))
	again := b
	again.ID, again.Micros = "another id", 200
	if _, err := r.store.Set(ctx, again, -1, thole.LocalActor, noon); thole.CodeOf(err) != thole.CodeConflict {
		t.Errorf("made twice: %v", err)
	}
	got, err := r.store.Set(ctx, again, 0, thole.LocalActor, noon.Add(time.Hour))
	r.ok(err)
	if got.ID != b.ID || got.Version != 2 || got.Micros != 200 || !got.Created.Equal(noon) {
		t.Errorf("%+v", got)
	}
	if _, err := r.store.Set(ctx, again, 1, thole.LocalActor, noon); thole.CodeOf(err) != thole.CodeConflict {
		t.Errorf("an old version: %v", err)
	}
	if err := r.store.Remove(ctx, b.ID, 1, thole.LocalActor, noon); thole.CodeOf(err) != thole.CodeConflict {
		t.Errorf("removed in an old version: %v", err)
	}
	gone := perDay(budget.ScopeThread, budget.ActionWarn, budget.Amount{Micros: 1})
	gone.ID, gone.Subject = "x", "no-such-thread"
	if _, err := r.store.Set(ctx, gone, 0, thole.LocalActor, noon); thole.CodeOf(err) != thole.CodeNotFound {
		t.Errorf("a budget of nothing: %v", err)
	}
	p, _ := r.turn()
	r.begin(p, 1, 1)
	r.ok(r.store.Remove(ctx, b.ID, 2, thole.LocalActor, noon.Add(2*time.Hour)))
	if err := r.store.Remove(ctx, b.ID, 0, thole.LocalActor, noon); thole.CodeOf(err) != thole.CodeNotFound {
		t.Errorf("removed twice: %v", err)
	}
	changes, err := r.store.Changes(ctx, b.ID, 10)
	r.ok(err)
	if len(changes) != 3 || changes[0].Action != "remove" || changes[1].Budget.Micros != 200 || changes[2].Actor.User != thole.LocalUser {
		t.Errorf("%+v", changes)
	}
	if n := r.number(`select count(*) from budget_states`); n != 0 {
		t.Errorf("%d states of a budget that is gone", n)
	}
}

// A call moves from reserved to settled or refused, once; nothing moves it from there.
func transitions(r *rig) {
	r.set(perDay(budget.ScopeUser, budget.ActionInterrupt, budget.Amount{Tokens: 100}))
	p, _ := r.turn()
	in := map[string]string{"settled": r.begin(p, 10, 0), "lost": r.begin(p, 10, 0), "reserved": r.begin(p, 10, 0), "none": "no-such-call"}
	_, err := r.Begin(ctx, call(p, 1000, 0))
	r.refused(err)
	in["refused"] = fmt.Sprintf("a-%06d", r.ids.Load())
	r.ok(r.End(ctx, in["settled"], used(1, 0)))
	_, err = r.store.Settle(ctx, in["lost"], budget.Settlement{Lost: true})
	r.ok(err)
	rows := func() string {
		r.t.Helper()
		text, err := crash.Rows(r.db, "gateway_calls", "budget_states", "budget_notices")
		r.ok(err)
		return text
	}
	for state, id := range in {
		for name, move := range map[string]func() error{
			"settle": func() error { return r.End(ctx, id, used(2, 0)) },
			"lose":   func() error { _, err := r.store.Settle(ctx, id, budget.Settlement{Lost: true}); return err },
		} {
			before := rows()
			err := move()
			if state == "reserved" {
				state = "moved" // by whichever came first
				r.ok(err)
				continue
			}
			if thole.CodeOf(err) != thole.CodeConflict || rows() != before {
				r.t.Errorf("%s a call that is %s: %v", name, state, err)
			}
		}
	}
}

// A thread that an agent started uses the budget of that agent's thread, in reservations,
// in sums and at its next turn.
func threadOfAgent(r *rig) {
	t := r.t
	parent, _ := r.turn()
	th, err := r.threads.Create(ctx, thole.LocalActor, thread.Create{Parent: parent.Thread, Source: thole.ThreadOfAgent})
	r.ok(err)
	child, _ := r.again(th.ID)
	early := r.begin(child, 10, 10)
	b := perDay(budget.ScopeThread, budget.ActionInterrupt, budget.Amount{Tokens: 100})
	b.Subject = string(parent.Thread)
	b = r.set(b)
	r.ok(r.End(ctx, early, used(10, 10))) // counted in the sums of a budget that came later
	r.ok(r.End(ctx, r.begin(child, 30, 30), used(30, 30)))
	if got := r.state(b).Spent.Tokens; got != 80 {
		t.Errorf("%d tokens are spent", got)
	}
	for _, p := range []budget.Place{parent, child} {
		_, err := r.Begin(ctx, call(p, 20, 20))
		r.refused(err)
	}
	r.ok(r.End(ctx, r.begin(parent, 10, 10), used(10, 10)))
	r.refused(r.Admit(ctx, budget.Place{Owner: child.Owner, Thread: child.Thread}, noon))
	other, _ := r.turn()
	r.begin(other, 50, 50)
}
