package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
)

func TestBackupCommands(t *testing.T) {
	home, file := filepath.Join(t.TempDir(), "home"), filepath.Join(t.TempDir(), "home.tar")
	run := func(code int, home string, args ...string) (string, string) {
		t.Helper()
		var out, errw bytes.Buffer
		if got := Main(append(args, "--home", home), strings.NewReader(""), &out, &errw); got != code {
			t.Fatalf("%v: exit code %d, want %d: %s%s", args, got, code, out.String(), errw.String())
		}
		return out.String(), errw.String()
	}
	run(3, home, "backup", file)
	db, err := store.Open(context.Background(), sqldb.Config{Path: filepath.Join(home, store.FileName)})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if out, _ := run(0, home, "backup", file); !strings.Contains(out, "0 threads, 0 turns") {
		t.Errorf("backup says %q", out)
	}
	if _, errs := run(4, home, "restore", file); !strings.Contains(errs, "in use") || !strings.Contains(errs, "try:") {
		t.Errorf("restore over a home says %q", errs)
	}
	other := filepath.Join(t.TempDir(), "other")
	if out, _ := run(0, other, "restore", file); !strings.Contains(out, "every hash and count is right") {
		t.Errorf("restore says %q", out)
	}
	run(0, other, "db", "check")
}

// A misspelt variable is refused by every command that looks for the home, whether or not
// a process owns one: it would be asked about another home than the one that was named.
func TestMisspeltHome(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("THOLE_HOEM", t.TempDir())
	for _, args := range [][]string{{"thread", "list"}, {"ps"}, {"inbox"}, {"job", "list"}, {"db", "check"}, {"backup", "x"}, {"restore", "x"}, {"daemon", "status"}, {"config", "show"}} {
		var out, errw bytes.Buffer
		if got := Main(args, strings.NewReader(""), &out, &errw); got != 2 || !strings.Contains(errw.String(), "did you mean THOLE_HOME?") {
			t.Errorf("%v: exit code %d: %s%s", args, got, out.String(), errw.String())
		}
	}
	if left, _ := os.ReadDir(os.Getenv("HOME")); len(left) != 0 {
		t.Errorf("made: %v", left)
	}
}
