package provider

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider/table"
)

// Credential is what a login proves itself with at its model service.
type Credential struct {
	Token string
	// Key says that Token is a key: it does not end and is not renewed.
	Key bool
	// Account is what the service wants to be named besides, if anything.
	Account string
}

// Own is where the user's own login of a CLI is kept.
func (l Login) Own(providerName string) Kept { return l.kept(providerName).at }

// Credential returns the credential of a login of a CLI. An access token that is about
// to end is renewed first, and so is the one that the service refused, if it is still
// the login's. Errors: fs.ErrNotExist without a login, ErrNeedsLogin when only a person
// can help, anything else may pass.
func (l Login) Credential(ctx context.Context, providerName string, at Kept, refused string) (Credential, error) {
	row := table.Of(providerName).Login
	r := renewal{l, providerName, row, at}
	ended := func(m members) bool { return refused != "" && m.text(row.Renewal.Access) == refused }
	login, err := r.fresh(ctx, func(m members) bool {
		return loginKey(row, m) == "" && (l.ends(row.Renewal, m, soon) || ended(m))
	})
	if err != nil && (login == nil || ended(login) || l.ends(row.Renewal, login, 0)) {
		return Credential{}, err
	}
	c := credentialOf(row, login)
	if c.Token == "" || c.Token == refused {
		return Credential{}, needsLogin(providerName)
	}
	return c, nil
}

func needsLogin(providerName string) error {
	return thole.Errorf(thole.CodeForbidden, "the login of %s: %w", providerName, ErrNeedsLogin).WithHint("log in with %s again", providerName)
}

func credentialOf(row table.Login, login members) Credential {
	if key := loginKey(row, login); key != "" {
		return Credential{Token: key, Key: true}
	}
	return Credential{Token: login.text(row.Renewal.Access), Account: login.text(row.Account)}
}

// loginKey is the key of a login, "" for one with an access token. A login that has
// both says which counts; one that does not say means the key.
func loginKey(row table.Login, login members) string {
	key := login.text(row.Key)
	if mode := login.text(row.Mode); mode != "" && mode != row.KeyMode {
		return ""
	}
	return key
}

// LoginInfo is what a login is, without its secrets.
type LoginInfo struct {
	// Key says that it is an API key and no login.
	Key bool
	// Facts are the members that show a CLI what the account may do.
	Facts map[string]any
}

// Inspect reads a login and renews nothing.
func (l Login) Inspect(ctx context.Context, providerName string, at Kept) (LoginInfo, error) {
	row := table.Of(providerName).Login
	login, err := renewal{l, providerName, row, at}.read(ctx)
	if err != nil {
		return LoginInfo{}, err
	}
	c := credentialOf(row, login)
	if c.Token == "" {
		return LoginInfo{}, needsLogin(providerName)
	}
	facts := members{}
	for _, path := range row.Facts {
		if v := login.get(path); v != nil {
			facts.set(path, v)
		}
	}
	return LoginInfo{Key: c.Key, Facts: facts}, nil
}

// Entries are the keys of a login that has one for each model provider.
func (l Login) Entries(ctx context.Context, providerName string, at Kept) (map[string]string, error) {
	row := table.Of(providerName).Login
	login, err := renewal{l, providerName, row, at}.read(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for name, entry := range handed(row, login) {
		if e, ok := entry.(map[string]any); ok {
			if key, _ := e["key"].(string); key != "" {
				out[name] = key
			}
		}
	}
	return out, nil
}
