package upstream_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/gateway"
	"github.com/tholehq/thole/internal/gateway/upstream"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/vault"
	"github.com/tholehq/thole/internal/vault/keyfile"
)

// The upstreams of the configuration come before everything else, in their order, for
// every user and on the routes of their dialect or those they name.
func TestConfiguredUpstreams(t *testing.T) {
	m := newMachine(t)
	m.put(login("claude", now.Add(1e15)))
	m.put("key", "sk-file\n")
	m.env = map[string]string{"ACME_KEY": "sk-env", "OPENAI_API_KEY": "sk-own"}
	v := newVault(t)
	m.cfg.Vault = v
	create(t, v, vault.OfPlatform, thole.LocalUser, "acme", "sk-vault")
	m.cfg.Entries = []upstream.Entry{
		{Name: "acme", Dialect: "anthropic", BaseURL: "https://llm.example.com/anthropic/v1", Key: "env:ACME_KEY", Auth: "bearer", Models: []string{"claude-*"}, Rename: map[string]string{"claude-opus-5-5": "opus"}, Parallel: 3, FirstByte: 7},
		{Name: "second", Dialect: "anthropic", BaseURL: "https://second.example.com/v1", Key: "file:" + filepath.Join(m.home, "key")},
		{Name: "local", Dialect: "openai-chat", BaseURL: "http://127.0.0.1:8000/v1", Models: []string{"small", "big-*"}},
		{Name: "azure", Dialect: "openai", BaseURL: "https://azure.example.com/openai/v1?api-version=1", Key: "vault:platform-acme", Routes: []string{"codex", "oc-azure"}},
	}
	r := m.routes()
	for _, c := range []struct {
		cli, route string
		dialect    gateway.Dialect
		names      []string
		header     string
		values     []string
	}{
		{"claude", "claude", gateway.Anthropic, []string{"acme", "second"}, "", []string{"Bearer sk-env", "sk-file"}},
		{"opencode", "oc-anthropic", gateway.Anthropic, []string{"acme", "second"}, "", []string{"Bearer sk-env", "sk-file"}},
		{"opencode", "oc-local", gateway.Chat, []string{"local"}, "", []string{""}},
		{"codex", "codex", gateway.Responses, []string{"azure"}, "", []string{"Bearer sk-vault"}},
		{"opencode", "oc-azure", gateway.Chat, []string{"azure"}, "", []string{"Bearer sk-vault"}},
	} {
		got, err := r.Route(bg, claim(c.cli, other), c.route) // of a user who has nothing else
		if err != nil {
			t.Fatalf("%s: %v", c.route, err)
		}
		var names, values []string
		for _, u := range got.Upstreams {
			h := http.Header{}
			if err := u.Sign(bg, h, false); err != nil {
				t.Fatal(err)
			}
			names, values = append(names, u.Name), append(values, h.Get("Authorization")+h.Get("X-Api-Key"))
		}
		if got.Dialect != c.dialect || !slices.Equal(names, c.names) || !slices.Equal(values, c.values) {
			t.Errorf("%s: %s by %v with %v", c.route, got.Dialect, names, values)
		}
	}
	got, err := r.Route(bg, claim("claude", thole.LocalUser), "claude")
	if err != nil || len(got.Upstreams) != 2 || got.Upstreams[0].Parallel != 3 || got.Upstreams[0].FirstByte != 7 || got.Upstreams[0].Rename["claude-opus-5-5"] != "opus" || got.Upstreams[0].Models[0] != "claude-*" {
		t.Errorf("for the user of this machine too: %+v, %v", got, err)
	}
	w, err := r.Ways(bg, claim("opencode", other))
	if err != nil {
		t.Fatal(err)
	}
	g, err := provider.Through("opencode", w, "tgw")
	if text := g.Env["OPENCODE_CONFIG_CONTENT"]; err != nil || !strings.Contains(text, `"small":{"tool_call":true}`) || !strings.Contains(text, "@ai-sdk/openai-compatible") || strings.Contains(text, "example.com") || strings.Contains(text, "big-*") {
		t.Errorf("opencode learns %s, %v", text, err)
	}
}

// A key that only a person can bring is refused as no failure of the service, with what to
// do, and a locked vault is no lost login.
func TestKeysThatAreNotThere(t *testing.T) {
	m := newMachine(t)
	keys := filepath.Join(t.TempDir(), "vault.key")
	v := vault.New(vault.Config{Store: storetest.SQLite(t).Vault(), Keys: keyfile.File{Path: keys}})
	m.cfg.Vault = v
	create(t, v, vault.OfPlatform, thole.LocalUser, "acme", "sk-vault")
	if err := os.Remove(keys); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]struct {
		code thole.Code
		hint string
	}{
		"env:ACME_KEY":                          {thole.CodeForbidden, "ACME_KEY"},
		"file:" + filepath.Join(m.home, "none"): {thole.CodeForbidden, "put the key there"},
		"vault:none":                            {thole.CodeForbidden, "thole secret set none --provider"},
		"vault:platform-acme":                   {thole.CodeHeld, "thole doctor"},
	} {
		m.cfg.Entries = []upstream.Entry{{Name: "acme", Dialect: "anthropic", BaseURL: "https://llm.example.com/v1", Key: key}}
		got, err := m.routes().Route(bg, claim("claude", other), "claude")
		if err != nil {
			t.Fatal(err)
		}
		said, err := m.routes().Describe(bg, claim("claude", other).Owner, "claude")
		if err != nil || !said[0].Configured || strings.Contains(said[0].Origin, "is not there") == strings.HasPrefix(key, "vault:") {
			t.Errorf("%s is described as %+v, %v", key, said, err)
		}
		err = got.Upstreams[0].Sign(bg, http.Header{}, false)
		if thole.CodeOf(err) != want.code || !strings.Contains(thole.HintOf(err), want.hint) || want.code == thole.CodeHeld && strings.Contains(err.Error(), keys) {
			t.Errorf("%s: %v, try: %s", key, err, thole.HintOf(err))
		}
	}
}

// A bad entry is refused with its name, and a key that is written into the configuration
// is not repeated.
func TestBadUpstreams(t *testing.T) {
	good := upstream.Entry{Name: "a", Dialect: "openai", BaseURL: "https://a.example.com/v1"}
	for name, change := range map[string]func(*upstream.Entry){
		"name":      func(e *upstream.Entry) { e.Name = "A b" },
		"dialect":   func(e *upstream.Entry) { e.Dialect = "gemini" },
		"url":       func(e *upstream.Entry) { e.BaseURL = "a.example.com" },
		"user info": func(e *upstream.Entry) { e.BaseURL = "https://u:sk-typed@a.example.com" },
		"key":       func(e *upstream.Entry) { e.Key = "sk-typed" },
		"file":      func(e *upstream.Entry) { e.Key = "file:sk-typed" },
		"auth":      func(e *upstream.Entry) { e.Auth = "basic" },
		"route":     func(e *upstream.Entry) { e.Routes = []string{"gemini"} },
		"parallel":  func(e *upstream.Entry) { e.Parallel = -1 },
	} {
		e := good
		change(&e)
		_, err := upstream.New(upstream.Config{Entries: []upstream.Entry{e}})
		if thole.CodeOf(err) != thole.CodeInvalid || thole.HintOf(err) == "" || strings.Contains(err.Error(), "sk-typed") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := upstream.New(upstream.Config{Entries: []upstream.Entry{good, good}}); thole.CodeOf(err) != thole.CodeInvalid {
		t.Errorf("twice: %v", err)
	}
}
