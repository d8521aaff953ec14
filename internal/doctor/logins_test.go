package doctor

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// A login that was refused is said by the doctor until one is taken.
func TestTheDoctorKnowsRefusedLogins(t *testing.T) {
	home := t.TempDir()
	kept := NoteLogins(home, slog.New(slog.NewTextHandler(t.Output(), nil)))
	kept("claude", nil)
	if got := checkLogins(home); len(got) != 0 {
		t.Errorf("nothing was refused: %+v", got)
	}
	kept("codex", errors.New("account_id was changed"))
	kept("claude", nil)
	if got := checkLogins(home); len(got) != 1 || got[0].OK || got[0].Part != "login codex" || !strings.Contains(got[0].Problem, "account_id") || got[0].Fix == "" {
		t.Errorf("the doctor says %+v", got)
	}
	kept("codex", nil)
	if got := checkLogins(home); len(got) != 0 {
		t.Errorf("it was taken since: %+v", got)
	}
}
