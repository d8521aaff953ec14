package budget_test

import (
	"fmt"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/budget"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
	"pgregory.net/rapid"
)

// The ledger against a naive model that adds everything up again each time: same
// decisions, same sums, whatever happens in whatever order.
func TestLedgerModel(t *testing.T) {
	type made struct {
		place  budget.Place
		at     time.Time
		most   int64
		state  string
		used   int64
		priced bool
	}
	type turn struct {
		place budget.Place
		ref   thread.TurnRef
		over  bool
		calls int
	}
	db := storetest.SQLite(t)
	rapid.Check(t, func(rt *rapid.T) {
		empty(t, db)
		r := newRig(t, db, fmt.Sprintf("m%d", time.Now().UnixNano()))
		defer r.threads.Close(ctx)
		var turns []*turn
		var order []string
		calls, budgets := map[string]*made{}, map[budget.ID]budget.Budget{}
		state := func(b budget.Budget, subject string, at time.Time) (s budget.State) {
			start, next := b.Period.Bounds(at)
			for _, c := range calls {
				if b.SubjectOf(c.place) != subject || !next.IsZero() && (c.at.Before(start) || !c.at.Before(next)) {
					continue
				}
				micros := c.most
				switch c.state {
				case "reserved":
					if !c.priced {
						micros = 0
					}
					s.Reserved.Tokens, s.Reserved.Micros = s.Reserved.Tokens+c.most, s.Reserved.Micros+micros
				case "settled":
					micros = c.used
					if !c.priced {
						micros = 0
						s.Unpriced++
					}
					s.Spent.Tokens, s.Spent.Micros = s.Spent.Tokens+c.used, s.Spent.Micros+micros
				}
			}
			return s
		}
		pick := func(rt *rapid.T) *turn {
			if len(turns) == 0 {
				rt.Skip("no turn")
			}
			return rapid.SampledFrom(turns).Draw(rt, "turn")
		}
		settle := func(rt *rapid.T) {
			if len(order) == 0 {
				rt.Skip("no call")
			}
			id := rapid.SampledFrom(order).Draw(rt, "call")
			c := calls[id]
			use := rapid.Int64Range(0, c.most).Draw(rt, "used")
			was := c.state
			err := r.End(ctx, id, used(use, 0))
			if (was == "reserved") != (err == nil) {
				rt.Fatalf("settled a call that is %s: %v", was, err)
			}
			if was == "reserved" {
				c.state, c.used = "settled", use
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"turn": func(rt *rapid.T) {
				if len(turns) == 4 {
					rt.Skip("enough")
				}
				p, ref := r.turn()
				turns = append(turns, &turn{place: p, ref: ref})
			},
			"budget": func(rt *rapid.T) {
				b := budget.Budget{
					Scope: rapid.SampledFrom(budget.Scopes).Draw(rt, "scope"), Period: rapid.SampledFrom([]budget.Period{budget.PeriodDay, budget.PeriodMonth, budget.PeriodTotal}).Draw(rt, "period"),
					Action: rapid.SampledFrom([]budget.Action{budget.ActionWarn, budget.ActionBlockNew, budget.ActionInterrupt}).Draw(rt, "action"),
					Micros: rapid.Int64Range(0, 300).Draw(rt, "micros"), Tokens: rapid.Int64Range(1, 300).Draw(rt, "tokens"), Soft: 80,
				}
				if b.Scope == budget.ScopeThread && len(turns) > 0 && rapid.Bool().Draw(rt, "one") {
					b.Subject = string(pick(rt).place.Thread)
				}
				if b.Check() != nil {
					rt.Skip("not a budget")
				}
				b = r.set(b)
				budgets[b.ID] = b
			},
			"remove": func(rt *rapid.T) {
				for id := range budgets {
					r.ok(r.store.Remove(ctx, id, 0, thole.LocalActor, noon))
					delete(budgets, id)
					return
				}
			},
			"begin": func(rt *rapid.T) {
				tn := pick(rt)
				c := call(tn.place, rapid.Int64Range(0, 100).Draw(rt, "input"), rapid.Int64Range(0, 50).Draw(rt, "output"))
				c.At = noon.AddDate(0, 0, rapid.IntRange(0, 1).Draw(rt, "day"))
				m := &made{place: tn.place, at: c.At, most: c.Input + c.MaxOutput, state: "reserved", priced: rapid.IntRange(0, 3).Draw(rt, "unpriced") > 0}
				if !m.priced {
					c.Model = "unheard of"
				}
				want := thole.Code("")
				for _, b := range budgets {
					asked := budget.Amount{Tokens: m.most}
					if m.priced {
						asked.Micros = m.most
					}
					if subject := b.SubjectOf(c.Place); subject != "" && !b.Fits(state(b, subject, c.At), asked) {
						want = thole.CodeBudgetExceeded
					}
				}
				if tn.over {
					want = thole.CodeGone
				}
				id, err := r.Begin(ctx, c)
				if thole.CodeOf(err) != want {
					rt.Fatalf("begin: %v, want %q", err, want)
				}
				refused := false
				for _, b := range budgets {
					subject := b.SubjectOf(c.Place)
					refused = refused || subject != "" && b.Scope != budget.ScopeTurn && !b.Admits(state(b, subject, c.At))
				}
				if err := r.Admit(ctx, tn.place, c.At); (thole.CodeOf(err) == thole.CodeBudgetExceeded) != refused {
					rt.Fatalf("admit: %v, want refused %v", err, refused)
				}
				if want == "" {
					calls[id] = m
					order = append(order, id)
				}
				if !tn.over {
					tn.calls++
				}
			},
			"settle": settle,
			"end": func(rt *rapid.T) {
				tn := pick(rt)
				if tn.over {
					rt.Skip("over")
				}
				u := rapid.Int64Range(0, 50).Draw(rt, "reported")
				r.end(tn.ref, &thole.Usage{Input: u, CostMicros: &u})
				tn.over = true
				if tn.calls == 0 {
					calls["turn "+string(tn.place.Turn)] = &made{place: tn.place, at: noon, used: u, state: "settled", priced: true}
				}
			},
			"reconcile": func(*rapid.T) {
				if _, err := r.Reconcile(ctx, noon.AddDate(0, 0, 2), noon); err != nil {
					rt.Fatal(err)
				}
				for _, c := range calls {
					if c.state == "reserved" {
						c.state, c.used = "settled", c.most
					}
				}
			},
			"": func(rt *rapid.T) {
				for _, b := range budgets {
					for _, tn := range turns {
						subject := b.SubjectOf(tn.place)
						if subject == "" {
							continue
						}
						want := state(b, subject, noon)
						one := b
						one.Subject = subject // as it is, or from the sums
						states, err := r.store.States(ctx, one, noon, 1)
						if err != nil {
							rt.Fatal(err)
						}
						got := states[0]
						if got.Spent != want.Spent || got.Reserved != want.Reserved || got.Unpriced != want.Unpriced {
							rt.Fatalf("budget %+v, subject %s: %+v, want %+v", b, subject, got, want)
						}
					}
				}
			},
		})
	})
}
