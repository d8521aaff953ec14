package claude_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/claude"
	"github.com/tholehq/thole/internal/provider/providertest"
	"github.com/tholehq/thole/internal/testkit/lab"
)

func harness(binary func(testing.TB) string) providertest.Harness {
	return providertest.Harness{
		New: func(t testing.TB) provider.Provider { return claude.New(claude.Config{Binary: binary(t)}) },
		At:  func(_ testing.TB, path string) provider.Provider { return claude.New(claude.Config{Binary: path}) },
		Configure: func(_ testing.TB, url string, cfg *provider.SessionConfig) {
			for _, kv := range modelsim.ClaudeEnv(url) {
				k, v, _ := strings.Cut(kv, "=")
				cfg.Env[k] = v
			}
			cfg.Env["CLAUDE_CODE_MAX_RETRIES"] = "2"
			// Else a stream that is always cut is answered whole, see TestCutStream.
			cfg.Env["CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK"] = "1"
			cfg.Model = modelsim.ClaudeModel
		},
		MCP: func(t testing.TB, cfg *provider.SessionConfig, server, binary string, env map[string]string) string {
			raw, err := json.Marshal(map[string]any{"mcpServers": map[string]any{server: map[string]any{"command": binary, "args": []string{}, "env": env}}})
			if err != nil {
				t.Fatal(err)
			}
			cfg.Options = map[string]string{"mcp_config": string(raw)}
			return "mcp__" + server + "__size"
		},
		AskTool:     "AskUserQuestion",
		CountsCut:   true,
		VersionText: func(v string) string { return v + " (Claude Code)" },
		Overflow:    "http 400 type=invalid_request_error prompt is too long: 250000 tokens > 200000 maximum",
	}
}

func TestConformance(t *testing.T) { providertest.Run(t, harness(lab.Claude)) }

func TestConformanceConfined(t *testing.T) { providertest.Soak(t, harness(lab.Claude)) }

// The oldest version takes as long again; by default TestOldest stands for it.
func TestConformanceOldest(t *testing.T) {
	if os.Getenv("THOLE_SOAK") == "" {
		t.Skip("THOLE_SOAK is not set")
	}
	h := harness(lab.ClaudeOld)
	h.Skip = map[string]string{"a cut stream that is repeated": "this version gives up without its fallback, see TestCutStream"}
	providertest.Run(t, h)
}

// The oldest version works, but may lose the answer to a parked question: it is
// not parked, and an answer that comes later is said as a message.
func TestOldest(t *testing.T) {
	b := providertest.NewBench(t, harness(lab.ClaudeOld))
	if c := b.Info.Capabilities; c.Resume != provider.Validated || c.AskSurvives != provider.Unavailable || c.Notes["ask_survives_restart"] == "" {
		t.Errorf("capabilities %+v", c)
	}
	s := b.Open()
	turn := b.Start(s, "sim: ask Which? | red | green ;; say ok")
	ask := turn.UntilAsk(event.AskInput)
	if err := s.Defer(t.Context(), ask.ID); !errors.Is(err, provider.ErrUnsupported) {
		t.Errorf("defer: %v", err)
	}
	turn.Stop()
	turn.Wait()
	s.Close()
	again := b.Open(providertest.Resume(s.NativeID()))
	r := b.StartTurn(again, provider.Turn{Reply: &provider.Reply{Ask: ask,
		Answer: event.Answer{Answers: map[string][]string{ask.Questions[0].ID: {"green it is"}}}}}).Wait()
	if r.Outcome() != thole.OutcomeCompleted || !strings.Contains(r.Text(), "green it is") {
		t.Errorf("outcome %s, text %q", r.Outcome(), r.Text())
	}
}

// A closed session leaves no goroutine and no process.
func TestCloseLeavesNothing(t *testing.T) {
	b := providertest.NewBench(t, harness(lab.Claude))
	before := goleak.IgnoreCurrent()
	s := b.Open()
	if r := b.Play(s, "sim: run sleep 300 >/dev/null 2>&1 & echo started ;; say ok"); r.Outcome() != thole.OutcomeCompleted {
		t.Fatalf("outcome %s", r.Outcome())
	}
	pid := s.(interface{ PID() int }).PID()
	s.Close()
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the CLI lives: %v", err)
	}
	http.DefaultClient.CloseIdleConnections()
	goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction("net/http.(*conn).serve"), goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}
