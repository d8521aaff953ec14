package tholetest

import (
	"context"
	"net/http/httptest"
	"path/filepath"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/gateway/upstream"
	"github.com/tholehq/thole/internal/platform/guard"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/platform/spend"
	"github.com/tholehq/thole/internal/price"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/testprovider"
	"github.com/tholehq/thole/internal/vault"
	"github.com/tholehq/thole/internal/vault/keyfile"
)

// Site is the HTTP server on a kit's threads.
type Site struct {
	*Kit
	HTTP     *httpapi.Server
	Sessions *session.Manager
	Cookies  guard.Cookies
	URL      string
	// Token is an API token of the local user.
	Token string
}

// Site starts the HTTP server of this life; it ends with the test.
func (k *Kit) Site(change ...func(*httpapi.Config)) *Site {
	k.t.Helper()
	ctx := context.Background()
	s := &Site{Kit: k, Sessions: session.New(k.db.LoginSessions(), nil), Cookies: guard.NewCookies(k.Home, false)}
	var err error
	if s.Token, _, err = s.Sessions.NewToken(ctx, thole.LocalUser, session.Grant{Name: "test"}); err != nil {
		k.t.Fatal(err)
	}
	var can vault.Can // nil: the home's own user manages what is shared
	if k.People != nil {
		can = k.People.Can
	}
	cfg := httpapi.Config{
		Threads: k.Threads, Index: k.db.Index(), Keys: k.db.Idempotency(), Sessions: s.Sessions, Version: "test",
		Spend:   spend.New(spend.Config{Budgets: k.db.Budgets(), Usage: k.db.Index().Usage, Prices: price.Default, Thread: k.Threads.Get, Can: can, Now: time.Now, NewID: thole.NewID[string]}),
		Cookies: s.Cookies, Guard: guard.New(guard.Config{}),
		Connections: func(context.Context, thole.Owner, string, bool) ([]upstream.Checked, error) { return nil, nil },
		Vault:       vault.New(vault.Config{Store: k.db.Vault(), Keys: keyfile.File{Path: filepath.Join(k.Home, "vault.key")}, Can: can}),
		Providers:   func() []provider.Info { return []provider.Info{testprovider.New().Probe(ctx)} },
	}
	for _, c := range change {
		c(&cfg)
	}
	if s.HTTP, err = httpapi.New(cfg); err != nil {
		k.t.Fatal(err)
	}
	web := httptest.NewServer(s.HTTP)
	s.URL = web.URL
	k.t.Cleanup(func() {
		stop, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		_ = s.HTTP.Shutdown(stop)
		web.Close()
	})
	return s
}
