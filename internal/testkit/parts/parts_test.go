package parts

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRowsCountTestsNotUses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "parts")
	t.Setenv("THOLE_PARTS", path)
	Use(t, "postgresql", "15")
	Use(t, "postgresql", "15")
	t.Run("sub", func(t *testing.T) { Use(t, "postgresql", "15"); Use(t, "postgresql", "18") })
	rows, err := Rows(path, []string{"postgresql", "dockerd"})
	if err != nil {
		t.Fatal(err)
	}
	want := []Row{{"dockerd", "-", 0}, {"postgresql", "15", 2}, {"postgresql", "18", 1}}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Fatal(diff)
	}
	var out bytes.Buffer
	empty, err := Print(&out, rows)
	if err != nil || !slices.Equal(empty, []string{"dockerd"}) {
		t.Fatalf("empty rows %v, %v", empty, err)
	}
	if !strings.Contains(out.String(), "postgresql   15        2") {
		t.Fatalf("table:\n%s", out.String())
	}
}

func TestRowsOfARunThatUsedNothing(t *testing.T) {
	rows, err := Rows(filepath.Join(t.TempDir(), "absent"), []string{"codex"})
	if err != nil || len(rows) != 1 || rows[0].Tests != 0 {
		t.Fatalf("%v, %v", rows, err)
	}
}

func TestRowsRefuseADamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "parts")
	if err := os.WriteFile(path, []byte("{\"part\":\"x\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Rows(path, nil); err == nil {
		t.Fatal("a half-written record was accepted")
	}
}
