package doctor

import (
	"cmp"
	"context"
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/gateway/upstream"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/table"
)

// Kept are the providers that the vault has an item for, with the item's state; nil
// where nobody could be asked.
type Kept map[string]string

// Credentials says in a line for each agent which services its turns reach and where the
// credential is from, or the error that a turn would end with. No value is read but to
// see whether there is one.
func Credentials(ctx context.Context, cfg *config.Config, l provider.Login, kept Kept) map[string]Credential {
	out := map[string]Credential{}
	routes, err := upstream.New(upstream.Config{Entries: cfg.Gateway.Upstreams.Entries(), Login: l})
	for _, row := range table.CLIs {
		if row.Gateway.Route == "" {
			continue
		}
		c := Credential{Err: err}
		if err == nil {
			c = credential(ctx, routes, row.Name, l.HandIn, kept)
		}
		out[row.Name] = c
	}
	return out
}

// Credential is what one agent's turns run on.
type Credential struct {
	Found string
	Err   error
	// Unserved are model providers that there is a key for and no route.
	Unserved []string
}

func credential(ctx context.Context, routes *upstream.Routes, name string, handIn []string, kept Kept) Credential {
	if slices.Contains(handIn, name) {
		return Credential{Found: "its login is handed in (providers.hand_in_logins)"}
	}
	var first, items, own []string // in the order in which turns look
	for p, state := range kept {
		if upstream.Serves(name, p) {
			items = append(items, "vault item for "+p+", "+state)
		}
	}
	slices.Sort(items)
	found, err := routes.Describe(ctx, thole.DefaultOwner, name)
	for _, f := range found {
		line := f.Host + ": " + f.Origin
		if f.Configured {
			first = append(first, line)
		} else {
			own = append(own, line)
		}
	}
	lines := slices.Concat(first, items, own)
	if len(lines) == 0 {
		return Credential{Err: err}
	}
	return Credential{Found: strings.Join(lines, "; "), Unserved: routes.Unserved(ctx, name)}
}

// CheckCredentials are the doctor's findings about them.
func CheckCredentials(ctx context.Context, cfg *config.Config, l provider.Login, kept Kept) (out []Finding) {
	all := Credentials(ctx, cfg, l, kept)
	for _, row := range table.CLIs {
		c, ok := all[row.Name]
		if !ok {
			continue
		}
		f := Finding{Part: "credential " + row.Name, OK: c.Err == nil, Found: c.Found, Disables: "turns of " + row.Name}
		if c.Err != nil {
			f.Problem, f.Fix = c.Err.Error(), thole.HintOf(c.Err)
		}
		out = append(out, f)
		if len(c.Unserved) > 0 {
			names := strings.Join(c.Unserved, ", ")
			out = append(out, Finding{
				Part: f.Part, Problem: "keys that no route uses, because the gateway does not know their services: " + names, Disables: "models of " + names,
				Fix: "name the service in gateway.upstreams, with routes = [\"" + row.Gateway.Route + c.Unserved[0] + "\"]",
			})
		}
	}
	return out
}

// Tried are findings about what services said of the credentials. One that was not reached
// says nothing about its credential.
func Tried(all daemon.Checks) (out []Finding) {
	for _, row := range table.CLIs {
		for _, s := range all[row.Name].Sources {
			service := cmp.Or(s.Host, s.Upstream)
			f := Finding{Part: "login " + row.Name, OK: true, Found: service + " takes the credential from " + s.Origin}
			switch s.Taken {
			case upstream.TakenNo:
				f = Finding{Part: f.Part, Problem: service + " refuses the credential from " + s.Origin + ": " + s.Note, Disables: "turns of " + row.Name,
					Fix: "thole provider login " + row.Name + ", or set another key: thole secret set"}
			case upstream.TakenUnknown:
				f.Unknown, f.Found = true, "not known whether "+service+" takes the credential from "+s.Origin+": "+s.Note
			}
			out = append(out, f)
		}
	}
	return out
}
