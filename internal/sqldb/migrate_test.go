package sqldb

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tholehq/thole/internal/testkit/lab"
)

// emptyDatabase is a connection to a database without any table.
func emptyDatabase(t *testing.T, d dialect) *sql.Conn {
	driver, dsn := "sqlite", sqliteDSN(filepath.Join(t.TempDir(), "x.db"), "", "rwc")
	if d == (postgresDialect{}) {
		driver, dsn = "pgx", lab.Postgres(t)
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(); db.Close() })
	return conn
}

// TestFailedMigrationLeavesNothing: schema changes are all or nothing, and a
// later, repaired set goes through, also with numbers below those applied.
func TestFailedMigrationLeavesNothing(t *testing.T) {
	for _, d := range []dialect{sqliteDialect{}, postgresDialect{}} {
		t.Run(d.engine(), func(t *testing.T) {
			ctx, conn := context.Background(), emptyDatabase(t, d)
			files := fstest.MapFS{
				"migrations/0020_b.sql": {Data: []byte("-- a comment; with a semicolon\ncreate table b (id bigint);\ninsert into b values (1);\n" +
					"-- only: sqlite\ncreate table own (id bigint);\n-- only: postgres\ncreate table own (id bigint);\n-- only: another\ncreate nonsense;\n")},
				"migrations/0030_c.sql": {Data: []byte("create table c (id bigint);\ncreate nonsense;\n")},
			}
			run := func() error {
				all, err := Schema{Files: files}.Migrations()
				if err != nil {
					return err
				}
				return migrateTo(ctx, conn, d, Schema{}, time.Now, all)
			}
			if err := run(); err == nil || !strings.Contains(err.Error(), "0030_c") {
				t.Fatalf("broken migration: %v", err)
			}
			if _, err := conn.ExecContext(ctx, "create table b (id bigint)"); err != nil {
				t.Fatalf("the broken run left something: %v", err)
			}
			if _, err := conn.ExecContext(ctx, "drop table b"); err != nil {
				t.Fatal(err)
			}
			delete(files, "migrations/0030_c.sql")
			if err := run(); err != nil {
				t.Fatal(err)
			}
			if _, err := conn.ExecContext(ctx, "drop table own"); err != nil {
				t.Fatalf("the engine's own statement was passed over: %v", err)
			}
			files["migrations/0010_a.sql"] = &fstest.MapFile{Data: []byte("create table a (id bigint);\n")}
			for range 2 {
				if err := run(); err != nil {
					t.Fatal(err)
				}
			}
			files["migrations/0010_twin.sql"] = &fstest.MapFile{Data: []byte("select 1;\n")}
			if err := run(); err == nil {
				t.Fatal("two migrations with one number were accepted")
			}
		})
	}
}
