package doctor

import (
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/provider"
)

// Of each CLI the doctor says whether it goes through the gateway, or what is
// missing for that. A login that is handed in is another finding.
func TestCheckGateway(t *testing.T) {
	cfg := config.Default()
	l := provider.Login{Home: t.TempDir(), HandIn: []string{"opencode"}, Getenv: func(name string) string {
		return map[string]string{"ANTHROPIC_API_KEY": "sk-ant-key"}[name]
	}}
	got := map[string]Finding{}
	for _, f := range checkGateway(t.Context(), &cfg, l) {
		got[f.Part] = f
		if strings.Contains(f.Found+f.Problem+f.Fix, "sk-ant-key") {
			t.Errorf("a finding shows the key: %+v", f)
		}
	}
	if len(got) != 2 || !got["gateway claude"].OK || got["gateway codex"].OK || !strings.Contains(got["gateway codex"].Fix, "OPENAI_API_KEY") {
		t.Errorf("found %+v", got)
	}
	cfg.Gateway.Upstreams = config.Upstreams{{Name: "o", Dialect: "openai", BaseURL: "https://llm.example.com/v1", Key: "env:COMPANY"}}
	for _, f := range checkGateway(t.Context(), &cfg, l) {
		if !f.OK {
			t.Errorf("with an upstream for it: %+v", f)
		}
	}
}
