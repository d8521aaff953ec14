package daemon

import (
	"context"
	"encoding/json"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/spend"
	"github.com/tholehq/thole/internal/platform/usage"
	"github.com/tholehq/thole/internal/strictjson"
)

// SpendMethods answer what was used, and manage budgets.
func SpendMethods(s *spend.Service) map[string]Method {
	return map[string]Method{
		spend.MethodUsage: withParams("usage", func(ctx context.Context, a thole.Actor, p spend.UsageParams) (any, error) {
			return s.UsageOfAll(ctx, a, usage.Query{Thread: thole.ThreadID(p.Thread), From: p.From, To: p.To, By: usage.By(p.By)})
		}),
		spend.MethodPrices: withParams("prices", func(context.Context, thole.Actor, struct{}) (any, error) { return s.Prices(), nil }),
		spend.MethodBudgetSet: withParams("budget", func(ctx context.Context, a thole.Actor, p spend.SetParams) (any, error) {
			return s.Set(ctx, a, p, spend.Any)
		}),
		spend.MethodBudgetList: withParams("budget", func(ctx context.Context, a thole.Actor, _ struct{}) (any, error) { return s.List(ctx, a) }),
		spend.MethodBudgetShow: withParams("budget", func(ctx context.Context, a thole.Actor, p spend.BudgetParams) (any, error) {
			return s.Show(ctx, a, p.ID)
		}),
		spend.MethodBudgetRemove: withParams("budget", func(ctx context.Context, a thole.Actor, p spend.BudgetParams) (any, error) {
			return struct{}{}, s.Remove(ctx, a, p.ID, spend.Any)
		}),
	}
}

// withParams reads a method's parameters.
func withParams[P any](what string, do func(context.Context, thole.Actor, P) (any, error)) Method {
	return func(ctx context.Context, actor thole.Actor, params json.RawMessage) (any, error) {
		var p P
		if err := strictjson.Unmarshal(params, &p); err != nil {
			return nil, thole.Errorf(thole.CodeInvalid, "%s: %w", what, err)
		}
		return do(ctx, actor, p)
	}
}
