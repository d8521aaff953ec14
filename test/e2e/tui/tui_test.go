// Package tui proves the contract with the client it was made for: the real Codex
// TUI, in a real terminal, attached to thole.
package tui

import (
	"path/filepath"
	"testing"

	"github.com/tholehq/thole/internal/appserver/apptest"
)

func TestNewThreadOverUnix(t *testing.T) {
	rig := apptest.New(t, apptest.Options{})
	addr := rig.Listen("unix://"+filepath.Join(t.TempDir(), "app.sock"), "")
	s := open(t, nil, "--remote", addr)
	s.wait("Scripted agent: Scripted")
	s.say("sim: slow 20ms 3 ;; say hello from the scripted agent")
	s.wait("hello from the scripted agent")
}
