package store

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// TestStoresMadeWithEarlierFormsOpen: a store keeps opening when the migration it
// was made with was changed since, and is then as every other.
func TestStoresMadeWithEarlierFormsOpen(t *testing.T) {
	for _, engine := range []string{sqldb.SQLite, sqldb.Postgres} {
		for _, form := range []string{"first", "second"} {
			t.Run(engine+"/"+form, func(t *testing.T) {
				cfg := sqldb.Config{Path: filepath.Join(t.TempDir(), "home", FileName)}
				if engine == sqldb.Postgres {
					cfg = sqldb.Config{DSN: lab.Postgres(t)}
				}
				cfg.Schema.Files = upTo(t, "0090", "testdata/0090_"+form+".sql")
				ctx := context.Background()
				old, err := sqldb.Open(ctx, cfg)
				if err != nil {
					t.Fatal(err)
				}
				if err := old.Close(); err != nil {
					t.Fatal(err)
				}
				if err := reopen(t, cfg).Close(); err != nil {
					t.Fatal(err)
				}
				db := reopen(t, cfg) // once more: nothing is left to do
				lease := func(id, token string) error {
					return db.Update(ctx, "test.update", func(tx *sqldb.Tx) error {
						_, err := tx.Exec(`insert into turn_queue (turn_id, kind, thread_id, user_id, seq, priority, state, head, waiting, cancel, attempt,
							available_at, lease_token, lease_owner, lease_until, last_error, created_at, done_at)
							values ($1, 'turn', $1, 'u', 1, 0, 'leased', true, false, false, 1, 0, $2, 'o', 1, '', 1, 0)`, id, token)
						return err
					})
				}
				if err := lease("a", "token"); err != nil {
					t.Fatal(err)
				}
				if err := lease("b", ""); err == nil {
					t.Fatal("a turn was leased without a token")
				}
			})
		}
	}
}

// upTo is the migrations up to a number, that one with another content.
func upTo(t *testing.T, number, path string) fs.FS {
	t.Helper()
	files := fstest.MapFS{}
	names, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if name > "migrations/"+number+"~" {
			continue
		}
		body, err := fs.ReadFile(migrationFiles, name)
		if strings.HasPrefix(name, "migrations/"+number) {
			body, err = os.ReadFile(path)
		}
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: body}
	}
	return files
}

// TestMigrationsAreNeverChanged: the change of a file that stores were made with
// locks these out. What is to be different goes into a new file, and its sum here.
func TestMigrationsAreNeverChanged(t *testing.T) {
	sums := map[string]string{
		"identity": "83e574939eea", "threads": "8fc176bcced1", "queue": "80c3a834749f", "executors": "23a6432d5b1e", "workspace": "767c9b6f7e2f",
		"delivery": "7882f134ccac", "artifacts": "d04f5ff77d9c", "attachments": "7e29bd4bbd09", "sessions": "f61d4ec3e198", "session_pin": "27110152087c",
		"queue_open": "3ed2d76301c8", "manifests": "26bcec3aa04c", "boundary": "ef082e8426cb", "thread_defaults": "e611de409b4a",
		"workspace_turns": "4deb0472417c", "queue_indexes": "19911bc775e7", "queue_ready": "12fcceae8273", "queue_checks": "5827ad1d7dee", "ask_self_answered": "cc589dab8e54",
	}
	all, err := Schema().Migrations()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if sums[m.Name] != m.Sum[:12] {
			t.Errorf("migration %04d_%s has the sum %s, want %s", m.Version, m.Name, m.Sum[:12], sums[m.Name])
		}
	}
	if len(all) != len(sums) {
		t.Errorf("%d migrations, want %d", len(all), len(sums))
	}
}

// TestAsksOfOlderStoresStay: the table of asks was made anew, with all that it held.
func TestAsksOfOlderStoresStay(t *testing.T) {
	all, err := loadMigrations(migrationFiles)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(all, func(m migration) bool { return m.name == "ask_self_answered" })
	for _, d := range []dialect{sqliteDialect{}, postgresDialect{}} {
		t.Run(d.engine(), func(t *testing.T) {
			ctx, conn := context.Background(), emptyDatabase(t, d)
			if err := migrateTo(ctx, conn, d, time.Now, all[:at]); err != nil {
				t.Fatal(err)
			}
			do := func(query string) error {
				_, err := conn.ExecContext(ctx, query)
				return err
			}
			// The thread of these asks is of no interest.
			if err := do(map[string]string{engineSQLite: `pragma foreign_keys = off`, enginePostgres: `set session_replication_role = replica`}[d.engine()]); err != nil {
				t.Fatal(err)
			}
			const row = `insert into asks (thread_id, ask_id, turn_id, kind, state, body, answer, actor, deadline, asked_at, resolved_at) values `
			if err := do(row + `('t', 'a', 'u', 'command', 'answered', '{}', '{}', '{}', 0, 1, 2), ('t', 'b', 'u', 'input', 'pending', '{}', '', '', 9, 1, 0)`); err != nil {
				t.Fatal(err)
			}
			if err := migrate(ctx, conn, d, time.Now); err != nil {
				t.Fatal(err)
			}
			var n int
			if err := conn.QueryRowContext(ctx, `select count(*) from asks where receipt = '' and state in ('answered', 'pending')`).Scan(&n); err != nil || n != 2 {
				t.Fatalf("%d asks are left, %v", n, err)
			}
			if err := do(`update asks set state = 'self_answered', receipt = 'e' where ask_id = 'a'`); err != nil {
				t.Error(err)
			}
			if do(`update asks set state = 'nothing' where ask_id = 'a'`) == nil || do(`update asks set answer = '{}' where ask_id = 'b'`) == nil {
				t.Error("the checks are gone")
			}
		})
	}
}
