package opencode_test

import (
	"encoding/json"
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

func TestConformance(t *testing.T) { providertest.Run(t, harness()) }

func TestConformanceConfined(t *testing.T) { providertest.Soak(t, harness()) }
