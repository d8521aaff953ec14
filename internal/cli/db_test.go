package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
)

func TestDBCommands(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	copied := filepath.Join(t.TempDir(), "copy.db")
	run := func(code int, args ...string) (string, string) {
		t.Helper()
		var out, errw bytes.Buffer
		if got := Main(append(args, "--home", home), strings.NewReader(""), &out, &errw); got != code {
			t.Fatalf("%v: exit code %d, want %d: %s%s", args, got, code, out.String(), errw.String())
		}
		return out.String(), errw.String()
	}
	run(3, "db", "check")
	db, err := store.Open(context.Background(), sqldb.Config{Path: filepath.Join(home, store.FileName)})
	if err != nil {
		t.Fatal(err)
	}
	run(0, "db", "backup", copied)
	out, _ := run(0, "db", "check", copied, "--json")
	var r sqldb.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.Schema == 0 || len(r.Problems) != 0 {
		t.Fatalf("report %s: %v", out, err)
	}
	if _, errs := run(5, "db", "restore", copied); !strings.Contains(errs, "running process") || !strings.Contains(errs, "try:") {
		t.Fatalf("restore under a live owner says %q", errs)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if out, _ := run(0, "db", "restore", copied); !strings.Contains(out, ".before-") {
		t.Fatalf("restore says %q", out)
	}
	if err := os.WriteFile(copied, []byte(strings.Repeat("x", 9000)), 0o600); err != nil {
		t.Fatal(err)
	}
	run(7, "db", "check", copied)
	run(7, "db", "restore", copied)
	run(0, "db", "check")
}
