package httpapi_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/provider/ownconfig"
)

// What sessions get of a person's own configuration is shown to that person, by name and
// without any value, and to nobody else.
func TestOwnConfig(t *testing.T) {
	home := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		at := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(".codex/AGENTS.md", "be brief")
	write(".codex/config.toml", "[mcp_servers.docs]\nurl = \"https://docs.example.org/mcp\"\n[mcp_servers.local]\ncommand = \"/bin/cat\"\nenabled = false\nenv = { API_KEY = \"sk-hidden-value\" }\n")
	write(".claude/CLAUDE.md", "be kind")
	g := newRig(t, func(c *httpapi.Config) {
		c.OwnConfig = func(cli string) ownconfig.Config {
			return ownconfig.Read(ownconfig.User{Home: home, Getenv: func(string) string { return "" }}, cli)
		}
	})
	read := func(who *caller, cli string, status int) (out struct {
		Off     bool
		Keys    []struct{ From, Key, Fate, Why string }
		Files   []struct{ Path string }
		Servers []struct {
			Name, Origin string
			Off          bool
		}
	}) {
		t.Helper()
		var body json.RawMessage
		who.call(status, "GET", "/providers/"+cli+"/config", nil, &body)
		if strings.Contains(string(body), "sk-hidden-value") {
			t.Errorf("a value came out: %s", body)
		}
		if err := json.Unmarshal(body, &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	codex := read(g.me, "codex", http.StatusOK)
	if len(codex.Servers) != 2 || codex.Servers[0].Name != "docs" || codex.Servers[0].Origin != "https://docs.example.org" || codex.Servers[0].Off || !codex.Servers[1].Off {
		t.Errorf("servers of codex: %+v", codex.Servers)
	}
	has := func(from string) bool {
		for _, k := range codex.Keys {
			if strings.HasSuffix(k.From, from) && k.Fate == "passed" {
				return true
			}
		}
		return false
	}
	if !has("AGENTS.md") || len(codex.Files) == 0 {
		t.Errorf("codex: %+v", codex)
	}
	if claude := read(g.me, "claude", http.StatusOK); len(claude.Keys) == 0 || len(claude.Servers) != 0 {
		t.Errorf("claude: %+v", claude)
	}
	if opencode := read(g.me, "opencode", http.StatusOK); opencode.Off {
		t.Errorf("opencode: %+v", opencode)
	}
	read(g.you, "codex", http.StatusNotFound)
	read(g.me, "nobody", http.StatusNotFound)
}
