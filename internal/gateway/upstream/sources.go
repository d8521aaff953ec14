package upstream

import (
	"context"
	"slices"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/gateway"
	"github.com/tholehq/thole/internal/provider/setup"
	"github.com/tholehq/thole/internal/vault"
)

// Source is where the credential of a CLI's calls is from, without any value.
type Source struct {
	Upstream string `json:"upstream" doc:"the model service"`
	Host     string `json:"host,omitempty"`
	Origin   string `json:"origin" doc:"in words: a setting, a secret, a variable, a login"`
	Item     string `json:"item_id,omitempty" doc:"the secret of the vault that it is"`
}

// Sources lists what Describe does for a person who looks. It opens no secret, because
// looking is not a use; so a login that has keys for several services is one source.
func (r *Routes) Sources(ctx context.Context, who thole.Owner, cli string) ([]Source, error) {
	return r.SourcesOf(ctx, gateway.Claim{Owner: who, Provider: cli})
}

// SourcesOf is Sources for one thread: keys of the shell from which it was written to
// count before the vault.
func (r *Routes) SourcesOf(ctx context.Context, c gateway.Claim) ([]Source, error) {
	who, cli := c.Owner, c.Provider
	out := sourcesOf(r.configured(c))
	if shell := r.cfg.Shells.of(c.Thread); who.User == thole.LocalUser && len(shell) > 0 {
		user := r.user()
		user.Shell = shell
		found, _, err := user.Ways(ctx, cli, len(out) > 0)
		if err != nil {
			return nil, err
		}
		for _, w := range found {
			if w.Shell {
				out = append(out, sourcesOf([]way{wayOf(w)})...)
			}
		}
	}
	items, err := r.serving(ctx, c)
	if err != nil {
		return nil, err
	}
	_, single := setup.OfCLI(cli)
	for _, i := range items {
		if !single || len(out) == 0 {
			out = append(out, Source{Upstream: i.Provider, Origin: "vault item " + i.Name, Item: string(i.ID)})
		}
	}
	if who.User == thole.LocalUser && (!single || len(out) == 0) {
		found, _, err := r.user().Ways(ctx, cli, len(out) > 0)
		if err != nil {
			return nil, err
		}
		var own []way
		for _, w := range found {
			own = append(own, wayOf(w))
		}
		for _, s := range sourcesOf(own) {
			if !slices.ContainsFunc(out, func(o Source) bool { return o.Upstream == s.Upstream }) {
				out = append(out, s)
			}
		}
	}
	if len(out) == 0 {
		return nil, missing(cli)
	}
	return out, nil
}

// serving are the items of the vault that a CLI's calls take, the nearest of each provider.
func (r *Routes) serving(ctx context.Context, c gateway.Claim) ([]vault.Item, error) {
	if r.cfg.Vault == nil {
		return nil, nil
	}
	all, err := r.cfg.Vault.Candidates(ctx, c.Owner, vault.ProviderAuth, "")
	var out []vault.Item
	for _, i := range all {
		if Serves(c.Provider, i.Provider) && !slices.ContainsFunc(out, func(o vault.Item) bool { return o.Provider == i.Provider }) {
			out = append(out, i)
		}
	}
	return out, err
}

func sourcesOf(ways []way) (out []Source) {
	for _, w := range ways {
		for _, f := range w.upstreams {
			out = append(out, Source{Upstream: f.Name, Host: f.Base.Host, Origin: f.origin})
		}
	}
	return out
}
