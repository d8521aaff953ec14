package system

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/gateway/upstream"
	"github.com/tholehq/thole/internal/provider"
)

// What pays for an agent is found where its turns find it: nothing, a variable, a login.
func TestAccountOfAnAgent(t *testing.T) {
	who := thole.Owner{App: thole.DefaultApp, Project: thole.DefaultProject, User: thole.LocalUser}
	for _, c := range []struct{ name, cli, env, file, login, want string }{
		{name: "nothing", cli: "codex"},
		{name: "a variable", cli: "codex", env: "OPENAI_API_KEY", want: "apiKey"},
		{name: "a variable of another", cli: "codex", env: "ANTHROPIC_API_KEY"},
		{name: "a variable of claude", cli: "claude", env: "ANTHROPIC_API_KEY", want: "apiKey"},
		{name: "a login", cli: "codex", file: ".codex/auth.json", want: "chatgpt",
			login: `{"auth_mode":"chatgpt","tokens":{"id_token":"e30.e30.x","access_token":"e30.eyJleHAiOjQxMDI0NDQ4MDB9.x","refresh_token":"r","account_id":"a"},"last_refresh":"2099-01-01T00:00:00Z"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			home := t.TempDir()
			if c.file != "" {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(home, c.file)), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(home, c.file), []byte(c.login), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			getenv := func(name string) string {
				if name == c.env {
					return "sk-of-this-test"
				}
				return ""
			}
			routes, err := upstream.New(upstream.Config{Shells: &upstream.Shells{}, Login: provider.Login{Home: home, Getenv: getenv}})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := (paid{routes: routes}).account(context.Background(), who, c.cli); err != nil || got != c.want {
				t.Errorf("paid by %q (%v), want %q", got, err, c.want)
			}
		})
	}
}
