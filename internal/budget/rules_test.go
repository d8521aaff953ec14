package budget_test

import (
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/budget"
)

// What a budget decides in every combination of action, level and call.
func TestDecisions(t *testing.T) {
	type verdict struct {
		fits, admits bool
		level        budget.Level
	}
	for _, limit := range []string{"money", "tokens", "both"} {
		for _, action := range []budget.Action{budget.ActionWarn, budget.ActionBlockNew, budget.ActionInterrupt} {
			for _, c := range []struct {
				spent, reserved, asked int64
				within                 bool
				level                  budget.Level
			}{
				{0, 0, 100, true, budget.LevelOK},
				{0, 0, 101, false, budget.LevelOK},
				{79, 0, 21, true, budget.LevelOK},
				{79, 1, 21, false, budget.LevelOK},
				{80, 0, 20, true, budget.LevelSoft},
				{80, 20, 1, false, budget.LevelSoft},
				{99, 0, 1, true, budget.LevelSoft},
				{100, 0, 0, true, budget.LevelSpent},
				{100, 0, 1, false, budget.LevelSpent},
				{250, 0, 0, false, budget.LevelSpent},
			} {
				b := budget.Budget{Action: action, Soft: 80}
				var s budget.State
				var a budget.Amount
				if limit != "tokens" {
					b.Micros, s.Spent.Micros, s.Reserved.Micros, a.Micros = 100, c.spent, c.reserved, c.asked
				}
				if limit != "money" {
					b.Tokens, s.Spent.Tokens, s.Reserved.Tokens, a.Tokens = 100, c.spent, c.reserved, c.asked
				}
				want := verdict{c.within || action != budget.ActionInterrupt, action == budget.ActionWarn || c.level < budget.LevelSpent, c.level}
				if got := (verdict{b.Fits(s, a), b.Admits(s), b.Level(s)}); got != want {
					t.Errorf("%s, %s, %+v: %+v, want %+v", limit, action, c, got, want)
				}
			}
		}
	}
	if b := (budget.Budget{Micros: 100}); b.Level(budget.State{Spent: budget.Amount{Micros: 99}}) != budget.LevelOK {
		t.Error("a budget without a soft limit has one")
	}
}

func TestPeriods(t *testing.T) {
	at := time.Date(2026, 12, 31, 23, 59, 59, 0, time.FixedZone("", -3600)) // the next year in UTC
	for p, want := range map[budget.Period][2]string{
		budget.PeriodDay:   {"2027-01-01T00:00:00Z", "2027-01-02T00:00:00Z"},
		budget.PeriodMonth: {"2027-01-01T00:00:00Z", "2027-02-01T00:00:00Z"},
		budget.PeriodTotal: {"0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"},
	} {
		if start, next := p.Bounds(at); start.Format(time.RFC3339) != want[0] || next.Format(time.RFC3339) != want[1] {
			t.Errorf("%s: %v to %v", p, start, next)
		}
	}
}

