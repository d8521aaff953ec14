package provider_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/table"
)

// now is the time of these tests.
var now = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// jwt is a token that says when it ends.
func jwt(name string, end time.Time) string {
	return "h." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d,"name":%q}`, end.Unix(), name)) + ".s"
}

// service plays the token end point of a CLI: it takes each refresh token once, as the
// real ones do, and says what it was asked.
type service struct {
	*httptest.Server
	valid  atomic.Value // the refresh token that counts
	asked  atomic.Int32
	host   string
	body   map[string]string
	kind   string
	during func() // while it answers
	answer func(n int32) any
	status int
}

func newService(t *testing.T, refresh string, answer func(n int32) any) *service {
	s := &service{answer: answer, status: http.StatusOK}
	s.valid.Store(refresh)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := s.asked.Add(1)
		raw, _ := io.ReadAll(r.Body)
		s.body, s.kind, s.host = nil, r.Header.Get("Content-Type"), r.Host+r.URL.Path
		_ = json.Unmarshal(raw, &s.body)
		if s.during != nil {
			s.during()
		}
		if s.body["refresh_token"] != s.valid.Load() || s.status != http.StatusOK {
			w.WriteHeader(max(s.status, http.StatusBadRequest))
			_, _ = w.Write([]byte(`{"error":"invalid_grant","secret":"` + s.body["refresh_token"] + `"}`))
			return
		}
		s.valid.Store(fmt.Sprintf("refresh-%d", n))
		_ = json.NewEncoder(w).Encode(s.answer(n))
	}))
	t.Cleanup(s.Close)
	return s
}

// RoundTrip leads what goes to a service here.
func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Host, r.URL.Scheme, r.URL.Host = r.URL.Host, "http", strings.TrimPrefix(s.URL, "http://")
	return http.DefaultTransport.RoundTrip(r)
}

type renewal struct {
	name, path, file, access string
	login                    func(end time.Time) string
	answer                   func(n int32) any
	url                      string
	asks                     map[string]string
}

var renewals = []renewal{
	{
		name: "codex", path: ".codex/auth.json", file: "auth.json", access: "access_token",
		login: func(end time.Time) string {
			return fmt.Sprintf(`{"auth_mode":"chatgpt","OPENAI_API_KEY":null,"tokens":{"id_token":"id-0","access_token":%q,"refresh_token":"refresh-0","account_id":"me"},"last_refresh":"2026-01-01T00:00:00Z","more":"stays"}`, jwt("access-0", end))
		},
		answer: func(n int32) any {
			return map[string]any{"id_token": fmt.Sprintf("id-%d", n), "access_token": jwt(fmt.Sprintf("access-%d", n), now.Add(240*time.Hour)), "refresh_token": fmt.Sprintf("refresh-%d", n)}
		},
		url:  "auth.openai.com/oauth/token",
		asks: map[string]string{"grant_type": "refresh_token", "refresh_token": "refresh-0", "client_id": "app_EMoamEEZ73f0CkXaXp7hrann", "refresh_reason": "proactive_expiry"},
	},
	{
		name: "claude", path: ".claude/.credentials.json", file: ".credentials.json", access: "accessToken",
		login: func(end time.Time) string {
			return fmt.Sprintf(`{"claudeAiOauth":{"accessToken":"access-0","refreshToken":"refresh-0","expiresAt":%d,"scopes":["user:inference","user:profile"],"subscriptionType":"max"},"mcpOAuth":{"x":{"refreshToken":"of-a-server"}},"more":"stays"}`, end.UnixMilli())
		},
		answer: func(n int32) any {
			return map[string]any{"access_token": fmt.Sprintf("access-%d", n), "refresh_token": fmt.Sprintf("refresh-%d", n), "expires_in": 28800, "scope": "user:inference user:profile"}
		},
		url:  "platform.claude.com/v1/oauth/token",
		asks: map[string]string{"grant_type": "refresh_token", "refresh_token": "refresh-0", "client_id": "9d1c250a-e61b-44d9-88ed-5944d1962f5e", "scope": "user:inference user:profile"},
	},
}

func (r renewal) home(t *testing.T, end time.Time) (provider.Login, string, *service) {
	t.Helper()
	home := t.TempDir()
	mine := filepath.Join(home, filepath.FromSlash(r.path))
	if err := os.MkdirAll(filepath.Dir(mine), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mine, []byte(r.login(end)), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newService(t, "refresh-0", r.answer)
	return provider.Login{Home: home, Client: &http.Client{Transport: s}, Now: func() time.Time { return now }}, mine, s
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A login that ends soon is renewed as its CLI would do it, into the user's own file;
// what is handed in has no refresh token, neither then nor when nothing is renewed.
func TestTheServerRenewsLogins(t *testing.T) {
	for _, r := range renewals {
		t.Run(r.name, func(t *testing.T) {
			l, mine, s := r.home(t, now.Add(2*time.Hour))
			before := read(t, mine)
			g, err := l.For(t.Context(), provider.For{Provider: r.name})
			if err != nil || s.asked.Load() != 0 || read(t, mine) != before {
				t.Fatalf("a login that lasts: asked %d times, %v", s.asked.Load(), err)
			}
			if got := string(g.Files[r.file]); !strings.Contains(got, r.access) || strings.Contains(got, "refresh-0") || strings.Contains(got, "of-a-server") || strings.Contains(got, "stays") {
				t.Errorf("handed in %s", got)
			}

			l, mine, s = r.home(t, now.Add(30*time.Minute))
			var told []error
			l.Renewed = func(_ string, err error) { told = append(told, err) }
			if g, err = l.For(t.Context(), provider.For{Provider: r.name}); err != nil {
				t.Fatal(err)
			}
			if s.asked.Load() != 1 || s.host != r.url || s.kind != "application/json" || !maps.Equal(s.body, r.asks) || len(told) != 1 || told[0] != nil {
				t.Errorf("asked %d times, %s %s %v, told %v", s.asked.Load(), s.host, s.kind, s.body, told)
			}
			user, handed := read(t, mine), string(g.Files[r.file])
			if !strings.Contains(user, "refresh-1") || strings.Contains(user, "refresh-0") || !strings.Contains(user, "stays") {
				t.Errorf("the user's login is %s", user)
			}
			if strings.Contains(handed, "refresh-") || !strings.Contains(handed, r.access) {
				t.Errorf("handed in %s", handed)
			}
			if fi, err := os.Stat(mine); err != nil || fi.Mode().Perm() != 0o600 {
				t.Errorf("its mode is %v, %v", fi.Mode(), err)
			}
			again, err := l.For(t.Context(), provider.For{Provider: r.name})
			if err != nil || s.asked.Load() != 1 || string(again.Files[r.file]) != handed {
				t.Errorf("the next turn: asked %d times, %v, handed %s", s.asked.Load(), err, again.Files[r.file])
			}
		})
	}
}

// Turns that begin together renew once: a refresh token counts once.
func TestOneRenewalAtATime(t *testing.T) {
	for _, r := range renewals {
		t.Run(r.name, func(t *testing.T) {
			l, mine, s := r.home(t, now.Add(-time.Hour))
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					if _, err := l.For(t.Context(), provider.For{Provider: r.name}); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if s.asked.Load() != 1 || !strings.Contains(read(t, mine), "refresh-1") {
				t.Errorf("asked %d times: %s", s.asked.Load(), read(t, mine))
			}
			for _, in := range []string{l.Home, filepath.Dir(mine)} {
				if left, err := os.ReadDir(in); err != nil || len(left) != 1 {
					t.Errorf("left in %s: %v, %v", in, left, err)
				}
			}
		})
	}
}

// The user's own claude, which renews under its locks, is waited for.
func TestTheCLIsLocksAreRespected(t *testing.T) {
	r := renewals[1]
	for _, name := range []string{".claude/.oauth_refresh.lock", ".claude.lock"} {
		l, mine, s := r.home(t, now.Add(-time.Hour))
		if err := os.Mkdir(filepath.Join(l.Home, name), 0o700); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, err := l.For(ctx, provider.For{Provider: r.name})
		cancel()
		if err == nil || s.asked.Load() != 0 || !strings.Contains(read(t, mine), "refresh-0") {
			t.Errorf("%s: asked %d times, %v", name, s.asked.Load(), err)
		}
		long := time.Now().Add(-time.Hour) // it died
		if err := os.Chtimes(filepath.Join(l.Home, name), long, long); err != nil {
			t.Fatal(err)
		}
		if _, err := l.For(t.Context(), provider.For{Provider: r.name}); err != nil || s.asked.Load() != 1 {
			t.Errorf("%s left behind: asked %d times, %v", name, s.asked.Load(), err)
		}
	}
}

// A login that the user made while the service answered stays the user's.
func TestARenewalOverwritesNoOtherLogin(t *testing.T) {
	for _, r := range renewals {
		t.Run(r.name, func(t *testing.T) {
			l, mine, s := r.home(t, now.Add(30*time.Minute))
			other := strings.ReplaceAll(r.login(now.Add(300*time.Hour)), "refresh-0", "of-another-login")
			s.during = func() {
				if err := os.WriteFile(mine, []byte(other), 0o600); err != nil {
					t.Error(err)
				}
			}
			if _, err := l.For(t.Context(), provider.For{Provider: r.name}); err != nil {
				t.Fatal(err)
			}
			if got := read(t, mine); got != other {
				t.Errorf("the user's login is %s", got)
			}
		})
	}
}

// What cannot be renewed is used while it lasts, then refused with the reason; no token
// is in it.
func TestARenewalThatFails(t *testing.T) {
	for _, r := range renewals {
		t.Run(r.name, func(t *testing.T) {
			for _, left := range []time.Duration{time.Minute, -time.Minute} {
				l, mine, s := r.home(t, now.Add(left))
				s.status = http.StatusUnauthorized
				var told []error
				l.Renewed = func(_ string, err error) { told = append(told, err) }
				before := read(t, mine)
				g, err := l.For(t.Context(), provider.For{Provider: r.name})
				if read(t, mine) != before {
					t.Errorf("the user's login is %s", read(t, mine))
				}
				if left > 0 {
					if err != nil || len(g.Files) != 1 || len(told) != 1 || told[0] == nil || strings.Contains(told[0].Error(), "refresh-0") {
						t.Errorf("%v, %d files, told %v", err, len(g.Files), told)
					}
					continue
				}
				if thole.CodeOf(err) != thole.CodeForbidden || thole.HintOf(err) == "" || !strings.Contains(err.Error(), "401") || strings.Contains(err.Error(), "refresh-0") || len(g.Files) != 0 {
					t.Errorf("%v (%s), %d files", err, thole.HintOf(err), len(g.Files))
				}
			}
		})
	}
}

// Entries of opencode that are keys are handed in; logins need a person's word.
func TestOpencodesLoginsNeedAWord(t *testing.T) {
	home := t.TempDir()
	mine := filepath.Join(home, ".local/share/opencode/auth.json")
	if err := os.MkdirAll(filepath.Dir(mine), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mine, []byte(`{"anthropic":{"type":"oauth","refresh":"r","access":"a","expires":1},"openai":{"type":"api","key":"sk-1"},"corp":{"type":"wellknown","key":"K","token":"t"},"odd":"x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	l := provider.Login{Home: home}
	g, err := l.For(t.Context(), provider.For{Provider: "opencode"})
	if got := strings.Join(strings.Fields(string(g.Files["auth.json"])), ""); err != nil || got != `{"openai":{"key":"sk-1","type":"api"}}` {
		t.Errorf("handed in %s, %v", got, err)
	}
	if got := l.Withheld("opencode"); strings.Join(got, " ") != "anthropic corp odd" {
		t.Errorf("withheld %v", got)
	}
	l.HandIn = []string{"opencode"}
	g, err = l.For(t.Context(), provider.For{Provider: "opencode"})
	if got := string(g.Files["auth.json"]); err != nil || !strings.Contains(got, `"refresh": "r"`) || len(l.Withheld("opencode")) != 0 {
		t.Errorf("handed in %s, %v", got, err)
	}
}

// No row of the table hands a refresh token in.
func TestNoRowHandsARefreshTokenIn(t *testing.T) {
	for _, c := range table.CLIs {
		for _, path := range c.Login.Hands {
			if path == c.Login.Renewal.Refresh || strings.Contains(strings.ToLower(path), "refresh_token") || strings.Contains(path, "refreshToken") || !strings.Contains(path, ".") && !slices.Contains([]string{"auth_mode", "last_refresh", "OPENAI_API_KEY", "personal_access_token", "bedrock_api_key", "bedrock_access_keys"}, path) {
				t.Errorf("%s hands in %s", c.Name, path)
			}
		}
		if c.Login.File != "" && c.Login.Keys == "" && (c.Login.Renewal.URL == "" || len(c.Login.Hands) == 0) {
			t.Errorf("%s has a login that nobody renews", c.Name)
		}
	}
}
