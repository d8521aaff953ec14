package upstream

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/gateway"
	"github.com/tholehq/thole/internal/provider/setup"
)

// Credential says where a route leads and what proves a call there, without any value.
type Credential struct {
	Route    string `json:"route"`
	Upstream string `json:"upstream"`
	Host     string `json:"host"`
	Origin   string `json:"origin"`
}

// Describe lists the upstreams of a CLI's routes for the threads of an owner. A
// CLI that has none is an error that says how to get one.
func (r *Routes) Describe(ctx context.Context, who thole.Owner, providerName string) ([]Credential, error) {
	all, _, err := r.ways(ctx, gateway.Claim{Owner: who, Provider: providerName})
	if err != nil {
		return nil, err
	}
	var out []Credential
	for _, w := range all {
		for _, f := range w.upstreams {
			out = append(out, Credential{Route: w.name, Upstream: f.Name, Host: f.Base.Host, Origin: f.origin})
		}
	}
	if len(out) == 0 {
		return nil, missing(providerName)
	}
	return out, nil
}

// Serves reports whether an item of the vault for a provider is of use to a CLI.
func Serves(cli, provider string) bool {
	if s, ok := setup.OfCLI(cli); ok {
		return provider == cli || provider == s.Name
	}
	return setup.RouteOf(cli, "") != "" && (setup.Known(provider) || provider == cli)
}