func TestCheck(t *testing.T) {
	good := budget.Budget{Scope: budget.ScopeUser, Period: budget.PeriodDay, Action: budget.ActionWarn, Micros: 1}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*budget.Budget){
		"scope":        func(b *budget.Budget) { b.Scope = "planet" },
		"department":   func(b *budget.Budget) { b.Scope = "department" },
		"period":       func(b *budget.Budget) { b.Period = "week" },
		"action":       func(b *budget.Budget) { b.Action = "shout" },
		"no limit":     func(b *budget.Budget) { b.Micros = 0 },
		"negative":     func(b *budget.Budget) { b.Tokens = -1 },
		"too much":     func(b *budget.Budget) { b.Tokens = budget.MaxLimit + 1 },
		"soft":         func(b *budget.Budget) { b.Soft = 101 },
		"one turn":     func(b *budget.Budget) { b.Scope, b.Period, b.Subject = budget.ScopeTurn, budget.PeriodTotal, "t" },
		"turn per day": func(b *budget.Budget) { b.Scope = budget.ScopeTurn },
		"turn blocks": func(b *budget.Budget) {
			b.Scope, b.Period, b.Action = budget.ScopeTurn, budget.PeriodTotal, budget.ActionBlockNew
		},
	} {
		b := good
		change(&b)
		if err := b.Check(); thole.CodeOf(err) != thole.CodeInvalid || thole.HintOf(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFigures(t *testing.T) {
	for text, want := range map[string]budget.Amount{
		"$20": {Micros: 20_000_000}, "$0.5": {Micros: 500_000}, "$0.000001": {Micros: 1}, "$1234.56": {Micros: 1_234_560_000},
		"2M tokens": {Tokens: 2_000_000}, "1.5k tokens": {Tokens: 1500}, "7 tokens": {Tokens: 7}, "1 token": {Tokens: 1},
	} {
		if got, err := budget.ParseLimit(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "20", "$", "$-1", "$0", "0 tokens", "2M", "2 M tokens", "1.5 tokens", "$1e3", "$nan", "$inf", "$0.0000001", "9999999999M tokens", "20 dollars"} {
		if got, err := budget.ParseLimit(text); thole.CodeOf(err) != thole.CodeInvalid {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for want, micros := range map[string]int64{"$20.00": 20_000_000, "$0.50": 500_000, "$0.000001": 1, "$0.0123": 12_300, "$0.00": 0, "$1.23": 1_234_567} {
		if got := budget.Money(micros); got != want {
			t.Errorf("%d: %s, want %s", micros, got, want)
		}
	}
	for want, n := range map[string]int64{"2M tokens": 2_000_000, "1.5k tokens": 1500, "1234 tokens": 1234, "0 tokens": 0} {
		if got := budget.Count(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// A refusal names the scope, the limit, what is spent and when the period ends.
// An agent chooses its model: one without a price would cost nothing under a budget of
// money alone.
func TestModelsWithoutAPrice(t *testing.T) {
	none := budget.Amount{Micros: -1, Tokens: 10}
	money := budget.Budget{ID: "b1", Scope: budget.ScopeUser, Period: budget.PeriodDay, Micros: 100, Action: budget.ActionInterrupt}
	both, warns, tokens := money, money, money
	both.Tokens, warns.Action = 20, budget.ActionWarn
	tokens.Tokens, tokens.Micros = 20, 0
	if money.Fits(budget.State{}, none) || !both.Fits(budget.State{}, none) || !warns.Fits(budget.State{}, none) || !tokens.Fits(budget.State{}, none) {
		t.Error("a model without a price is refused where money alone is limited, and only there")
	}
	if !both.Fits(budget.State{Spent: budget.Amount{Micros: 100}}, none) {
		t.Error("what has no price takes nothing of the money")
	}
	err := money.Refuse(budget.State{}, none, time.Unix(0, 0)).Error()
	if !strings.Contains(err.Error(), "has no price") || !strings.Contains(err.Hint, "thole usage prices") {
		t.Errorf("%v, try %s", err, err.Hint)
	}
}

func TestRefusalSaysWhatToDo(t *testing.T) {
	at := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	b := budget.Budget{ID: "b1", Scope: budget.ScopeUser, Period: budget.PeriodDay, Micros: 20_000_000, Action: budget.ActionInterrupt}
	err := b.Refuse(budget.State{Spent: budget.Amount{Micros: 20_500_000}}, budget.Amount{}, at).Error()
	for _, part := range []string{"user", "$20.00 a day", "$20.50", "2026-11-17T00:00:00Z"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	if thole.CodeOf(err) != thole.CodeBudgetExceeded || !strings.Contains(thole.HintOf(err), "thole budget show b1") {
		t.Errorf("%v, %s", thole.CodeOf(err), thole.HintOf(err))
	}
	err = b.Refuse(budget.State{Spent: budget.Amount{Micros: 19_000_000}, Reserved: budget.Amount{Micros: 900_000}}, budget.Amount{Micros: 200_000}, at).Error()
	if !strings.Contains(err.Error(), "too little left") || !strings.Contains(err.Error(), "$0.90 reserved") {
		t.Error(err)
	}
}
