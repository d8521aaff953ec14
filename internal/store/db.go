package store

import (
	"context"
	"crypto/rand"
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
func Schema() sqldb.Schema {
	return sqldb.Schema{Files: migrationFiles, Earlier: earlierForms, Revocable: map[string]string{
		"login_codes": "code_hash", "web_sessions": "session_hash", "api_tokens": "token_hash", "share_links": "token_hash", "account_links": "link_hash", "device_logins": "code_hash",
	}}
}

// DB is an open store. All methods are safe for concurrent use.
type DB struct {
	*sqldb.DB

	completions completions // of the turn queue
	standby     atomic.Pointer[standby]
	// holder names this opening of the store: what an earlier one left is nobody's.
	holder string
	// server is the id of the server that opened a store which others can reach; see ServeAs.
	server string
}

// ServeAs names the server that uses this opening of the store, before anything else does:
// what only its machine has is recorded under that name, and of it this server sees its own.
func (db *DB) ServeAs(server string) { db.server = server }

// shared reports whether other servers may use the store at the same time.
func (db *DB) shared() bool { return db.server != "" }

// Open opens the store and brings its schema up to this binary's.
func Open(ctx context.Context, cfg sqldb.Config) (*DB, error) {
	applied := cfg.Schema.Applied
	cfg.Schema = Schema()
	cfg.Schema.Applied = applied
	db, err := sqldb.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &DB{DB: db, holder: rand.Text()}, nil
}

// Backup writes a consistent copy of the SQLite store at path; see sqldb.
func Backup(ctx context.Context, path, dest string) (*sqldb.Report, error) {
	return Schema().Backup(ctx, path, dest)
}

// Restore puts a backup in the place of the SQLite store at path; see sqldb.
func Restore(ctx context.Context, path, backup string, now time.Time) (kept string, err error) {
	return Schema().Restore(ctx, path, backup, now)
}

// EndProofs removes logins, tokens and share links from a copy of the store; see sqldb.
func EndProofs(ctx context.Context, path string) (ended int, err error) {
	return Schema().EndProofs(ctx, path)
}

// Check reads the whole SQLite store at path; see sqldb.
func Check(ctx context.Context, path string) (*sqldb.Report, error) {
	return Schema().Check(ctx, path)
}

// CheckPostgres looks at the PostgreSQL store; see sqldb.
func CheckPostgres(ctx context.Context, dsn string) (*sqldb.Report, error) {
	return Schema().CheckPostgres(ctx, dsn)
}
