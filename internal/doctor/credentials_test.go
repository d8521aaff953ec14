package doctor

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/gateway/upstream"
	"github.com/tholehq/thole/internal/provider"
)

// Each agent's credential is found where turns find it and said without its value; one
// that is missing says what to do, and one of the vault counts.
func TestCredentials(t *testing.T) {
	home, env := t.TempDir(), map[string]string{}
	l := provider.Login{Home: home, Getenv: func(name string) string { return env[name] }}
	if err := os.MkdirAll(filepath.Join(home, ".claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".claude/.credentials.json"), []byte(`{"claudeAiOauth":{"accessToken":"canary","refreshToken":"canary","expiresAt":1}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	finding := func(kept Kept, part string) Finding {
		t.Helper()
		all := CheckCredentials(t.Context(), &cfg, l, kept)
		if text, _ := json.Marshal(all); strings.Contains(string(text), "canary") {
			t.Errorf("a value is shown: %s", text)
		}
		for _, f := range all {
			if f.Part == "credential "+part {
				return f
			}
		}
		t.Fatalf("nothing is said of %s", part)
		return Finding{}
	}
	if f := finding(nil, "claude"); !f.OK || !strings.Contains(f.Found, "api.anthropic.com: your login of claude") {
		t.Errorf("claude: %+v", f)
	}
	if f := finding(nil, "codex"); f.OK || !strings.Contains(f.Fix, "log in with codex") || !strings.Contains(f.Fix, "thole secret set") {
		t.Errorf("codex without a login: %+v", f)
	}
	if f := finding(Kept{"openai": "needs_login"}, "codex"); !f.OK || !strings.Contains(f.Found, "needs_login") {
		t.Errorf("codex with an item of the vault: %+v", f)
	}
	env["GEMINI_API_KEY"] = "canary"
	var unserved string
	for _, f := range CheckCredentials(t.Context(), &cfg, l, nil) {
		if f.Part == "credential opencode" && !f.OK {
			unserved = f.Problem + f.Fix
		}
	}
	if !strings.Contains(unserved, "google") || !strings.Contains(unserved, "oc-google") {
		t.Errorf("a key that nothing uses: %q", unserved)
	}
	env["OPENAI_API_KEY"] = "canary"
	if f := finding(nil, "codex"); !f.OK || !strings.Contains(f.Found, "variable OPENAI_API_KEY") {
		t.Errorf("codex with a variable: %+v", f)
	}
	cfg.Gateway.Upstreams = config.Upstreams{{Name: "acme", Dialect: "anthropic", BaseURL: "https://llm.example.com/v1", Key: "env:ACME"}}
	if f := finding(nil, "claude"); !strings.Contains(f.Found, "llm.example.com: gateway.upstreams acme, env:ACME") {
		t.Errorf("claude with an upstream: %+v", f)
	}
	l.HandIn = []string{"claude"}
	if f := finding(nil, "claude"); !strings.Contains(f.Found, "hand_in_logins") {
		t.Errorf("claude with its login handed in: %+v", f)
	}
}

// What a service said of a credential is a finding; one that was not reached is no fault.
func TestTried(t *testing.T) {
	source := func(taken upstream.Taken) daemon.Check {
		return daemon.Check{Sources: []upstream.Checked{{Source: upstream.Source{Host: "api.example.com", Origin: "variable X"}, Taken: taken, Note: "why"}}}
	}
	all := Tried(daemon.Checks{"codex": source(upstream.TakenYes), "claude": source(upstream.TakenNo), "opencode": source(upstream.TakenUnknown)})
	if len(all) != 3 || !all[0].OK || all[1].OK || all[1].Fix == "" || !all[2].OK || !all[2].Unknown || all[0].Unknown || !strings.Contains(all[2].Found, "not known") {
		t.Errorf("%+v", all)
	}
}
