package dispatch_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/budget"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/price"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/internal/thread"
)

type uncounted struct{}

func (uncounted) Refused() {}
func (uncounted) Unknown() {}
func (uncounted) Differs() {}

func books(db *store.DB) *budget.Ledger {
	return budget.NewLedger(db.Budgets(), price.Default, thole.NewID[string], uncounted{}, slog.New(slog.DiscardHandler))
}

func budgeted(db *store.DB) func(*dispatch.Config) {
	return func(c *dispatch.Config) { c.Budgets = books(db) }
}

// limit gives a thread a budget of so many tokens.
func limit(t *testing.T, db *store.DB, id thole.ThreadID, action budget.Action, tokens int64) {
	t.Helper()
	_, err := db.Budgets().Set(context.Background(), budget.Budget{
		ID: budget.ID("of " + id), Scope: budget.ScopeThread, Subject: string(id), Period: budget.PeriodTotal, Tokens: tokens, Soft: 80, Action: action,
	}, 0, me, time.Now())
	if err != nil {
		t.Fatal(err)
	}
}

// calls makes a call for a turn as the gateway does.
func calls(t *testing.T, db *store.DB, id thole.ThreadID, turn thole.TurnID, tokens int64) error {
	t.Helper()
	l, ctx := books(db), context.Background()
	call, err := l.Begin(ctx, budget.Call{Place: budget.Place{Owner: thole.DefaultOwner, Thread: id, Turn: turn}, Provider: "p", Model: "m", Input: tokens, At: time.Now()})
	if err != nil {
		return err
	}
	return l.End(ctx, call, budget.Result{Usage: thole.Usage{Input: tokens}, Known: true, Status: 200, EndedAt: time.Now()})
}

// A turn one of whose calls a budget refused ends at once, with the budget's own code; a
// notice of what is used is in its log, once.
func TestABudgetEndsATurn(t *testing.T) {
	w, db := newWorld(t), storetest.SQLite(t)
	r := w.rig(t, db, budgeted(db))
	id := r.thread()
	limit(t, db, id, budget.ActionInterrupt, 100)
	turn := r.start(id, "sim: say begun ;; hang")
	r.until(id, func(e event.Event) bool { return e.Kind == event.ItemDelta && e.Turn == turn })
	if err := calls(t, db, id, turn, 90); err != nil {
		t.Fatal(err)
	}
	r.until(id, func(e event.Event) bool { return e.Item != nil && e.Item.Kind == event.ItemSystem })
	if err := calls(t, db, id, turn, 20); thole.CodeOf(err) != thole.CodeBudgetExceeded {
		t.Fatalf("a call beyond the limit: %v", err)
	}
	got := r.settled(id, turn)
	if got.Outcome != thole.OutcomeFailed || got.Error == nil || got.Error.Code != thole.ErrBudget || !strings.Contains(got.Error.Message, "100 tokens") || !strings.Contains(got.Error.Hint, "thole budget") {
		t.Fatalf("the turn ended %s: %+v", got.Outcome, got.Error)
	}
	page, err := r.Items(context.Background(), me, id, turn, thread.PageParams{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	notices := 0
	for _, it := range page.Items {
		if it.Item.Kind == event.ItemSystem && strings.Contains(it.Item.Text, "90 %") {
			notices++
		}
	}
	if notices != 1 {
		t.Errorf("%d notices of the soft limit", notices)
	}
	// The thread is not harmed: a turn that makes no call ends as ever.
	turn = r.start(id, "sim: say hello")
	if got := r.settled(id, turn); got.Outcome != thole.OutcomeCompleted {
		t.Errorf("the next turn ended %s: %+v", got.Outcome, got.Error)
	}
}

// A refusal stands over what the agent says, and over the end of the process that made it.
func TestARefusalOutlivesItsProcess(t *testing.T) {
	w, db := newWorld(t), storetest.SQLite(t)
	r := w.rig(t, db, budgeted(db))
	id := r.thread()
	limit(t, db, id, budget.ActionInterrupt, 100)
	turn := r.start(id, "sim: say begun ;; run while ! test -e go; do sleep 0.05; done; touch done ;; say all is well")
	r.until(id, func(e event.Event) bool { return e.Kind == event.ItemDelta && e.Turn == turn })
	r.halt()
	if err := calls(t, db, id, turn, 101); thole.CodeOf(err) != thole.CodeBudgetExceeded {
		t.Fatalf("a call beyond the limit: %v", err)
	}
	dir := workspaceOf(t, r, id)
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "the agent's end", func() bool { _, err := os.Stat(filepath.Join(dir, "done")); return err == nil })
	again := w.rig(t, db, budgeted(db))
	if got := again.settled(id, turn); got.Outcome != thole.OutcomeFailed || got.Error == nil || got.Error.Code != thole.ErrBudget {
		t.Errorf("the turn ended %s: %+v", got.Outcome, got.Error)
	}
}

// uninformed gets no word of a refusal.
type uninformed struct{ *budget.Ledger }

func (uninformed) Watch(func(thole.TurnID)) (cancel func()) { return func() {} }

// To the agent a refusal is one more error of its model, and it may end well all the same.
func TestARefusalStandsOverTheAgentsWord(t *testing.T) {
	w, db := newWorld(t), storetest.SQLite(t)
	r := w.rig(t, db, func(c *dispatch.Config) { c.Budgets = uninformed{books(db)} })
	id := r.thread()
	limit(t, db, id, budget.ActionInterrupt, 100)
	turn := r.start(id, "sim: say begun ;; run while ! test -e go; do sleep 0.05; done ;; say all is well")
	r.until(id, func(e event.Event) bool { return e.Kind == event.ItemDelta && e.Turn == turn })
	if err := calls(t, db, id, turn, 101); thole.CodeOf(err) != thole.CodeBudgetExceeded {
		t.Fatalf("a call beyond the limit: %v", err)
	}
	if err := os.WriteFile(filepath.Join(workspaceOf(t, r, id), "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := r.settled(id, turn); got.Outcome != thole.OutcomeFailed || got.Error == nil || got.Error.Code != thole.ErrBudget || !strings.Contains(r.said(id, turn), "all is well") {
		t.Errorf("the turn ended %s: %+v", got.Outcome, got.Error)
	}
}
