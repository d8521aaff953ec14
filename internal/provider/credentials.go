package provider

import (
	"bytes"
	"context"
	"maps"
	"strings"

	thole "github.com/tholehq/thole"
)

// Credentials hands one turn what its CLI needs to reach a model: a token of the
// gateway, or where a person typed so the login of that CLI itself. What it returns
// lives outside anything that is synced, logged or put in an event.
type Credentials interface {
	// For returns the environment and files for one session of a provider. For the same
	// start of an executor they stay the same over turns, so that a CLI stays warm.
	For(ctx context.Context, who For) (Grant, error)
}

// For says who asks for credentials.
type For struct {
	Owner    thole.Owner
	Thread   thole.ThreadID
	Turn     thole.TurnID
	Executor thole.ExecutorID
	Provider string
	// Here is the directory of the user that the thread writes in place, "" for none.
	Here string
	// Secret is what the server and this start of the executor share and nothing in
	// the box knows, "" where no executor was started yet.
	Secret string
}

// Grant is one session's credentials.
type Grant struct {
	Env map[string]string
	// Files are secrets, kept in SessionConfig.Auth by plain name.
	Files map[string][]byte
	// Config holds settings without secrets, by their path in SessionConfig.Data. In a
	// box they are laid before each session, read-only, and each is at or below a
	// Setting of the provider. Elsewhere they are placed where nothing is yet.
	Config map[string][]byte
	// Gateway says that the only models of the session are those that the gateway calls.
	// Texts name its place inside by GatewayPlace.
	Gateway bool `json:",omitempty"`
	// Tools says that the session has the tool server of thole, at the gateway's place.
	Tools bool `json:",omitempty"`
}

// Variables by which a driver knows of the tool server: where it is, and the gateway's token,
// which is the agent's right to it. Nothing happens there without an open turn.
const (
	ToolsURL   = "THOLE_TOOLS_URL"
	ToolsToken = "THOLE_TOOLS_TOKEN"
)

// ToolsName is the name of the tool server in every CLI.
const ToolsName = "thole"

// FreeTools are those of the tool server that change nothing but what the agent says of its
// work: no profile asks for them.
var FreeTools = []string{"ask_user", "job_status", "goal_update"}

// WithTools is the grant with the tool server.
func (g Grant) WithTools(token string) Grant {
	env := map[string]string{ToolsURL: "http://" + GatewayPlace + "/mcp", ToolsToken: token}
	maps.Copy(env, g.Env)
	g.Env, g.Tools = env, true
	return g
}

// Led reports whether something in the session leads to the gateway.
func (g Grant) Led() bool { return g.Gateway || g.Tools }

// GatewayPlace stands in the texts of a grant for the HOST:PORT at which an executor
// shows its agents the gateway, which it alone knows.
const GatewayPlace = "{thole-gateway}"

// At is the grant with the gateway at a place.
func (g Grant) At(place string) Grant {
	if !g.Led() {
		return g
	}
	fill := func(files map[string][]byte) map[string][]byte {
		out := make(map[string][]byte, len(files))
		for name, body := range files {
			out[name] = bytes.ReplaceAll(body, []byte(GatewayPlace), []byte(place))
		}
		return out
	}
	env := make(map[string]string, len(g.Env))
	for name, text := range g.Env {
		env[name] = strings.ReplaceAll(text, GatewayPlace, place)
	}
	g.Env, g.Files, g.Config = env, fill(g.Files), fill(g.Config)
	return g
}

// Equal reports whether two grants give the same.
func (g Grant) Equal(o Grant) bool {
	return g.Gateway == o.Gateway && g.Tools == o.Tools && maps.Equal(g.Env, o.Env) && maps.EqualFunc(g.Files, o.Files, bytes.Equal) && maps.EqualFunc(g.Config, o.Config, bytes.Equal)
}

// Secrets are the values of an environment that must not show in a diagnosis.
func Secrets(env map[string]string) []string {
	var out []string
	for k, v := range env {
		k = strings.ToUpper(k)
		for _, word := range []string{"KEY", "TOKEN", "SECRET", "PASSWORD"} {
			if strings.Contains(k, word) {
				out = append(out, v)
				break
			}
		}
	}
	return out
}
