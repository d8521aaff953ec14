package opencode_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/opencode"
	"github.com/tholehq/thole/internal/provider/providertest"
	"github.com/tholehq/thole/internal/testkit/lab"
)

func harness() providertest.Harness {
	var once sync.Once
	var shared provider.Provider // it asks the CLI for its version once
	return providertest.Harness{
		New: func(t testing.TB) provider.Provider {
			binary := lab.Opencode(t)
			once.Do(func() { shared = opencode.New(opencode.Config{Binary: binary}) })
			return shared
		},
		At: func(_ testing.TB, path string) provider.Provider { return opencode.New(opencode.Config{Binary: path}) },
		Configure: func(t testing.TB, url string, cfg *provider.SessionConfig) {
			for _, kv := range modelsim.OpencodeEnv(url) {
				k, v, _ := strings.Cut(kv, "=")
				cfg.Env[k] = v
			}
			// It would install packages into every new home; a file in their place stops it.
			home := t.TempDir()
			if err := os.Mkdir(filepath.Join(home, "opencode"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(home, "opencode", "node_modules"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			cfg.Env["XDG_CONFIG_HOME"] = home
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
