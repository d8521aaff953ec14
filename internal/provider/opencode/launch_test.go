package opencode

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/provider"
)

// The environment is the session's own: nothing of the host, state under Data,
// and rules that the session cannot be given other values for.
func TestEnvironment(t *testing.T) {
	t.Setenv("HOST_SECRET", "x")
	cfg := provider.SessionConfig{Data: "/d", Auth: "/a", Env: map[string]string{"HOME": "/h", "OPENCODE_PERMISSION": `{"*":"allow"}`, "XDG_DATA_HOME": "/elsewhere"}}
	env := environment(cfg, "pw")
	if _, ok := env["HOST_SECRET"]; ok {
		t.Error("the host's environment was inherited")
	}
	if env["HOME"] != "/h" || env["XDG_DATA_HOME"] != "/d/opencode/data" || env["OPENCODE_PERMISSION"] != rules || env["OPENCODE_SERVER_PASSWORD"] != "pw" {
		t.Errorf("environment %v", env)
	}
	if strings.HasPrefix(env["XDG_CONFIG_HOME"], "/d") || strings.HasPrefix(env["XDG_CACHE_HOME"], "/d") {
		t.Error("packages and caches would be synced")
	}
}

// The user's rules stand after the profile's, and a name that both have keeps its place: the
// last rule that matches counts.
func TestPermission(t *testing.T) {
	for user, want := range map[string]string{
		"": rules, `"ask"`: rules, `{}`: rules,
		`{"bash":{"git push":"deny"},"read":"ask"}`: strings.TrimSuffix(rules, "}") + `,"bash":{"git push":"deny"},"read":"ask"}`,
		`"deny"`: strings.Replace(rules, `"*":"ask"`, `"*":"deny"`, 1),
	} {
		if got := permission(user); got != want || !json.Valid([]byte(got)) {
			t.Errorf("%s: %s, want %s", user, got, want)
		}
	}
}
