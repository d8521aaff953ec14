package gateway_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/providertest"
)

// A conversation goes on when its model is reached another way: codex
// remembers the model provider of a thread, and each way has one of its own.
func TestCodexThreadsChangeTheirWay(t *testing.T) {
	r := newRig(t, "codex", nil)
	r.login()
	b := providertest.NewBench(t, providertest.Harness{New: makers["codex"]})
	write := func(body string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(b.Config.Data, "config.toml"), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	demo := func(cfg *provider.SessionConfig) {
		if err := modelsim.CodexConfig(cfg.Data, b.Sim.URL()); err != nil {
			t.Fatal(err)
		}
		cfg.Model = modelsim.Model
	}
	direct := func(cfg *provider.SessionConfig) { // as threads of earlier versions began
		write("openai_base_url = \"" + b.Sim.URL() + "/v1\"\n")
		if err := (provider.Grant{Files: map[string][]byte{"auth.json": []byte(`{"auth_mode":"apikey","OPENAI_API_KEY":"sk-handed"}`)}}).Place(cfg.Auth); err != nil {
			t.Fatal(err)
		}
		cfg.Model = "gpt-5.5"
	}
	through := func(cfg *provider.SessionConfig) {
		write("")
		cfg.Env = map[string]string{"HOME": cfg.Env["HOME"], "PATH": cfg.Env["PATH"]}
		r.configure(t, b.Sim.URL(), cfg)
		cfg.Model = "gpt-5.5"
	}
	ways := map[string]func(*provider.SessionConfig){"demo": demo, "direct": direct, "through": through}
	for _, c := range [][2]string{{"demo", "through"}, {"direct", "through"}, {"through", "direct"}} {
		t.Run(c[0]+" then "+c[1], func(t *testing.T) {
			s := b.Open(ways[c[0]])
			b.Play(s, "sim: say the word is "+c[0]+"-first")
			native := s.NativeID()
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s, err := b.TryOpen(ways[c[1]], providertest.Resume(native))
			if err != nil {
				t.Fatal(err)
			}
			if c[1] == "direct" { // its service is not to be had here
				_ = s.Close()
				return
			}
			got := b.Play(s, "sim: say again")
			_ = s.Close()
			if s.NativeID() != native || outcome(got) != thole.OutcomeCompleted {
				t.Fatalf("the conversation did not go on: %+v", got)
			}
			turns := b.Sim.Turns()
			if last := turns[len(turns)-1]; !strings.Contains(string(last.Body), c[0]+"-first") {
				t.Error("the model was not shown what was said before")
			}
		})
	}
}

// outcome is how a turn ended.
func outcome(r providertest.Record) thole.Outcome {
	for _, e := range r {
		if e.Kind == event.TurnEnded {
			return e.Outcome
		}
	}
	return ""
}

// Compaction and the default model go through the gateway too, and tools of the model's
// side are not offered where they are not granted.
func TestCodexAsksTheGatewayForEverything(t *testing.T) {
	r := newRig(t, "codex", nil)
	r.login()
	r.tools = false
	b := providertest.NewBench(t, providertest.Harness{New: makers["codex"], Configure: r.configure})
	s := b.Open()
	b.Play(s, "sim: say hello")
	compact := provider.Turn{ID: "c", Input: thole.Compact()}
	if got := b.StartTurn(s, compact).Wait(); outcome(got) != thole.OutcomeCompleted {
		t.Errorf("compaction: %+v", got)
	}
	b.Play(s, "sim: say after")
	calls := r.calls()
	if len(calls) != 3 {
		t.Errorf("%d calls, want one for each turn", len(calls))
	}
	for _, c := range calls {
		var body struct{ Model string }
		if err := json.Unmarshal([]byte(c.body), &body); err != nil || body.Model != "gpt-6.1-sol" || strings.Contains(c.body, `"web_search"`) {
			t.Errorf("model %q, err %v, tools of the model's side offered: %v", body.Model, err, strings.Contains(c.body, `"web_search"`))
		}
		if c.header.Get("X-Openai-Internal-Codex-Responses-Lite") != "true" {
			t.Error("the service does not learn of the form of the request")
		}
	}
}
