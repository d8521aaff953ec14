package codex

import (
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

func harness() providertest.Harness {
	return providertest.Harness{
		New: func(t testing.TB) provider.Provider { return New(lab.Codex(t)) },
		Configure: func(t testing.TB, url string, cfg *provider.SessionConfig) {
			if err := modelsim.CodexConfig(cfg.Data, url); err != nil {
				t.Fatal(err)
			}
			cfg.Model = modelsim.Model
		},
		At:          func(_ testing.TB, binary string) provider.Provider { return New(binary) },
		VersionText: func(v string) string { return "codex-cli " + v },
		Overflow:    "fail context_length_exceeded the input is longer than the context window",
	}
}
