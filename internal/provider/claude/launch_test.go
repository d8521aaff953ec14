package claude

import (
	"slices"
	"testing"

	"github.com/tholehq/thole/internal/provider"
)

func TestEnvironment(t *testing.T) {
	t.Setenv("HOST_SECRET", "x")
	cfg := provider.SessionConfig{Data: "/d", Auth: "/a", Env: map[string]string{"HOME": "/h", "CLAUDE_CONFIG_DIR": "/elsewhere", "ANTHROPIC_API_KEY": "k-123456"}}
	env := environment(cfg)
	if _, ok := env["HOST_SECRET"]; ok {
		t.Error("the host's environment was inherited")
	}
	if env["HOME"] != "/h" || env["CLAUDE_CONFIG_DIR"] != "/d/claude" || env["CLAUDE_SECURESTORAGE_CONFIG_DIR"] != "/a" {
		t.Errorf("environment %v", env)
	}
	if !slices.Contains(provider.Secrets(env), "k-123456") {
		t.Error("the key would show in a diagnosis")
	}
}

func TestArguments(t *testing.T) {
	for _, c := range []struct {
		o    opening
		want []string
	}{
		{opening{fresh: "n"}, []string{"--session-id", "n"}},
		{opening{resume: "r"}, []string{"--resume=r"}},
		{opening{resume: "r", fork: "f"}, []string{"--resume=r", "--fork-session", "--session-id", "f"}},
	} {
		args := arguments(provider.SessionConfig{}, c.o, stance{mode: modeDefault}, "", "")
		if got := args[len(args)-len(c.want):]; !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v", c.o, args)
		}
	}
}
