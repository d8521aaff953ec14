package store

import (
	"context"
	"os"
	"slices"
	"testing"
	"testing/fstest"
	"time"
)

// TestStoresMadeWithEarlierFormsOpen: a store keeps opening when the migration it
// was made with was changed since, and is then as every other.
func TestStoresMadeWithEarlierFormsOpen(t *testing.T) {
	all, err := loadMigrations(migrationFiles)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []dialect{sqliteDialect{}, postgresDialect{}} {
		for _, form := range []string{"first", "second"} {
			t.Run(d.engine()+"/"+form, func(t *testing.T) {
				body, err := os.ReadFile("testdata/0090_" + form + ".sql")
				if err != nil {
					t.Fatal(err)
				}
				earlier, err := loadMigrations(fstest.MapFS{"migrations/0090_queue_indexes.sql": {Data: body}})
				if err != nil {
					t.Fatal(err)
				}
				old := slices.Clone(all)
				at := slices.IndexFunc(old, func(m migration) bool { return m.version == 90 })
				old[at] = earlier[0]

				ctx, conn := context.Background(), emptyDatabase(t, d)
				if err := migrateTo(ctx, conn, d, time.Now, old[:at+1]); err != nil {
					t.Fatal(err)
				}
				for range 2 {
					if err := migrate(ctx, conn, d, time.Now); err != nil {
						t.Fatal(err)
					}
				}
				const row = `insert into turn_queue (turn_id, kind, thread_id, user_id, seq, priority, state, head, waiting, cancel, attempt,
					available_at, lease_token, lease_owner, lease_until, last_error, created_at, done_at)
					values ($1, 'turn', $1, 'u', 1, 0, 'leased', true, false, false, 1, 0, $2, 'o', 1, '', 1, 0)`
				if _, err := conn.ExecContext(ctx, row, "a", "token"); err != nil {
					t.Fatal(err)
				}
				if _, err := conn.ExecContext(ctx, row, "b", ""); err == nil {
					t.Fatal("a turn was leased without a token")
				}
			})
		}
	}
}

// TestMigrationsAreNeverChanged: the change of a file that stores were made with
// locks these out. What is to be different goes into a new file, and its sum here.
func TestMigrationsAreNeverChanged(t *testing.T) {
	sums := map[string]string{
		"identity": "83e574939eea", "threads": "8fc176bcced1", "queue": "80c3a834749f", "executors": "23a6432d5b1e", "workspace": "767c9b6f7e2f",
		"delivery": "7882f134ccac", "artifacts": "d04f5ff77d9c", "attachments": "7e29bd4bbd09", "sessions": "f61d4ec3e198", "session_pin": "27110152087c",
		"queue_open": "3ed2d76301c8", "manifests": "26bcec3aa04c", "boundary": "ef082e8426cb", "thread_defaults": "e611de409b4a",
		"workspace_turns": "4deb0472417c", "queue_indexes": "19911bc775e7", "queue_ready": "12fcceae8273", "queue_checks": "5827ad1d7dee",
	}
	all, err := loadMigrations(migrationFiles)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if sums[m.name] != m.sum[:12] {
			t.Errorf("migration %04d_%s has the sum %s, want %s", m.version, m.name, m.sum[:12], sums[m.name])
		}
	}
	if len(all) != len(sums) {
		t.Errorf("%d migrations, want %d", len(all), len(sums))
	}
}
