package snapshot

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A database whose rows sit in the write-ahead log, held open by a writer, is
// copied whole; the log itself is not.
func TestCopyWhileTheWriterLives(t *testing.T) {
	src, dst := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	path := filepath.Join(src, "deep dir", "state #1.sqlite")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+strings.NewReplacer(" ", "%20", "#", "%23").Replace(path)+"?_pragma=journal_mode(wal)&_pragma=wal_autocheckpoint(0)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("create table s(id text); insert into s values ('kept')"); err != nil {
		t.Fatal(err)
	}
	if wal, err := os.Stat(path + "-wal"); err != nil || wal.Size() == 0 {
		t.Fatalf("the row is not in the log: %v", err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(filepath.Join(src, "plain-wal"), []byte("not a log"), 0o640))
	must(os.MkdirAll(filepath.Join(src, "node_modules", "x"), 0o755))
	must(os.Symlink("plain-wal", filepath.Join(src, "link")))
	must(Copy(context.Background(), src, dst, func(rel string) bool { return rel == "node_modules" }))

	copied, err := sql.Open("sqlite", "file:"+strings.NewReplacer(" ", "%20", "#", "%23").Replace(filepath.Join(dst, "deep dir", "state #1.sqlite")))
	must(err)
	defer copied.Close()
	var id string
	if err := copied.QueryRow("select id from s").Scan(&id); err != nil || id != "kept" {
		t.Errorf("row %q, %v", id, err)
	}
	var names []string
	must(filepath.WalkDir(dst, func(p string, _ os.DirEntry, err error) error {
		rel, _ := filepath.Rel(dst, p)
		names = append(names, rel)
		return err
	}))
	want := ". deep dir deep dir/state #1.sqlite link plain-wal"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("copied %q, want %q", got, want)
	}
	if target, err := os.Readlink(filepath.Join(dst, "link")); err != nil || target != "plain-wal" {
		t.Errorf("link to %q, %v", target, err)
	}
	if i, err := os.Stat(filepath.Join(dst, "plain-wal")); err != nil || i.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", i.Mode(), err)
	}
}

func TestCopyOfNothing(t *testing.T) {
	if err := Copy(context.Background(), filepath.Join(t.TempDir(), "missing"), t.TempDir()+"/x", nil); err == nil {
		t.Error("no error")
	}
}
