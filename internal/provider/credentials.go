package provider

import "context"

// Credentials hands one turn what its CLI needs to reach a model. On a laptop it
// is the user's own login of that CLI, on a server a short-lived gateway token.
// What it returns lives outside anything that is synced, logged or put in an
// event.
type Credentials interface {
	// For returns the environment and files for one session of the named provider.
	// Files are placed in SessionConfig.Auth by name.
	For(ctx context.Context, providerName string) (Grant, error)
}

// Grant is one session's credentials.
type Grant struct {
	Env   map[string]string
	Files map[string][]byte
}
