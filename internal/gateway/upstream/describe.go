package upstream

import (
	"context"
	"slices"
	"strings"

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
	// Configured are those of gateway.upstreams, which come before the vault.
	Configured bool `json:"configured,omitempty"`
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
			c := Credential{Route: w.name, Upstream: f.Name, Host: f.Base.Host, Origin: f.origin, Configured: f.entry != nil}
			if f.entry != nil && r.lacks(ctx, f.entry.Key) {
				c.Origin += ", which is not there"
			}
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return nil, missing(providerName)
	}
	return out, nil
}

// lacks reports whether the variable or the file that a key is in is missing here.
func (r *Routes) lacks(ctx context.Context, ref string) bool {
	if !strings.HasPrefix(ref, "env:") && !strings.HasPrefix(ref, "file:") {
		return false
	}
	_, err := r.secret(ctx, gateway.Claim{}, ref)
	return err != nil
}

// Unserved lists the model providers that the user of this machine has a key for and no
// route, by the CLI's names of them.
func (r *Routes) Unserved(ctx context.Context, providerName string) []string {
	all, _, err := r.ways(ctx, gateway.Claim{Owner: thole.DefaultOwner, Provider: providerName})
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(r.user().Unserved(ctx, providerName), func(name string) bool {
		return slices.ContainsFunc(all, func(w way) bool { return w.info.Provider == name })
	})
}

// Serves reports whether an item of the vault for a provider is of use to a CLI.
func Serves(cli, provider string) bool {
	if s, ok := setup.OfCLI(cli); ok {
		return provider == cli || provider == s.Name
	}
	return setup.RouteOf(cli, "") != "" && (setup.Known(provider) || provider == cli)
}
