package opencode_test

import (
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
			// It would install packages into every new home.
			cfg.Env["npm_config_registry"], cfg.Env["npm_config_fetch_retries"] = "http://127.0.0.1:9/", "0"
			// Else an overflow is answered by shortening the context and going on.
			cfg.Env["OPENCODE_DISABLE_AUTOCOMPACT"] = "1"
			cfg.Model = "sim/" + modelsim.Model
		},
		VersionText: func(v string) string { return v },
		Overflow:    "http 400 type=context_length_exceeded prompt is too long: 250000 tokens > 200000 maximum",
		LongRetries: true,
	}
}

func TestConformance(t *testing.T) { providertest.Run(t, harness()) }
