package claude_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/claude"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// An unknown version is believed what it says of itself: here the real CLI under
// another version's name, with a flag taken out of its help.
func TestProbeOfAnUnknownVersion(t *testing.T) {
	script := filepath.Join(t.TempDir(), "claude")
	text := "#!/bin/sh\nreal='" + lab.Claude(t) + "'\ncase \"$*\" in\n--version) echo '99.0.0 (Claude Code)';;\n" +
		"--help) \"$real\" --help | sed s/--fork-session/--gone/;;\n*) exec \"$real\" \"$@\";;\nesac\n"
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	info := claude.New(claude.Config{Binary: script}).Probe(context.Background())
	c := info.Capabilities
	if !info.Available || !strings.Contains(info.Problem, "99.0.0") || len(info.Models) == 0 {
		t.Errorf("%+v", info)
	}
	for name, got := range map[string]provider.Capability{
		"resume": c.Resume, "steer": c.Steer, "human loop": c.HumanLoop, "approval": c.ToolApproval, "plan": c.PlanMode, "usage": c.Usage, "input": c.ToolInputFlow, "kept question": c.AskSurvives,
	} {
		if got != provider.Validated {
			t.Errorf("%s is %s", name, got)
		}
	}
	if c.Fork != provider.Unavailable || c.Notes["fork"] == "" {
		t.Errorf("%+v", c)
	}
}

// A version that loses a parked question is found out: here by forgetting the
// session, as a home that is thrown away between two processes does.
func TestProbeOfAVersionThatParksNothing(t *testing.T) {
	script := filepath.Join(t.TempDir(), "claude")
	text := "#!/bin/sh\nreal='" + lab.Claude(t) + "'\ncase \"$*\" in\n--version) echo '99.0.0 (Claude Code)';;\n" +
		"*--resume*) rm -rf \"$CLAUDE_CONFIG_DIR\"; exec \"$real\" \"$@\";;\n*) exec \"$real\" \"$@\";;\nesac\n"
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	c := claude.New(claude.Config{Binary: script}).Probe(context.Background()).Capabilities
	if c.HumanLoop != provider.Validated || c.AskSurvives != provider.Unavailable || !strings.Contains(c.Notes["ask_survives_restart"], "was tried") {
		t.Errorf("%+v", c)
	}
}
