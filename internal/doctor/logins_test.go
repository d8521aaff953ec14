package doctor

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/provider"
)

// A login that could not be renewed is said by the doctor until one is.
func TestTheDoctorKnowsFailedLogins(t *testing.T) {
	home := t.TempDir()
	l := provider.Login{Home: t.TempDir()}
	renewed := NoteLogins(home, slog.New(slog.NewTextHandler(t.Output(), nil)))
	renewed("claude", nil)
	if got := checkLogins(home, l); len(got) != 0 {
		t.Errorf("nothing failed: %+v", got)
	}
	renewed("codex", errors.New("the service answers 400"))
	renewed("claude", nil)
	if got := checkLogins(home, l); len(got) != 1 || got[0].OK || got[0].Part != "login codex" || !strings.Contains(got[0].Problem, "answers 400") || got[0].Fix == "" {
		t.Errorf("the doctor says %+v", got)
	}
	renewed("codex", nil)
	if got := checkLogins(home, l); len(got) != 0 {
		t.Errorf("it was renewed since: %+v", got)
	}
}

// The doctor says which logins agents do not get, and what it costs when they do.
func TestTheDoctorKnowsWhatHandingInCosts(t *testing.T) {
	l := provider.Login{Home: t.TempDir()}
	path := filepath.Join(l.Home, ".local/share/opencode/auth.json")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(`{"anthropic":{"type":"oauth","refresh":"r","access":"a","expires":1},"openai":{"type":"api","key":"sk-1"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	got := checkLogins(t.TempDir(), l)
	if len(got) != 1 || got[0].OK || !strings.Contains(got[0].Problem, "anthropic") || strings.Contains(got[0].Problem, "openai") || !strings.Contains(got[0].Fix, "hand_in_logins") {
		t.Errorf("the doctor says %+v", got)
	}
	l.HandIn = []string{"opencode"}
	got = checkLogins(t.TempDir(), l)
	if len(got) != 1 || got[0].OK || !strings.Contains(got[0].Problem, "logged out") {
		t.Errorf("the doctor says %+v", got)
	}
}
