package doctor

import (
	"context"
	"slices"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/gateway/upstream"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/table"
)

// checkGateway says of each CLI how it reaches its models. The vault is not looked into:
// only the process that owns the home opens it.
func checkGateway(ctx context.Context, cfg *config.Config, l provider.Login) (out []Finding) {
	routes, err := upstream.New(upstream.Config{Entries: cfg.Gateway.Upstreams.Entries(), Login: l, Tools: cfg.Gateway.Tools})
	if err != nil {
		return []Finding{{Part: "gateway", Problem: err.Error(), Disables: "every agent", Fix: thole.HintOf(err)}}
	}
	for _, c := range table.CLIs {
		if c.Gateway.Route == "" || slices.Contains(l.HandIn, c.Name) { // of the latter its login says it
			continue
		}
		f := Finding{Part: "gateway " + c.Name, OK: true, Found: "models through the gateway; no key enters an executor"}
		switch _, err := routes.Ways(ctx, thole.DefaultOwner, c.Name); thole.CodeOf(err) {
		case "":
		case thole.CodeNotFound:
			f = Finding{Part: f.Part, Problem: err.Error() + " but what the vault may have", Disables: "turns of " + c.Name, Fix: thole.HintOf(err)}
		default:
			f = Finding{Part: f.Part, Problem: err.Error(), Disables: "turns of " + c.Name, Fix: thole.HintOf(err)}
		}
		out = append(out, f)
	}
	return out
}
