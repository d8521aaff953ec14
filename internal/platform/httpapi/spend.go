package httpapi

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/spend"
	"github.com/tholehq/thole/internal/platform/usage"
)

// BudgetID is the budget in a path.
type BudgetID struct {
	ID string `path:"budget_id" maxLength:"100"`
}

func budgetTag(b spend.Budget) string { return `"` + strconv.FormatInt(b.Version, 10) + `"` }

func taggedBudget(b spend.Budget, err error) (*tagged[spend.Budget], error) {
	if err != nil {
		return nil, err
	}
	return &tagged[spend.Budget]{budgetTag(b), b}, nil
}

// expected is the version that If-Match names; any without one.
func (in MatchIn) expected(b spend.Budget) (int64, error) {
	if in.Match == "" || in.Match == "*" {
		return spend.Any, nil
	}
	if err := unless(in, budgetTag)(b); err != nil {
		return 0, err
	}
	return b.Version, nil
}

// moved makes a stale edit of a change that came between.
func moved(err error) error {
	if thole.CodeOf(err) == thole.CodeConflict {
		return thole.Errorf(thole.CodeConflict, "%w: %w", errStale, err).WithHint("read it again and repeat the edit")
	}
	return err
}

// LimitsIn changes a budget; what it limits stays.
type LimitsIn struct {
	LimitMicros int64  `json:"limit_micros,omitempty" minimum:"0"`
	LimitTokens int64  `json:"limit_tokens,omitempty" minimum:"0"`
	Soft        *int64 `json:"soft_pct,omitempty" minimum:"0" maximum:"100" doc:"80 when absent"`
	Action      string `json:"action,omitempty" enum:"warn,block_new,interrupt" doc:"interrupt when absent"`
}

// UsageIn selects what was used.
type UsageIn struct {
	From    time.Time `query:"from"`
	To      time.Time `query:"to" doc:"exclusive"`
	Session string    `query:"session_id"`
	Group   string    `query:"group" enum:"day,user,project,app,provider,model,session,upstream"`
}

func (s *Server) spendRoutes() {
	op(s, "GET", "/usage", "What runs used", 200, func(ctx context.Context, in *UsageIn) (*body[spend.Usage], error) {
		return answer(s.cfg.Spend.Usage(ctx, usage.Query{User: actorOf(ctx).User, Thread: thole.ThreadID(in.Session), From: in.From, To: in.To, By: usage.By(in.Group)}))
	})
	s.serve("GET /usage/csv", page{summary: "What runs used, as CSV; parameters as of GET /usage", status: 200, media: "text/csv", shapes: []any{""}}, s.usageCSV)
	op(s, "GET", "/usage/prices", "The price table", 200, func(context.Context, *struct{}) (*body[spend.Prices], error) {
		return answer(s.cfg.Spend.Prices(), nil)
	})
	op(s, "GET", "/budgets", "List the budgets that concern you", 200, func(ctx context.Context, _ *struct{}) (*body[list[spend.Budget]], error) {
		all, err := s.cfg.Spend.List(ctx, actorOf(ctx))
		return answer(list[spend.Budget]{Items: all}, err)
	})
	op(s, "POST", "/budgets", "Limit what may be used", 201, func(ctx context.Context, in *struct {
		KeyIn
		Body spend.SetParams
	}) (*tagged[spend.Budget], error) {
		return taggedBudget(once(ctx, s, "POST /budgets", in.Key, in.Body, func() (spend.Budget, error) {
			return s.cfg.Spend.Set(ctx, actorOf(ctx), in.Body, spend.None)
		}))
	})
	op(s, "GET", "/budgets/{budget_id}", "A budget, how much of it is used, and who changed it", 200, func(ctx context.Context, in *BudgetID) (*tagged[spend.Budget], error) {
		return taggedBudget(s.cfg.Spend.Show(ctx, actorOf(ctx), in.ID))
	})
	op(s, "PUT", "/budgets/{budget_id}", "Change the limits of a budget", 200, func(ctx context.Context, in *struct {
		BudgetID
		MatchIn
		Body LimitsIn
	}) (*tagged[spend.Budget], error) {
		b, err := s.cfg.Spend.Show(ctx, actorOf(ctx), in.ID)
		if err != nil {
			return nil, err
		}
		expect, err := in.expected(b)
		if err != nil {
			return nil, err
		}
		p := spend.SetParams{Scope: b.Scope, Subject: b.Subject, Period: b.Period, LimitMicros: in.Body.LimitMicros, LimitTokens: in.Body.LimitTokens, Soft: in.Body.Soft, Action: in.Body.Action}
		b, err = s.cfg.Spend.Set(ctx, actorOf(ctx), p, expect)
		return taggedBudget(b, moved(err))
	})
	op(s, "DELETE", "/budgets/{budget_id}", "Remove a budget", 204, func(ctx context.Context, in *struct {
		BudgetID
		MatchIn
	}) (*empty, error) {
		b, err := s.cfg.Spend.Show(ctx, actorOf(ctx), in.ID)
		if err != nil {
			return nil, err
		}
		expect, err := in.expected(b)
		if err != nil {
			return nil, err
		}
		return done(moved(s.cfg.Spend.Remove(ctx, actorOf(ctx), in.ID, expect)))
	})
}

func (s *Server) usageCSV(w http.ResponseWriter, r *http.Request) {
	q, err := usageQuery(r)
	if err == nil {
		var u spend.Usage
		if u, err = s.cfg.Spend.Usage(r.Context(), q); err == nil {
			var text bytes.Buffer
			if err = spend.WriteCSV(&text, string(q.By), u); err == nil {
				w.Header().Set("Content-Type", "text/csv; charset=utf-8")
				w.Header().Set("Content-Disposition", `attachment; filename="usage.csv"`)
				_, _ = w.Write(text.Bytes())
				return
			}
		}
	}
	s.refuse(w, r, err)
}

func usageQuery(r *http.Request) (q usage.Query, err error) {
	in := r.URL.Query()
	for name, into := range map[string]*time.Time{"from": &q.From, "to": &q.To} {
		if text := strings.TrimSpace(in.Get(name)); text != "" {
			if *into, err = time.Parse(time.RFC3339, text); err != nil {
				return q, thole.Errorf(thole.CodeInvalid, "%s is not a time", name).WithHint("write it as 2026-11-01T00:00:00Z")
			}
		}
	}
	q.User, q.Thread, q.By = actorOf(r.Context()).User, thole.ThreadID(in.Get("session_id")), usage.By(in.Get("group"))
	return q, nil
}
