package opencode_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/opencode"
	"github.com/tholehq/thole/internal/provider/providertest"
	"github.com/tholehq/thole/internal/testkit/lab"
)

func harness() providertest.Harness {
	return providertest.Harness{
		New: func(t testing.TB) provider.Provider { return opencode.New(opencode.Config{Binary: lab.Opencode(t)}) },
		At:  func(_ testing.TB, path string) provider.Provider { return opencode.New(opencode.Config{Binary: path}) },
		Configure: func(_ testing.TB, url string, cfg *provider.SessionConfig) {
			for _, kv := range modelsim.OpencodeEnv(url) {
				k, v, _ := strings.Cut(kv, "=")
				cfg.Env[k] = v
			}
			// Else an overflow is answered by shortening the context and going on.
			cfg.Env["OPENCODE_DISABLE_AUTOCOMPACT"] = "1"
			cfg.Model = "sim/" + modelsim.Model
		},
		MCP: func(t testing.TB, cfg *provider.SessionConfig, server, binary string, env map[string]string) string {
			const where = "OPENCODE_CONFIG_CONTENT"
			var config map[string]any
			if err := json.Unmarshal([]byte(cfg.Env[where]), &config); err != nil {
				t.Fatal(err)
			}
			config["mcp"] = map[string]any{server: map[string]any{"type": "local", "command": []string{binary}, "environment": env, "enabled": true}}
			raw, err := json.Marshal(config)
			if err != nil {
				t.Fatal(err)
			}
			cfg.Env[where] = string(raw)
			return server + "_size"
		},
		NoElicitation: true,
		AskTool:       "question",
		VersionText:   func(v string) string { return v },
		Overflow:      "http 400 type=context_length_exceeded prompt is too long: 250000 tokens > 200000 maximum",
		LongRetries:   true,
	}
}

// later are rows that start the CLI again, which costs it six seconds of a processor,
// for what codex and claude show of the suite too and other rows show in part: they run
// in make soak. What opencode permits is its own decision, so of the profiles without
// user namespaces one stands for all.
var later = []string{
	"ask asks before it writes, without user namespaces", "edit edits without asking, without user namespaces", "full asks nothing, without user namespaces",
	"native profiles pass through", "an unknown profile is refused", "approval deferred to another process", "four sessions at once",
	"workspace survives odd names", "an MCP server is called by the user", "cancelling the context ends the turn", "resume after a kill",
}

func TestConformance(t *testing.T) {
	h := harness()
	if os.Getenv("THOLE_SOAK") == "" {
		h.Only = func(row string) bool { return !slices.Contains(later, row) }
	}
	providertest.Run(t, h)
}

func TestConformanceConfined(t *testing.T) { providertest.Soak(t, harness()) }
