package sqldb

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
)

// Schema is a database's numbered migrations.
type Schema struct {
	// Files has migrations/NNNN_title.sql.
	Files fs.FS
	// Earlier are the sums of migrations that were changed after databases had been
	// made with them; a later migration makes all forms equal.
	Earlier []string
	// Applied is called for each migration that opening a database applied; may be nil.
	Applied func(Migration)
	// Revocable are tables whose rows are proofs that can be revoked, with the column of their
	// key. A restored backup keeps of them what the store before it still had.
	Revocable map[string]string
}

// Migration is one numbered file. Files are applied once, in the order of their
// numbers, and never changed afterwards: the stored sum refuses that.
type Migration struct {
	Version int64
	Name    string
	Sum     string // of the file, in hex
	body    string
}

// addsOnly begins a migration that servers of the version before can go on with, and addsMark ends
// its recorded name, by which a binary that does not have it knows.
const (
	addsOnly = "-- adds only"
	addsMark = " (adds)"
)

func (m Migration) recorded() string {
	if strings.HasPrefix(m.body, addsOnly) {
		return m.Name + addsMark
	}
	return m.Name
}

// dialect is what differs between the engines when migrating.
type dialect interface {
	engine() string
	begin() []string // opens the transaction and takes the migration lock
	tableExists() string
}

type sqliteDialect struct{}

func (sqliteDialect) engine() string  { return SQLite }
func (sqliteDialect) begin() []string { return []string{"begin immediate"} }
func (sqliteDialect) tableExists() string {
	return "select count(*) from sqlite_master where type = 'table' and name = 'schema_migrations'"
}

type postgresDialect struct{}

func (postgresDialect) engine() string { return Postgres }

// begin takes an advisory lock (an arbitrary number), so that processes
// starting together migrate one after another.
func (postgresDialect) begin() []string {
	return []string{"begin", "select pg_advisory_xact_lock(7741094325)"}
}
func (postgresDialect) tableExists() string {
	return "select count(*) from pg_tables where schemaname = current_schema() and tablename = 'schema_migrations'"
}

// Migrations reads the files in the order of their numbers.
func (s Schema) Migrations() ([]Migration, error) {
	files := s.Files
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	var all []Migration
	for _, path := range names {
		name := strings.TrimSuffix(strings.TrimPrefix(path, "migrations/"), ".sql")
		number, title, ok := strings.Cut(name, "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if !ok || err != nil || version <= 0 {
			return nil, fmt.Errorf("migration %s: want NNNN_title.sql", path)
		}
		body, err := fs.ReadFile(files, path)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(body)
		all = append(all, Migration{version, title, hex.EncodeToString(sum[:]), string(body)})
	}
	slices.SortFunc(all, func(a, b Migration) int { return int(a.Version - b.Version) })
	for i := 1; i < len(all); i++ {
		if all[i].Version == all[i-1].Version {
			return nil, fmt.Errorf("migrations %s and %s share the number %d", all[i-1].Name, all[i].Name, all[i].Version)
		}
	}
	return all, nil
}

// Statements splits a migration at semicolons that end a line. One with a line
// "-- only: sqlite" or "-- only: postgres" is for that engine.
func (m Migration) Statements(engine string) []string {
	var all []string
	for part := range strings.SplitSeq(m.body, ";\n") {
		other := false
		lines := slices.DeleteFunc(strings.Split(part, "\n"), func(l string) bool {
			l = strings.TrimSpace(l)
			if only, ok := strings.CutPrefix(l, "-- only: "); ok && only != engine {
				other = true
			}
			return l == "" || strings.HasPrefix(l, "--")
		})
		if len(lines) > 0 && !other {
			all = append(all, strings.Join(lines, "\n"))
		}
	}
	return all
}

// migrate applies what is missing in one transaction, under a lock.
func migrate(ctx context.Context, conn *sql.Conn, d dialect, schema Schema, now func() time.Time) error {
	all, err := schema.Migrations()
	if err != nil {
		return thole.Errorf(thole.CodeInternal, "load migrations: %w", err)
	}
	return migrateTo(ctx, conn, d, schema, now, all)
}

func migrateTo(ctx context.Context, conn *sql.Conn, d dialect, schema Schema, now func() time.Time, all []Migration) (err error) {
	for _, q := range d.begin() {
		if _, err := conn.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	defer func() {
		if err != nil {
			_, _ = conn.ExecContext(context.WithoutCancel(ctx), "rollback")
		}
	}()
	applied, err := appliedMigrations(ctx, conn, d)
	if err != nil {
		return err
	}
	if err := schema.compatible(all, applied); err != nil {
		return err
	}
	var fresh []Migration
	for _, m := range all {
		if _, done := applied[m.Version]; done {
			continue
		}
		fresh = append(fresh, m)
		for _, q := range m.Statements(d.engine()) {
			if _, err := conn.ExecContext(ctx, q); err != nil {
				return fmt.Errorf("migration %04d_%s: %w", m.Version, m.Name, err)
			}
		}
		const insert = "insert into schema_migrations (version, name, sum, applied_at) values ($1, $2, $3, $4)"
		if _, err := conn.ExecContext(ctx, insert, m.Version, m.recorded(), m.Sum, thole.Millis(now())); err != nil {
			return err
		}
	}
	if _, err = conn.ExecContext(ctx, "commit"); err != nil || schema.Applied == nil {
		return err
	}
	for _, m := range fresh {
		schema.Applied(m)
	}
	return nil
}

// appliedMigration is what the database records of one.
type appliedMigration struct {
	sum  string
	adds bool // servers that do not know it can go on, next to those that do
}

func appliedMigrations(ctx context.Context, conn *sql.Conn, d dialect) (map[int64]appliedMigration, error) {
	var n int
	if err := conn.QueryRowContext(ctx, d.tableExists()).Scan(&n); err != nil {
		return nil, err
	}
	applied := map[int64]appliedMigration{}
	if n == 0 {
		const create = "create table schema_migrations (version bigint primary key, name text not null, sum text not null, applied_at bigint not null)"
		_, err := conn.ExecContext(ctx, create)
		return applied, err
	}
	rows, err := conn.QueryContext(ctx, "select version, name, sum from schema_migrations")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var version int64
		var name, sum string
		if err := rows.Scan(&version, &name, &sum); err != nil {
			return nil, err
		}
		applied[version] = appliedMigration{sum, d.engine() == Postgres && strings.HasSuffix(name, addsMark)}
	}
	return applied, rows.Err()
}

// compatible refuses a schema that this binary does not know, but for what was only added to
// PostgreSQL: servers are replaced one after the other.
func (s Schema) compatible(all []Migration, applied map[int64]appliedMigration) error {
	known := make(map[int64]Migration, len(all))
	for _, m := range all {
		known[m.Version] = m
	}
	for version, have := range applied {
		m, ok := known[version]
		if !ok && have.adds {
			continue
		}
		if !ok {
			return thole.Errorf(thole.CodeUnsupported, "the database is newer than this binary: it has schema migration %04d", version).
				WithHint("run the thole version that last used this store, or a newer one")
		}
		if m.Sum != have.sum && !slices.Contains(s.Earlier, have.sum) {
			return thole.Errorf(thole.CodeUnsupported, "schema migration %04d_%s was applied in another form than this binary has", version, m.Name).
				WithHint("run the thole version that last used this store")
		}
	}
	return nil
}
