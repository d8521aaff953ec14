package store

import (
	"context"
	"database/sql"
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

// upTo is the migrations up to a number, that one with another content, if there is
// a path to it.
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
		if path != "" && strings.HasPrefix(name, "migrations/"+number) {
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
		"workspace_turns": "4deb0472417c", "queue_indexes": "19911bc775e7", "queue_ready": "12fcceae8273", "queue_checks": "5827ad1d7dee", "ask_self_answered": "cc589dab8e54", "network": "3849e686605c", "logins": "527ba1d0c454",
		"several_servers": "c64119c25be3",
		"gateway_tokens":  "3aa4c87d6b63", "vault": "41d8057109af", "gateway_calls": "52fa0176d5fd", "budgets": "2667f158f79d", "turn_time": "00ad0d92449b",
		"source": "41337f4a49d3", "source_at": "183788237ae1", "jobs_in_threads": "cd5eedfe2d04", "client_tools": "6b66ff42f4e3", "goal": "541b27c8d759",
		"pinned": "c959eb238243", "item_outputs": "ba476f46a93b",
		"turn_native": "befe2bca877c", "deleted_threads": "6ab4c3a60f61", "idempotency_request": "94a10a34a93d",
		"share_links": "0b29c538ce1f", "audit": "8774ac7ec1a6",
		"servers": "3521d05b1dbe", "engines": "8fa934acabf1",
		"aside": "a55bd78b7a4e", "forget": "bf0d3c6bbcd9", "active_turn": "d291641d37c6", "users": "3757e6d7d693", "single_sign_on": "c3bbd0b0376e", "device_logins": "368a3235f49d",
		"plugins": "bddddfff5f01", "revert": "4e99950c3231", "desktop": "f19e488248b6", "thread_git": "7677a5a302c8",
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

// TestAsksOfOlderStoresStay: the table of asks was rebuilt, with all that it held.
func TestAsksOfOlderStoresStay(t *testing.T) {
	const before = "0129" // 0130 makes it
	for _, engine := range []string{sqldb.SQLite, sqldb.Postgres} {
		t.Run(engine, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "home", FileName)
			cfg, driver, source := sqldb.Config{Path: path}, "sqlite", "file:"+path
			if engine == sqldb.Postgres {
				dsn := lab.Postgres(t)
				cfg, driver, source = sqldb.Config{DSN: dsn}, "pgx", dsn
			}
			cfg.Schema.Files = upTo(t, before, "")
			ctx := context.Background()
			old, err := sqldb.Open(ctx, cfg)
			if err != nil {
				t.Fatal(err)
			}
			if err := old.Close(); err != nil {
				t.Fatal(err)
			}
			raw := func(f func(do func(string) error, conn *sql.Conn)) {
				t.Helper()
				pool, err := sql.Open(driver, source)
				if err != nil {
					t.Fatal(err)
				}
				defer pool.Close()
				conn, err := pool.Conn(ctx)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				do := func(query string) error { _, err := conn.ExecContext(ctx, query); return err }
				f(do, conn)
			}
			raw(func(do func(string) error, _ *sql.Conn) {
				// With the default app, project and user, which the first migration makes.
				if err := do(`insert into threads (id, app_id, project_id, user_id, name, preview, provider, dir, settings, native_id, origin, source, client, ephemeral, archived,
					forked_from, parent_id, created_at, updated_at, seq, floor, turns, open_turn, approvals, inputs, last_outcome, paused, step_seq, usage)
					select 't', p.app_id, p.id, u.id, '', '', '', '', '{}', '', '', '', '', false, false, '', '', 1, 1, 1, 0, 0, '', 0, 0, '', false, 0, '{}' from projects p, users u limit 1`); err != nil {
					t.Fatal(err)
				}
				const row = `insert into asks (thread_id, ask_id, turn_id, kind, state, body, answer, actor, deadline, asked_at, resolved_at) values `
				if err := do(row + `('t', 'a', 'u', 'command', 'answered', '{}', '{}', '{}', 0, 1, 2), ('t', 'b', 'u', 'input', 'pending', '{}', '', '', 9, 1, 0)`); err != nil {
					t.Fatal(err)
				}
			})
			if err := reopen(t, cfg).Close(); err != nil {
				t.Fatal(err)
			}
			raw(func(do func(string) error, conn *sql.Conn) {
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
		})
	}
}
