package budget_test

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/budget"
	"github.com/tholehq/thole/internal/price"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/crash"
	"github.com/tholehq/thole/internal/thread"
)

// books is a store in which one turn makes calls.
type books struct {
	*store.DB
	ledger *budget.Ledger
	next   int
}

const (
	crashThread = thole.ThreadID("01890000-0000-7000-8000-0000000000aa")
	crashTurn   = thole.TurnID("01890000-0000-7000-8000-0000000000a1")
)

var crashPlace = budget.Place{Owner: thole.DefaultOwner, Thread: crashThread, Turn: crashTurn}

func openBooks(dir string, hook sqldb.Hook) (*books, error) {
	db, err := storetest.OpenAt(ctx, sqldb.Config{Path: dir + "/thole.db", Hook: hook, Now: func() time.Time { return noon }})
	if err != nil {
		return nil, err
	}
	b := &books{DB: db}
	b.ledger = budget.NewLedger(db.Budgets(), func() *price.Table { return table }, func(time.Time) string {
		b.next++
		return fmt.Sprintf("call-%d", b.next)
	}, &counts{}, slog.New(slog.DiscardHandler))
	return b, nil
}

func (b *books) State() (string, error) {
	return crash.Rows(b.DB, "gateway_calls", "budgets", "budget_states", "budget_notices", "budget_changes")
}

func (b *books) open() error {
	m, err := thread.New(thread.Config{Store: b.Threads(), Now: func() time.Time { return noon }})
	if err != nil {
		return err
	}
	defer m.Close(ctx)
	_, err = m.Create(ctx, thole.LocalActor, thread.Create{ID: crashThread})
	if err == nil {
		_, err = m.StartTurn(ctx, thole.LocalActor, thread.StartTurn{Thread: crashThread, ID: crashTurn, Input: thole.Text("x")})
	}
	return err
}

func (b *books) set(limit int64) error {
	want := perDay(budget.ScopeUser, budget.ActionInterrupt, budget.Amount{Micros: limit})
	want.ID = "the budget"
	_, err := b.Budgets().Set(ctx, want, 0, thole.LocalActor, noon)
	return err
}

func (b *books) begin(in int64) error {
	_, err := b.ledger.Begin(ctx, call(crashPlace, in, 0))
	return err
}

func (b *books) Acts() []crash.Act {
	return []crash.Act{
		{Name: "set", Set: b.open, Do: func() error { return b.set(100) }},
		{Name: "reserve", Do: func() error { return b.begin(60) }},
		{Name: "refuse", Do: func() error {
			if err := b.begin(50); thole.CodeOf(err) != thole.CodeBudgetExceeded {
				return errors.Join(errors.New("not refused"), err)
			}
			return nil
		}},
		{Name: "settle", Do: func() error { return b.ledger.End(ctx, "call-1", used(85, 0)) }},
		{Name: "post", Do: func() error { return b.ledger.Posted(ctx, []string{noticeID}) }},
		{Name: "reserve again", Do: func() error { return b.begin(10) }},
		{Name: "reconcile", Do: func() error { _, err := b.ledger.Reconcile(ctx, noon.Add(time.Hour), noon); return err }},
		{Name: "raise", Do: func() error { return b.set(200) }},
		{Name: "remove", Do: func() error { return b.Budgets().Remove(ctx, "the budget", 2, thole.LocalActor, noon) }},
	}
}

var noticeID = fmt.Sprintf("the budget/1/%s/%d/1", thole.LocalUser, time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC).UnixMilli())

// TestLedgerSurvivesAKill: a reservation is there with its call or not at all, a
// settlement happens once, and whatever was left open is charged in full at the next
// start.
func TestLedgerSurvivesAKill(t *testing.T) {
	crash.Acts(t, openBooks, func(t *testing.T, b *books, done []string) {
		has := func(act string) bool { return slices.Contains(done, act) }
		ok := func(err error) {
			t.Helper()
			if err != nil {
				t.Error(err)
			}
		}
		_, err := b.ledger.Reconcile(ctx, noon.Add(time.Hour), noon)
		ok(err)
		if err := b.ledger.End(ctx, "call-1", used(85, 0)); thole.CodeOf(err) != thole.CodeConflict {
			t.Errorf("after %v: settled again: %v", done, err)
		}
		refusal, err := b.ledger.Refused(ctx, crashThread, crashTurn)
		ok(err)
		if (refusal != nil) != has("refuse") {
			t.Errorf("after %v: the turn was refused: %v", done, refusal)
		}
		want := int64(0)
		switch {
		case has("reserve again"):
			want = 95
		case has("settle"):
			want = 85
		case has("reserve"):
			want = 60
		}
		budgets, err := b.Budgets().List(ctx)
		ok(err)
		if there := has("set") && !has("remove"); (len(budgets) == 1) != there {
			t.Errorf("after %v: %+v", done, budgets)
		}
		for _, one := range budgets {
			one.Subject = string(thole.LocalUser)
			states, err := b.Budgets().States(ctx, one, noon, 1)
			ok(err)
			if states[0].Spent.Micros != want || states[0].Reserved.Micros != 0 {
				t.Errorf("after %v: %+v, want %d spent", done, states[0], want)
			}
		}
		ok(b.set(500)) // and everything goes on
		if has("set") {
			b.next = 100
			ok(b.begin(1))
		}
	})
}
