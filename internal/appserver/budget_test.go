package appserver_test

import (
	"context"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/budget"
	"github.com/tholehq/thole/internal/tholetest"
)

// A client of the contract gets the class of a spent budget and what to do about it.
func TestTurnUnderASpentBudget(t *testing.T) {
	rig := tholetest.New(t)
	w := join(t, rig, full)
	id := w.thread(`{"approvalPolicy":"never","sandbox":"danger-full-access"}`)
	w.turn(id, "sim: usage in=60 out=40 ;; say hi")
	_, _ = w.note(0, "turn/completed")
	limit := budget.Budget{ID: "b", Scope: budget.ScopeThread, Subject: id, Period: budget.PeriodTotal, Tokens: 100, Action: budget.ActionBlockNew}
	if _, err := rig.Store().Budgets().Set(context.Background(), limit, 0, thole.LocalActor, time.Now()); err != nil {
		t.Fatal(err)
	}
	err := w.refused("turn/start", `{"threadId":"`+id+`","input":[{"type":"text","text":"more"}]}`)
	if text := string(err.Data); !strings.Contains(text, "budget_exceeded") || !strings.Contains(text, "thole budget") || !strings.Contains(err.Message, "100 tokens") {
		t.Errorf("%s, %s", err.Message, text)
	}
}
