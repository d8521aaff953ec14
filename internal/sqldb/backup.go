package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	thole "github.com/tholehq/thole"
)

// Report is what Check found.
type Report struct {
	Path     string   `json:"path"`
	Schema   int64    `json:"schema"` // the highest migration applied
	Bytes    int64    `json:"bytes"`
	Problems []string `json:"problems"`
}

// Backup writes a consistent copy of the SQLite store at path to dest, which
// must not exist, while its owner may go on writing. The copy is compact, mode
// 0600, checked and durable when Backup returns.
func (s Schema) Backup(ctx context.Context, path, dest string) (*Report, error) {
	if err := mustExist(path); err != nil {
		return nil, err
	}
	if _, err := os.Lstat(dest); err == nil {
		return nil, thole.Errorf(thole.CodeConflict, "back up: %s already exists", dest).WithHint("name a file that does not exist yet")
	}
	tmp, err := reserve(dest)
	if err != nil {
		return nil, err
	}
	defer removeAll(tmp)
	err = withReader(ctx, path, func(conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, "vacuum into $1", tmp)
		return err
	})
	if err != nil {
		return nil, thole.Errorf(thole.CodeOf(classify(err)), "back up %s: %w", path, classify(err))
	}
	r, err := s.Check(ctx, tmp)
	if err != nil {
		return nil, err
	}
	if len(r.Problems) > 0 {
		return nil, damaged(path, r)
	}
	r.Path = dest
	// Link, not rename: a file that appeared meanwhile is not overwritten.
	if err := errors.Join(syncFile(tmp), os.Link(tmp, dest), syncDir(filepath.Dir(dest))); err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "back up to %s: %w", dest, err)
	}
	return r, nil
}

// Restore puts a backup in the place of the SQLite store at path. It refuses
// while a process owns the store, and a backup that is damaged or newer than this
// binary. What was there before is kept next to it; kept is its name, "" when
// there was nothing. Killed at any point it leaves the old store or the new one.
func (s Schema) Restore(ctx context.Context, path, backup string, now time.Time) (kept string, err error) {
	if err := mustExist(backup); err != nil {
		return "", err
	}
	r, err := s.Check(ctx, backup)
	if err != nil {
		return "", err
	}
	if len(r.Problems) > 0 {
		return "", damaged(backup, r)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fileError("make directory", filepath.Dir(path), err)
	}
	owner, err := lockFile(path)
	if err != nil {
		return "", err
	}
	defer func() { err = unlockFile(owner, err) }()

	tmp, err := reserve(path)
	if err != nil {
		return "", err
	}
	defer removeAll(tmp)
	if err := copyFile(backup, tmp); err != nil {
		return "", thole.Errorf(thole.CodeUnavailable, "restore %s: %w", backup, err)
	}
	if kept, err = setAside(ctx, path, now); err != nil {
		return "", err
	}
	if _, err := s.forgetRevoked(ctx, tmp, kept); err != nil {
		return "", thole.Errorf(thole.CodeOf(classify(err)), "restore %s: end what was revoked since: %w", backup, classify(err))
	}
	if err := errors.Join(os.Rename(tmp, path), syncDir(filepath.Dir(path))); err != nil {
		return "", thole.Errorf(thole.CodeUnavailable, "restore %s: %w", path, err)
	}
	return kept, nil
}

// setAside gives the present store a second name and rids it of its log, which
// would otherwise be taken for the new file's. A log that cannot be folded in
// belongs to a damaged store and is kept next to the copy.
func setAside(ctx context.Context, path string, now time.Time) (kept string, err error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	kept = fmt.Sprintf("%s.before-%s", path, now.UTC().Format("20060102T150405.000"))
	var busy int
	_ = withWriter(ctx, path, func(conn *sql.Conn) error {
		var log, folded int
		return conn.QueryRowContext(ctx, "pragma wal_checkpoint(truncate)").Scan(&busy, &log, &folded)
	})
	if busy != 0 {
		return "", thole.Errorf(thole.CodeBusy, "restore: another process is reading the present store").WithHint("try again when it is done")
	}
	if err := os.Link(path, kept); err != nil {
		return "", thole.Errorf(thole.CodeUnavailable, "restore: keep the present store: %w", err)
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Rename(path+suffix, kept+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", thole.Errorf(thole.CodeUnavailable, "restore: set the log aside: %w", err)
		}
	}
	return kept, syncDir(filepath.Dir(path))
}

