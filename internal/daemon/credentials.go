package daemon

import (
	"context"
	"encoding/json"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/gateway"
	"github.com/tholehq/thole/internal/gateway/upstream"
	"github.com/tholehq/thole/internal/provider/table"
)

// Methods about what pays for model calls. No answer holds a value.
const (
	MethodKeys    = "thole/thread/keys"        // KeysParams: keys of the caller's shell, for a thread
	MethodPays    = "thole/thread/pays"        // PaysParams: []upstream.Source
	MethodCheck   = "thole/credential/check"   // CheckParams: Checks
	MethodMissing = "thole/credential/missing" // the names of agents that have none; no service is asked
)

// KeysParams hand over variables of a shell.
type KeysParams struct {
	Thread thole.ThreadID    `json:"thread"`
	Env    map[string]string `json:"env"`
}

// PaysParams names a thread.
type PaysParams struct {
	Thread thole.ThreadID `json:"thread"`
}

// CheckParams names an agent, "" for all.
type CheckParams struct {
	Provider string `json:"provider,omitempty"`
}

// Checks are what a check found, by agent.
type Checks map[string]Check

// Check is what it found of one: its sources, or why there are none.
type Check struct {
	Sources []upstream.Checked `json:"sources"`
	Problem string             `json:"problem,omitempty"`
	Hint    string             `json:"hint,omitempty"`
}

// Credentials knows what pays.
type Credentials struct {
	Threads Reader
	// Routes and Shells are nil in a demo, where nobody pays.
	Routes *upstream.Routes
	Shells *upstream.Shells
}

// Methods are for the user of the home's socket.
func (c Credentials) Methods() map[string]Method {
	keys := method(c.keys)
	return map[string]Method{
		MethodKeys: func(ctx context.Context, actor thole.Actor, params json.RawMessage) (any, error) {
			defer clear(params) // it holds values
			return keys(ctx, actor, params)
		},
		MethodPays:    method(c.pays),
		MethodCheck:   method(c.check),
		MethodMissing: method(c.missing),
	}
}

func (c Credentials) keys(ctx context.Context, actor thole.Actor, p KeysParams) (struct{}, error) {
	if _, err := c.Threads.Get(ctx, actor, p.Thread); err != nil || c.Shells == nil {
		return struct{}{}, err
	}
	return struct{}{}, c.Shells.Keep(p.Thread, p.Env)
}

func (c Credentials) pays(ctx context.Context, actor thole.Actor, p PaysParams) ([]upstream.Source, error) {
	th, err := c.Threads.Get(ctx, actor, p.Thread)
	if err != nil || c.Routes == nil {
		return []upstream.Source{}, err
	}
	return c.Routes.SourcesOf(ctx, gateway.Claim{Thread: th.ID, Owner: th.Owner, Provider: th.Settings.Provider})
}

func (c Credentials) check(ctx context.Context, actor thole.Actor, p CheckParams) (Checks, error) {
	if c.Routes == nil {
		return Checks{}, nil
	}
	return CheckAll(ctx, c.Routes, actor.User, p.Provider), nil
}

// missing names the agents of the caller for which there is no credential. One of which
// that is not known, because its settings cannot be read, is not among them.
func (c Credentials) missing(ctx context.Context, actor thole.Actor, _ struct{}) ([]string, error) {
	out := []string{}
	if c.Routes == nil {
		return out, nil
	}
	who := thole.Owner{App: thole.DefaultApp, Project: thole.DefaultProject, User: actor.User}
	for _, row := range table.CLIs {
		if row.Gateway.Route == "" {
			continue
		}
		if _, err := c.Routes.Sources(ctx, who, row.Name); thole.CodeOf(err) == thole.CodeNotFound {
			out = append(out, row.Name)
		}
	}
	return out, nil
}

// CheckAll tries the credentials of the agents of a user, one after the other.
func CheckAll(ctx context.Context, routes *upstream.Routes, user thole.UserID, only string) Checks {
	out := Checks{}
	who := thole.Owner{App: thole.DefaultApp, Project: thole.DefaultProject, User: user}
	for _, row := range table.CLIs {
		if row.Gateway.Route == "" || only != "" && only != row.Name {
			continue
		}
		found, err := routes.Check(ctx, gateway.Claim{Owner: who, Provider: row.Name})
		one := Check{Sources: append([]upstream.Checked{}, found...)}
		if err != nil {
			one.Problem, one.Hint = err.Error(), thole.HintOf(err)
		}
		out[row.Name] = one
	}
	return out
}
