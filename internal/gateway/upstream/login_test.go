package upstream_test

import (
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/gateway"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/unguarded"
	"github.com/tholehq/thole/internal/vault"
	"github.com/tholehq/thole/internal/vault/keyfile"
)

const other thole.UserID = "00000000-0000-7000-8000-0000000000aa"

func newVault(t testing.TB) *vault.Vault {
	return vault.New(vault.Config{Store: storetest.SQLite(t).Vault(), Keys: keyfile.File{Path: filepath.Join(t.TempDir(), "keys", "vault.key")}})
}

func create(t testing.TB, v *vault.Vault, kind vault.OwnerKind, user thole.UserID, forProvider, value string) vault.Item {
	t.Helper()
	of := thole.DefaultOwner
	of.User = user
	owner, err := vault.OwnerOf(kind, of)
	if err != nil {
		t.Fatal(err)
	}
	i, err := v.Create(bg, thole.Actor{User: user, Via: "cookie"}, vault.NewItem{Owner: owner, Name: string(kind) + "-" + forProvider, Kind: vault.ProviderAuth, Provider: forProvider, Value: []byte(value)})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// A login that is about to end is renewed before a call, one that the service refuses
// once after it, by many calls at a time only once, and kept where it was. When that does
// not help, only a person can.
func TestLoginsAreRenewed(t *testing.T) {
	for _, c := range []struct {
		cli  string
		kept string // file or vault
	}{{"codex", "file"}, {"claude", "file"}, {"codex", "vault"}, {"claude", "vault"}} {
		t.Run(c.cli+" in a "+c.kept, func(t *testing.T) {
			m, service := newMachine(t), newLogins(t)
			m.cfg.Login.Client = &http.Client{Transport: service}
			var told []error
			m.cfg.Login.Renewed = func(_ string, err error) { told = append(told, err) }
			path, body := login(c.cli, now.Add(time.Minute))
			var v *vault.Vault
			if c.kept == "file" {
				m.put(path, body)
			} else {
				v = newVault(t)
				m.cfg.Vault = v
				create(t, v, vault.OfUser, thole.LocalUser, c.cli, body)
			}
			r := m.routes()
			call := func() gateway.Upstream {
				t.Helper()
				got, err := r.Route(bg, claim(c.cli, thole.LocalUser), c.cli)
				if err != nil {
					t.Fatal(err)
				}
				return got.Upstreams[0]
			}
			token := func(u gateway.Upstream, refused bool) string {
				h := http.Header{}
				if err := u.Sign(bg, h, refused); err != nil {
					return "error: " + err.Error()
				}
				return strings.TrimPrefix(h.Get("Authorization"), "Bearer ")
			}
			want := 0
			if c.cli == "claude" { // it says when it ends
				want = 1
			}
			u := call()
			if got := token(u, false); got != access(want) || service.asked != want {
				t.Fatalf("the first call has %s after %d renewals", got, service.asked)
			}
			var calls []gateway.Upstream
			for range 8 {
				u := call()
				token(u, false)
				calls = append(calls, u)
			}
			var wg sync.WaitGroup
			for _, u := range calls {
				wg.Go(func() {
					if got := token(u, true); got != access(want+1) {
						t.Errorf("after a refusal: %s", got)
					}
				})
			}
			wg.Wait()
			if service.asked != want+1 {
				t.Errorf("%d renewals", service.asked)
			}
			if c.kept == "file" && (!strings.Contains(m.read(path), access(want+1)) || strings.Contains(m.read(path), `"refresh-0"`)) {
				t.Errorf("the user's file is %s", m.read(path))
			}
			service.mu.Lock()
			service.valid = false
			service.mu.Unlock()
			u = call()
			token(u, false)
			h := http.Header{}
			err := u.Sign(bg, h, true)
			if !errors.Is(err, provider.ErrNeedsLogin) || thole.CodeOf(err) != thole.CodeForbidden || !strings.Contains(thole.HintOf(err), "log in") || len(h) != 0 {
				t.Errorf("refused for good: %v (%s), headers %v", err, thole.HintOf(err), h)
			}
			if c.kept == "file" {
				if len(told) == 0 || told[len(told)-1] == nil {
					t.Error("the doctor does not learn of it")
				}
				return
			}
			_, err = r.Route(bg, claim(c.cli, thole.LocalUser), c.cli)
			if !errors.Is(err, provider.ErrNeedsLogin) || thole.HintOf(err) == "" {
				t.Errorf("the next call: %v", err)
			}
			items, err := v.Candidates(bg, thole.DefaultOwner, vault.ProviderAuth, c.cli)
			if err != nil || items[0].State != vault.NeedsLogin {
				t.Errorf("the item is %+v, %v", items, err)
			}
		})
	}
}

func access(n int) string { return "access-" + string(rune('0'+n)) }

// A key that is refused is not sent again, and one of the vault is marked.
func TestAKeyThatIsRefused(t *testing.T) {
	m := newMachine(t)
	v := newVault(t)
	m.cfg.Vault = v
	create(t, v, vault.OfUser, thole.LocalUser, "anthropic", "sk-0")
	r := m.routes()
	u, h := signed(t, r, "claude", "claude")
	if h.Get("X-Api-Key") != "sk-0" || u.Item == "" {
		t.Errorf("%v, item %q", h, u.Item)
	}
	if err := u.Sign(bg, http.Header{}, true); !errors.Is(err, provider.ErrNeedsLogin) {
		t.Errorf("refused: %v", err)
	}
	if _, err := r.Ways(bg, gateway.Claim{Owner: thole.DefaultOwner, Provider: "claude"}); !errors.Is(err, provider.ErrNeedsLogin) || thole.CodeOf(err) != thole.CodeForbidden {
		t.Errorf("the next session: %v", err)
	}
}

// What one user has is used for that user's threads alone: the logins and the environment
// of this machine are its user's, and an item of the vault its owner's.
func TestOneUsersCredentialIsNotAnothers(t *testing.T) {
	m := newMachine(t)
	m.put(login("claude", now.Add(24*time.Hour)))
	m.env = map[string]string{"OPENAI_API_KEY": "sk-of-the-machine", "GROQ_API_KEY": "gsk-of-the-machine"}
	v := newVault(t)
	m.cfg.Vault = v
	r := m.routes()
	key := func(user thole.UserID, cli, route string) string {
		got, err := r.Route(bg, claim(cli, user), route)
		if err != nil {
			return string(thole.CodeOf(err))
		}
		h := http.Header{}
		if err := got.Upstreams[0].Sign(bg, h, false); err != nil {
			t.Fatal(err)
		}
		return h.Get("Authorization") + h.Get("X-Api-Key")
	}
	check := func(user thole.UserID, cli, route, want string) {
		t.Helper()
		if got := key(user, cli, route); got != want {
			t.Errorf("%s of %s gets %q, want %q", route, user, got, want)
		}
	}
	check(thole.LocalUser, "claude", "claude", "Bearer access-0")
	check(thole.LocalUser, "codex", "codex", "Bearer sk-of-the-machine")
	check(thole.LocalUser, "opencode", "oc-groq", "Bearer gsk-of-the-machine")
	for _, c := range [][2]string{{"claude", "claude"}, {"codex", "codex"}, {"opencode", "oc-groq"}} {
		if stolen := key(other, c[0], c[1]) != string(thole.CodeNotFound); stolen != unguarded.Build {
			t.Errorf("%s of a second user: %s", c[1], key(other, c[0], c[1]))
		}
	}
	if unguarded.Build {
		return
	}
	create(t, v, vault.OfUser, thole.LocalUser, "codex", "sk-first")
	check(thole.LocalUser, "codex", "codex", "Bearer sk-first")
	check(other, "codex", "codex", "not_found")
	create(t, v, vault.OfUser, other, "openai", "sk-second")
	check(other, "codex", "codex", "Bearer sk-second")
	check(thole.LocalUser, "codex", "codex", "Bearer sk-first")
	create(t, v, vault.OfPlatform, thole.LocalUser, "claude", "sk-all")
	check(other, "claude", "claude", "sk-all")
	if _, err := r.Ways(bg, gateway.Claim{Owner: thole.Owner{App: thole.DefaultApp, Project: thole.DefaultProject, User: other}, Provider: "opencode"}); thole.CodeOf(err) != "" {
		// the key of the second user for openai serves opencode too
		t.Errorf("opencode of a second user: %v", err)
	}
}
