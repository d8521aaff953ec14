package codex

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/providertest"
	"github.com/tholehq/thole/internal/testkit/lab"
)

func TestMain(m *testing.M) { providertest.Main(m) }

func TestConformance(t *testing.T) {
	providertest.Run(t, harness())
}

func TestConformanceConfined(t *testing.T) { providertest.Soak(t, harness()) }

func harness() providertest.Harness {
	return providertest.Harness{
		SaysJSON: true,
		New:      func(t testing.TB) provider.Provider { return New(lab.Codex(t)) },
		Configure: func(t testing.TB, url string, cfg *provider.SessionConfig) {
			if err := modelsim.CodexConfig(cfg.Data, url); err != nil {
				t.Fatal(err)
			}
			cfg.Model = modelsim.Model
		},
		At: func(_ testing.TB, binary string) provider.Provider { return New(binary) },
		Login: func(secret string) (string, []byte) {
			return "auth.json", []byte(`{"auth_mode":"apikey","OPENAI_API_KEY":"` + secret + `"}`)
		},
		MCP:     addMCP,
		AskTool: "request_user_input", OneChoice: true,
		VersionText: func(v string) string { return "codex-cli " + v },
		Overflow:    "fail context_length_exceeded the input is longer than the context window",
	}
}

// The fallback passes the suite too, with what it lacks declared.
func TestConformanceOfExec(t *testing.T) {
	h := harness()
	h.New = func(t testing.TB) provider.Provider { return NewExec(lab.Codex(t)) }
	h.At = func(_ testing.TB, binary string) provider.Provider { return NewExec(binary) }
	const whole = "codex exec tells messages, diffs and output whole or not at all"
	const late = "codex exec starts with the turn, not with the session"
	h.Skip = map[string]string{
		"text streams": whole, "stop in the middle of text": whole, "file edit with diff": whole,
		"CLI that dies at once": late, "CLI that never gets ready": late,
	}
	if os.Getenv("THOLE_SOAK") == "" { // the whole suite runs in make soak
		h.Only = func(row string) bool {
			return slices.Contains([]string{"text and reasoning", "command with output", "approval deny", "usage equals the scripted numbers",
				"stop in the middle of a command", "steer", "resume in a new process and in a copied home", "fork", "API 401", "CLI killed in the middle of a turn",
				"plan writes nothing", "plan writes nothing, without user namespaces", "credentials stay outside what is synced"}, row)
		}
	}
	providertest.Run(t, h)
}

// addMCP adds a server to codex's configuration.
func addMCP(t testing.TB, cfg *provider.SessionConfig, server, binary string, env map[string]string) string {
	path := filepath.Join(cfg.Data, "config.toml")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw) + fmt.Sprintf("\n[mcp_servers.%s]\ncommand = %q\n[mcp_servers.%s.env]\n", server, binary, server)
	for k, v := range env {
		text += fmt.Sprintf("%s = %q\n", k, v)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "mcp__" + server + "__size"
}