// Check reads the whole SQLite store at path and reports what is wrong with it.
// It changes nothing and works while an owner runs. An error means that it
// could not look, or that the store is newer than this binary.
func (s Schema) Check(ctx context.Context, path string) (*Report, error) {
	if err := mustExist(path); err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fileError("look at", path, err)
	}
	r := &Report{Path: path, Bytes: info.Size(), Problems: []string{}}
	err = withReader(ctx, path, func(conn *sql.Conn) error { return r.inspect(ctx, conn, s) })
	if code := thole.CodeOf(err); err != nil && code != thole.CodeUnsupported {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		r.Problems = append(r.Problems, classify(err).Error())
		return r, nil
	}
	return r, err
}

func firstColumn(ctx context.Context, conn *sql.Conn, query string) (out []string, err error) {
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}

func (r *Report) inspect(ctx context.Context, conn *sql.Conn, schema Schema) error {
	for _, query := range []string{
		"select integrity_check from pragma_integrity_check where integrity_check <> 'ok'",
		`select 'row ' || rowid || ' of ' || "table" || ' names a missing row of ' || parent from pragma_foreign_key_check`,
	} {
		problems, err := firstColumn(ctx, conn, query)
		if err != nil {
			return err
		}
		r.Problems = append(r.Problems, problems...)
	}
	var tables int
	if err := conn.QueryRowContext(ctx, sqliteDialect{}.tableExists()).Scan(&tables); err != nil {
		return err
	}
	if tables == 0 {
		r.Problems = append(r.Problems, "it has no schema_migrations table, so it is not a store")
		return nil
	}
	applied, err := appliedMigrations(ctx, conn, sqliteDialect{})
	if err != nil {
		return err
	}
	for version := range applied {
		r.Schema = max(r.Schema, version)
	}
	all, err := schema.Migrations()
	if err != nil {
		return err
	}
	return schema.compatible(all, applied)
}

func damaged(path string, r *Report) error {
	return thole.Errorf(thole.CodeUnavailable, "%s is damaged: %s", path, r.Problems[0]).WithHint("use another backup")
}

func mustExist(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return thole.Errorf(thole.CodeNotFound, "there is no store at %s", path)
	case err != nil:
		return fileError("look at", path, err)
	case !info.Mode().IsRegular():
		return thole.Errorf(thole.CodeInvalid, "%s is not a file", path)
	}
	return nil
}

func withReader(ctx context.Context, path string, fn func(*sql.Conn) error) error {
	return withConn(ctx, sqliteFile(path, "ro"), fn)
}

func withWriter(ctx context.Context, path string, fn func(*sql.Conn) error) error {
	return withConn(ctx, sqliteFile(path, "rw"), fn)
}

func withConn(ctx context.Context, dsn string, fn func(*sql.Conn) error) error {
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return fn(conn)
}

// reserve makes an empty 0600 file next to path, to be filled and then moved
// into its place.
func reserve(path string) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".tmp-*")
	if err != nil {
		return "", fileError("create a file next to", path, err)
	}
	return f.Name(), f.Close()
}

func removeAll(path string) {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		_ = os.Remove(path + suffix)
	}
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Peek returns the first column of a query on the SQLite store at path, whatever its
// schema's age: nothing where it has no such table. It changes nothing and works while
// an owner runs.
func Peek(ctx context.Context, path, table, query string) (out []string, err error) {
	if err := mustExist(path); err != nil {
		return nil, err
	}
	err = withReader(ctx, path, func(conn *sql.Conn) error {
		var tables int
		if err := conn.QueryRowContext(ctx, "select count(*) from sqlite_master where type = 'table' and name = $1", table).Scan(&tables); err != nil || tables == 0 {
			return err
		}
		out, err = firstColumn(ctx, conn, query)
		return err
	})
	if err != nil {
		return nil, thole.Errorf(thole.CodeOf(classify(err)), "read %s: %w", path, classify(err))
	}
	return out, nil
}
