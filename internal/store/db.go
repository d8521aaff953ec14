package store

import (
	"context"
	"embed"
	"sync/atomic"
	"time"

	"github.com/tholehq/thole/internal/sqldb"
)

// FileName is the SQLite store's name in a home.
const FileName = "thole.db"

//go:embed migrations/*.sql
var migrationFiles embed.FS

// earlierForms are the sums of migrations that were changed after stores had been
// made with them; a later migration makes all forms equal (0092 those of 0090).
var earlierForms = []string{
	"456279e3e650d8651b8e855442a6284e65f69f9c6c16f5230312f46a60fbda12",
	"9e37e37627ebd74854605e3a7bb0ea1e75c8e16b59d58de9f9d8756322dcd887",
}

// Schema is the store's tables.
func Schema() sqldb.Schema { return sqldb.Schema{Files: migrationFiles, Earlier: earlierForms} }

// DB is an open store. All methods are safe for concurrent use.
type DB struct {
	*sqldb.DB

	completions completions // of the turn queue
	standby     atomic.Pointer[standby]
}

// Open opens the store and brings its schema up to this binary's.
func Open(ctx context.Context, cfg sqldb.Config) (*DB, error) {
	cfg.Schema = Schema()
	db, err := sqldb.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &DB{DB: db}, nil
}

// Backup writes a consistent copy of the SQLite store at path; see sqldb.
func Backup(ctx context.Context, path, dest string) (*sqldb.Report, error) {
	return Schema().Backup(ctx, path, dest)
}

// Restore puts a backup in the place of the SQLite store at path; see sqldb.
func Restore(ctx context.Context, path, backup string, now time.Time) (kept string, err error) {
	return Schema().Restore(ctx, path, backup, now)
}

// Check reads the whole SQLite store at path; see sqldb.
func Check(ctx context.Context, path string) (*sqldb.Report, error) {
	return Schema().Check(ctx, path)
}
