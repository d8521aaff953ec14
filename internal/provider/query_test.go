package provider_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/provider"
)

// A probe runs a CLI outside of every wall, so the CLI gets no key, no login and no home
// of the user.
func TestAProbeGetsNoKey(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "canary")
	t.Setenv("ANTHROPIC_API_KEY", "canary")
	cli := filepath.Join(t.TempDir(), "cli")
	if err := os.WriteFile(cli, []byte("#!/bin/sh\nenv\nls -a \"$HOME\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	said, err := provider.Query{Binary: cli, Homes: []string{"CODEX_HOME"}}.Output(t.Context())
	home, _ := os.UserHomeDir()
	if err != nil || strings.Contains(said, "canary") || strings.Contains(said, "HOME="+home+"\n") || !strings.Contains(said, "CODEX_HOME=") {
		t.Errorf("%v, the probe has %s", err, said)
	}
}
