// Package spend answers people: what was used, what it cost, and which budgets there are.
// It is the one face of the ledger for the command line and for HTTP. It checks who may
// ask what; the rules of budgets are the budget package's.
package spend

import (
	"context"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/budget"
	"github.com/tholehq/thole/internal/platform/usage"
	"github.com/tholehq/thole/internal/price"
)

// Config makes a Service.
type Config struct {
	Budgets budget.Store
	Usage   func(context.Context, usage.Query) ([]usage.Sum, error)
	Prices  func() *price.Table
	// Thread reads a thread that the actor may see.
	Thread func(context.Context, thole.Actor, thole.ThreadID) (fold.Thread, error)
	// Can decides who manages budgets and sees what everybody used; nil: the home's own user.
	Can   func(context.Context, thole.Actor, authz.Action, authz.Resource) (bool, error)
	Now   func() time.Time
	NewID func(time.Time) string
}

// Service is safe for concurrent use.
type Service struct{ cfg Config }

// New makes a Service.
func New(cfg Config) *Service {
	if cfg.Can == nil {
		cfg.Can = func(_ context.Context, a thole.Actor, _ authz.Action, _ authz.Resource) (bool, error) {
			return a.User == thole.LocalUser, nil
		}
	}
	return &Service{cfg}
}

// Sum is what runs used.
type Sum struct {
	Key        string `json:"key,omitempty"`
	Runs       int64  `json:"runs"`
	Input      int64  `json:"input"`
	Output     int64  `json:"output"`
	Reasoning  int64  `json:"reasoning"`
	CacheRead  int64  `json:"cache_read"`
	CacheWrite int64  `json:"cache_write"`
	CostMicros int64  `json:"cost_micros" doc:"millionths of a US dollar, without what has no price"`
	Unpriced   int64  `json:"unpriced_runs" doc:"runs with a model that has no price"`
	Calls      int64  `json:"calls" doc:"model calls through the gateway"`
	Unknown    int64  `json:"unknown_calls" doc:"calls whose usage nobody knows; they count with an upper bound"`
	Differs    int64  `json:"differing_runs" doc:"runs whose agent reported more than 5 % more or fewer tokens than its calls used"`
}

// Usage is a total and its groups.
type Usage struct {
	Total  Sum   `json:"total"`
	Groups []Sum `json:"groups"`
}

// UsageOfAll sums what everybody used for those who may see it, and for others what they did.
func (s *Service) UsageOfAll(ctx context.Context, actor thole.Actor, q usage.Query) (Usage, error) {
	all, err := s.everybodys(ctx, actor)
	if err != nil {
		return Usage{}, err
	}
	if q.User = ""; !all {
		q.User = actor.User
	}
	return s.Usage(ctx, q)
}

// Usage sums what a user used; an empty user means everybody.
func (s *Service) Usage(ctx context.Context, q usage.Query) (Usage, error) {
	out := Usage{Groups: []Sum{}}
	if !q.By.Valid() {
		return out, thole.Errorf(thole.CodeInvalid, "unknown grouping %q", q.By).WithHint("the groupings are %v", usage.Groups)
	}
	if q.By != "" {
		sums, err := s.cfg.Usage(ctx, q)
		if err != nil {
			return out, err
		}
		for _, v := range sums {
			out.Groups = append(out.Groups, sumOf(v))
		}
	}
	q.By = "" // a run of two models is in two groups and one total
	total, err := s.cfg.Usage(ctx, q)
	if len(total) > 0 {
		out.Total = sumOf(total[0])
	}
	return out, err
}

func sumOf(s usage.Sum) Sum {
	return Sum{s.Key, s.Turns, s.Input, s.Output, s.Reasoning, s.CacheRead, s.CacheWrite, s.CostMicros, s.Unpriced, s.Calls, s.Unknown, s.Differs}
}

// Prices is the price table that holds now.
type Prices struct {
	Version string  `json:"version"`
	AsOf    string  `json:"as_of" doc:"the month in which the prices were last compared with what is published"`
	Origin  string  `json:"origin"`
	Items   []Price `json:"items"`
}

// Price is in US dollars per million tokens.
type Price struct {
	Provider   string  `json:"provider,omitempty"`
	Model      string  `json:"model"`
	From       string  `json:"from,omitempty"`
	PromptOver int64   `json:"prompt_over,omitempty" doc:"prompts longer than this many tokens"`
	In         float64 `json:"in"`
	Out        float64 `json:"out"`
	CacheRead  float64 `json:"cache_read"`
	CacheWrite float64 `json:"cache_write"`
}

// Prices returns the price table that holds now.
func (s *Service) Prices() Prices {
	t := s.cfg.Prices()
	out := Prices{Version: t.Version, AsOf: t.AsOf, Origin: t.Origin, Items: make([]Price, 0, len(t.Rows))}
	for _, r := range t.Rows {
		out.Items = append(out.Items, Price(r))
	}
	return out
}
