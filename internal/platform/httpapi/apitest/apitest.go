// Package apitest puts the HTTP server on the threads of an apptest.Rig, for tests
// that need both faces of one server. It is imported by tests only.
package apitest

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/appserver/apptest"
	"github.com/tholehq/thole/internal/platform/guard"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/testprovider"
)

// Site is an HTTP server beside a contract server.
type Site struct {
	*apptest.Rig
	HTTP *httpapi.Server
	URL  string
	// Token is an API token of the local user.
	Token string
}

// New starts a site that ends with the test.
func New(t testing.TB) *Site {
	t.Helper()
	ctx := context.Background()
	s := &Site{Rig: apptest.New(t, apptest.Options{})}
	db := s.Store()
	sessions := session.New(db.Sessions(), nil)
	var err error
	if s.Token, _, err = sessions.NewToken(ctx, thole.LocalUser, "test", 0); err != nil {
		t.Fatal(err)
	}
	s.HTTP, err = httpapi.New(httpapi.Config{
		Threads: s.Threads, Index: db.Index(), Keys: db.Idempotency(), Sessions: sessions, Version: "test",
		Cookies: guard.NewCookies(s.Home, false), Guard: guard.New(guard.Config{}),
		Providers: func() []provider.Info { return []provider.Info{testprovider.New().Probe(ctx)} },
	})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s.HTTP)
	s.URL = web.URL
	t.Cleanup(func() {
		stop, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		_ = s.HTTP.Shutdown(stop)
		web.Close()
	})
	return s
}
