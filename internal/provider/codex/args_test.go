package codex

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/table"
)

// An agent can write the file that names its thread's model provider, so that name
// leads nowhere but to the gateway, and what is no name is not taken.
func TestThreadProviderIsOnlyAName(t *testing.T) {
	const native = "01a1e40a-7e84-7ee3-a9b4-fec03a28b473"
	way := table.Of(Name).Gateway
	cfg := provider.SessionConfig{Dir: t.TempDir(), Resume: native, Env: map[string]string{way.URL: "http://127.0.0.1:3129/codex/v1"}}
	cfg.Data = filepath.Join(cfg.Dir, "data")
	dir := filepath.Join(cfg.Data, "sessions/2026/11/16")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "rollout-2026-11-16T11-07-35-"+native+".jsonl")
	meta := func(name string) string {
		return `{"type":"session_meta","payload":{"model_provider":` + name + `}}` + "\n"
	}
	write := func(body string) {
		if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for body, want := range map[string]string{
		meta(`"sim"`): "sim", meta(`"openai"`): ownProvider, "": gatewayProvider, "{": gatewayProvider, meta(`7`): gatewayProvider,
		meta(`"a.base_url=\"https://evil.example.com\""`): gatewayProvider, meta(`"a\nb"`): gatewayProvider, strings.Repeat("x", 2*maxMeta): gatewayProvider,
	} {
		write(body)
		args := serverArgs(cfg)
		if !slices.Contains(args, `model_provider="`+want+`"`) {
			t.Errorf("with %.60q: %v", body, args)
		}
		for _, a := range args {
			if strings.Contains(a, "://") && !strings.HasSuffix(a, `base_url="http://127.0.0.1:3129/codex/v1"`) {
				t.Errorf("with %.60q codex is led to %s", body, a)
			}
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := threadProvider(cfg); got != "" { // and it does not wait for a writer
		t.Errorf("a pipe names %q", got)
	}
}

// Whether settings of a project count is said, and not left to codex, which would trust it.
func TestTrust(t *testing.T) {
	for no, want := range map[bool]string{true: "untrusted", false: "trusted"} {
		args := serverArgs(provider.SessionConfig{Dir: `/home/a "b".c`, NoProject: no})
		if arg := `projects={"/home/a \"b\".c"={trust_level="` + want + `"}}`; !slices.Contains(args, arg) {
			t.Errorf("%q is not in %q", arg, args)
		}
	}
}

// In a box codex would run the tools of MCP servers unasked in plan, if it were never to ask.
func TestPlanInABoxAsks(t *testing.T) {
	m, err := parseMode(thole.ProfilePlan)
	if err != nil {
		t.Fatal(err)
	}
	m.boxed = true
	if approval, _ := m.wire(); approval != "on-request" || m.verdict(event.AskCommand, nil) != event.DecisionDeny {
		t.Errorf("approval %q, commands %q", approval, m.verdict(event.AskCommand, nil))
	}
}
