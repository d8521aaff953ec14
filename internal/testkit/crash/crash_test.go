package crash_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/testkit/crash"
)

const insert = "insert into users (id, login, name, state, created_at) values ($1, $1, 'x', 'active', 0)"

// TestAckedWritesSurvive: what was acknowledged is there, what was killed before
// its commit is not, what was killed after it is.
func TestAckedWritesSurvive(t *testing.T) {
	t.Setenv("THOLE_CRASH_REPORT", t.TempDir())
	users := []string{"a", "b", "c", "d"}
	work := func(w *crash.Work) error {
		db, err := store.Open(context.Background(), sqldb.Config{Path: filepath.Join(w.Dir, "s.db"), Hook: w.Hook})
		if err != nil {
			return err
		}
		for _, id := range users {
			err := db.Update(context.Background(), "test.insert", func(tx *sqldb.Tx) error {
				_, err := tx.Exec(insert, id)
				return err
			})
			if err != nil {
				return err
			}
			w.Ack(id)
		}
		return db.Close()
	}
	var places []string
	crash.Enumerate(t, work, func(t *testing.T, dir string, acked []string, killed string) {
		places = append(places, killed)
		want := len(acked)
		if strings.HasPrefix(killed, "after-commit") {
			want++
		}
		db, err := store.Open(context.Background(), sqldb.Config{Path: filepath.Join(dir, "s.db")})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		err = db.View(context.Background(), func(tx *sqldb.Tx) error {
			for i, id := range users {
				var n int
				if err := tx.QueryRow("select count(*) from users where id = $1", id).Scan(&n); err != nil {
					return err
				}
				if (n == 1) != (i < want) {
					t.Errorf("user %s: %d rows, want the first %d users", id, n, want)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	want := []string{""}
	for _, n := range []int{1, 2, 4} { // the third is like the second
		want = append(want, fmt.Sprintf("before-commit test.insert %d", n), fmt.Sprintf("after-commit test.insert %d", n))
	}
	if !slices.Equal(places, want) {
		t.Fatalf("killed at %q, want %q", places, want)
	}
	covered, err := crash.Covered()
	if err != nil || !covered["test.insert"] {
		t.Fatalf("covered %v, %v", covered, err)
	}
}

func TestSteps(t *testing.T) {
	write := func(t *testing.T, body string) string {
		dir := t.TempDir()
		src := "package x\n\nimport \"github.com/tholehq/thole/internal/store\"\n\nfunc f(ctx context.Context, db *store.DB, step, other string) {\n" + body + "\n}\n"
		if err := os.WriteFile(filepath.Join(dir, "x.go"), []byte(src), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	steps, err := crash.Steps(write(t, `db.Update(ctx, "thread.start_turn", nil); db.Update(ctx, step, nil); other.Replace("a", "b", "c")
}
func g(ctx context.Context, x int, name string) { m.Update(ctx, "job."+name, nil) }
func h() { g(ctx, 1, "close"); f(ctx, db, "thread.fork", "")`))
	if err != nil || len(steps) != 3 || steps["thread.start_turn"].Line != 6 || steps["job.close"].Line == 0 || steps["thread.fork"].Line == 0 {
		t.Fatalf("steps %v, %v", steps, err)
	}
	for _, bad := range []string{`db.Update(ctx, other(), nil)`, `db.Update(ctx, "Start Turn", nil)`, `db.Update(ctx, x.step, nil)`} {
		if _, err := crash.Steps(write(t, bad)); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}
