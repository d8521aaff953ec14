package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/gateway"
	"github.com/tholehq/thole/internal/gateway/upstream"
	"github.com/tholehq/thole/internal/provider"
)

var now = time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)

// machine is the home and the environment of the user of a server.
type machine struct {
	testing.TB
	home string
	env  map[string]string
	cfg  upstream.Config
}

func newMachine(t testing.TB) *machine {
	m := &machine{TB: t, home: t.TempDir(), env: map[string]string{}}
	m.cfg.Login = provider.Login{Home: m.home, Getenv: func(k string) string { return m.env[k] }, Now: func() time.Time { return now }}
	return m
}

func (m *machine) put(name, body string) {
	m.Helper()
	path := filepath.Join(m.home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		m.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
		m.Fatal(err)
	}
}

func (m *machine) read(name string) string {
	m.Helper()
	data, err := os.ReadFile(filepath.Join(m.home, name))
	if err != nil {
		m.Fatal(err)
	}
	return string(data)
}

func (m *machine) routes() *upstream.Routes {
	m.Helper()
	r, err := upstream.New(m.cfg)
	if err != nil {
		m.Fatal(err)
	}
	return r
}

func claim(cli string, user thole.UserID) gateway.Claim {
	c := gateway.Claim{Executor: "e", Thread: "t", Turn: "u", Owner: thole.DefaultOwner, Provider: cli}
	c.Owner.User = user
	return c
}

// signed is what the first upstream of a route gets.
func signed(t testing.TB, r *upstream.Routes, cli, route string) (gateway.Upstream, http.Header) {
	t.Helper()
	got, err := r.Route(t.Context(), claim(cli, thole.LocalUser), route)
	if err != nil {
		t.Fatalf("route %s: %v (%s)", route, err, thole.HintOf(err))
	}
	h := http.Header{}
	if err := got.Upstreams[0].Sign(t.Context(), h, false); err != nil {
		t.Fatalf("sign %s: %v", route, err)
	}
	return got.Upstreams[0], h
}

// logins plays the token end points of both CLIs: each refresh token counts once.
type logins struct {
	*httptest.Server
	mu    sync.Mutex
	asked int
	valid bool
}

func newLogins(t testing.TB) *logins {
	l := &logins{valid: true}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]string
		raw, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(raw, &body)
		l.mu.Lock()
		defer l.mu.Unlock()
		if !l.valid || body["refresh_token"] != fmt.Sprintf("refresh-%d", l.asked) {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		l.asked++
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": fmt.Sprintf("access-%d", l.asked), "refresh_token": fmt.Sprintf("refresh-%d", l.asked), "expires_in": 28800})
	}))
	t.Cleanup(l.Close)
	return l
}

func (l *logins) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = "http", strings.TrimPrefix(l.URL, "http://")
	return http.DefaultTransport.RoundTrip(r)
}

// login is a login file of a CLI that ends at some time.
func login(cli string, end time.Time) (path, body string) {
	if cli == "codex" {
		return ".codex/auth.json", `{"auth_mode":"chatgpt","OPENAI_API_KEY":null,"tokens":{"id_token":"id","access_token":"access-0","refresh_token":"refresh-0","account_id":"acc-1"},"last_refresh":"2026-01-01T00:00:00Z"}`
	}
	return ".claude/.credentials.json", fmt.Sprintf(`{"claudeAiOauth":{"accessToken":"access-0","refreshToken":"refresh-0","expiresAt":%d,"scopes":["user:inference"],"subscriptionType":"max"}}`, end.UnixMilli())
}

var bg = context.Background()
