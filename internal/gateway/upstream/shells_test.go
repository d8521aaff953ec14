package upstream_test

import (
	"fmt"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/gateway"
	"github.com/tholehq/thole/internal/gateway/upstream"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/setup"
	"github.com/tholehq/thole/internal/vault"
)

// Keys of the shell from which a thread was written to count for that thread alone, after
// the configuration and before everything else.
func TestKeysOfAShell(t *testing.T) {
	m := newMachine(t)
	m.put(login("claude", now.Add(1e13)))
	m.env["ANTHROPIC_API_KEY"] = "sk-machine"
	v := newVault(t)
	m.cfg.Vault, m.cfg.Shells = v, &upstream.Shells{}
	create(t, v, vault.OfUser, thole.LocalUser, "claude", "sk-vault")
	r := m.routes()
	key := func(thread thole.ThreadID, cli, route, header string, user thole.UserID) string {
		t.Helper()
		c := claim(cli, user)
		c.Thread = thread
		got, err := r.Route(t.Context(), c, route)
		if err != nil {
			return string(thole.CodeOf(err))
		}
		h := map[string][]string{}
		if err := got.Upstreams[0].Sign(t.Context(), h, false); err != nil {
			t.Fatal(err)
		}
		return strings.Join(h[header], "") + " " + got.Upstreams[0].Base.Host
	}
	want := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	want(key("a", "claude", "claude", "X-Api-Key", thole.LocalUser), "sk-vault api.anthropic.com")
	shell := map[string]string{"ANTHROPIC_API_KEY": "sk-shell", "ANTHROPIC_BASE_URL": "https://llm.example.com", "CLAUDE_CONFIG_DIR": "/elsewhere"}
	if err := m.cfg.Shells.Keep("a", shell); err != nil {
		t.Fatal(err)
	}
	shell["ANTHROPIC_API_KEY"] = "changed" // the caller's map
	want(key("a", "claude", "claude", "X-Api-Key", thole.LocalUser), "sk-shell llm.example.com")
	want(key("b", "claude", "claude", "X-Api-Key", thole.LocalUser), "sk-vault api.anthropic.com")
	if got := key("a", "claude", "claude", "X-Api-Key", "another"); strings.Contains(got, "sk-shell") {
		t.Errorf("another user's call went with %s", got)
	}
	who := gateway.Claim{Thread: "a", Owner: thole.DefaultOwner, Provider: "claude"}
	if pays, err := r.SourcesOf(bg, who); err != nil || len(pays) != 1 || pays[0].Origin != "variable ANTHROPIC_API_KEY of your shell" || pays[0].Host != "llm.example.com" {
		t.Errorf("paid by %+v, %v", pays, err)
	}
	if err := m.cfg.Shells.Keep("a", nil); err != nil {
		t.Fatal(err)
	}
	want(key("a", "claude", "claude", "X-Api-Key", thole.LocalUser), "sk-shell llm.example.com")

	// A model provider of codex's settings finds its key there; a key that lies in the shell
	// for other programs is not charged in place of a login.
	m.put(".codex/config.toml", "model_provider = \"x\"\n[model_providers.x]\nbase_url = \"https://x.example.com/v1\"\nenv_key = \"X_KEY\"\n")
	if err := m.cfg.Shells.Keep("c", map[string]string{"X_KEY": "sk-x"}); err != nil {
		t.Fatal(err)
	}
	want(key("c", "codex", "codex", "Authorization", thole.LocalUser), "Bearer sk-x x.example.com")
	m.put(".codex/config.toml", "")
	m.put(login("codex", now))
	if err := m.cfg.Shells.Keep("d", map[string]string{"OPENAI_API_KEY": "sk-other"}); err != nil {
		t.Fatal(err)
	}
	if got := key("d", "codex", "codex", "Authorization", thole.LocalUser); !strings.HasSuffix(got, "chatgpt.com") {
		t.Errorf("codex's call went with %s", got)
	}

	for name, bad := range map[string]map[string]string{"a name": {"A B": "x"}, "a value": {"A": strings.Repeat("x", setup.MaxKey+1)}, "many": many(33)} {
		if err := m.cfg.Shells.Keep("e", bad); thole.CodeOf(err) != thole.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func many(n int) map[string]string {
	out := map[string]string{}
	for i := range n {
		out[fmt.Sprintf("A%d", i)] = "x"
	}
	return out
}

// A shell hands over what its CLI would take, and nothing that leads to files.
func TestVariablesOfAShell(t *testing.T) {
	env := map[string]string{"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o", "CODEX_API_KEY": "c", "CLAUDE_CONFIG_DIR": t.TempDir(), "XDG_CONFIG_HOME": t.TempDir(), "OPENCODE_CONFIG_CONTENT": "{}", "AWS_SECRET_ACCESS_KEY": "s", "GROQ_API_KEY": "g"}
	own := provider.Login{Home: t.TempDir(), Getenv: func(k string) string { return env[k] }}
	for cli, want := range map[string]string{"codex": "map[CODEX_API_KEY:c]", "claude": "map[ANTHROPIC_API_KEY:a]", "opencode": "map[ANTHROPIC_API_KEY:a GROQ_API_KEY:g OPENAI_API_KEY:o]", "test": "map[]"} {
		if got := fmt.Sprint(setup.Variables(t.Context(), own, cli)); got != want {
			t.Errorf("%s: %s, want %s", cli, got, want)
		}
	}
}
