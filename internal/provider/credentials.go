package provider

import (
	"bytes"
	"context"
	"maps"
	"strings"
)

// Credentials hands one turn what its CLI needs to reach a model. On a laptop it
// is the user's own login of that CLI, on a server a short-lived gateway token.
// What it returns lives outside anything that is synced, logged or put in an
// event.
type Credentials interface {
	// For returns the environment and files for one session of the named provider.
	For(ctx context.Context, providerName string) (Grant, error)
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
}

// Equal reports whether two grants give the same.
func (g Grant) Equal(o Grant) bool {
	return maps.Equal(g.Env, o.Env) && maps.EqualFunc(g.Files, o.Files, bytes.Equal) && maps.EqualFunc(g.Config, o.Config, bytes.Equal)
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
