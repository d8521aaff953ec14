package system

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/tholehq/thole/internal/provider"
)

// logins hands each turn the user's own login of its CLI: the files that CLI
// keeps it in, and the variables it reads keys from. They are read anew for each
// turn, so a login or logout in a terminal counts from the next turn on.
type logins struct{}

// login says where one CLI keeps what.
type login struct {
	secrets map[string]string // name in the auth directory → path below HOME
	config  map[string]string // path in the data directory → path below HOME
	env     []string          // names, or prefixes that end in _
}

func loginOf(name string) login {
	switch name {
	case "codex":
		return login{
			secrets: map[string]string{"auth.json": ".codex/auth.json"},
			config:  map[string]string{"config.toml": ".codex/config.toml"},
			env:     []string{"OPENAI_", "CODEX_API_KEY"},
		}
	case "claude":
		return login{
			secrets: map[string]string{".credentials.json": ".claude/.credentials.json"},
			env:     []string{"ANTHROPIC_", "CLAUDE_CODE_OAUTH_TOKEN"},
		}
	case "opencode":
		return login{
			secrets: map[string]string{"auth.json": ".local/share/opencode/auth.json"},
			env:     []string{"OPENCODE_CONFIG_CONTENT", "ANTHROPIC_", "OPENAI_", "GEMINI_", "GROQ_", "OPENROUTER_"},
		}
	}
	return login{}
}

// For implements provider.Credentials. What the user does not have is left out:
// the CLI then says itself that it needs a login.
func (logins) For(_ context.Context, name string) (provider.Grant, error) {
	g := provider.Grant{Env: map[string]string{}, Files: map[string][]byte{}, Config: map[string][]byte{}}
	l := loginOf(name)
	home, err := os.UserHomeDir()
	if err != nil {
		return g, nil //nolint:nilerr // no home, no login
	}
	read := func(into map[string][]byte, from map[string]string) {
		for name, path := range from {
			if body, err := os.ReadFile(filepath.Join(home, path)); err == nil {
				into[name] = body
			}
		}
	}
	read(g.Files, l.secrets)
	read(g.Config, l.config)
	for _, kv := range os.Environ() {
		key, value, _ := strings.Cut(kv, "=")
		for _, want := range l.env {
			if key == want || strings.HasSuffix(want, "_") && strings.HasPrefix(key, want) {
				g.Env[key] = value
			}
		}
	}
	return g, nil
}
