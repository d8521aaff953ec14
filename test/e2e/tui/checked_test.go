package tui

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/testkit/appschema"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/test/e2e/home"
)

// checkedAddress is where a TUI reaches the owner of a home with every frame between them
// checked against the schema of the installed codex.
func checkedAddress(t testing.TB, h *home.Home) string {
	t.Helper()
	schema := appschema.Installed(t)
	return appschema.Proxy(t, "unix://"+daemon.Socket(h.Dir), func() *appschema.Recorder {
		return schema.NewRecorder(func(problem string) { t.Error(problem) })
	})
}

// checkedCodex is the installed codex for thole tui, led to the checked address in the place
// of the home's own.
func checkedCodex(t testing.TB, h *home.Home) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "codex")
	script := fmt.Sprintf("#!/bin/sh\nfor a; do\n\tshift\n\tcase $a in unix://*) a=%s ;; esac\n\tset -- \"$@\" \"$a\"\ndone\nexec %s \"$@\"\n",
		quote([]string{checkedAddress(t, h)}), quote([]string{lab.Codex(t)}))
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}
