package sqldb

import (
	"context"
	"database/sql"
	"net/url"
	"os"
	"time"

	thole "github.com/tholehq/thole"
)

// SQLite is the name of that engine.
const SQLite = "sqlite"

// sqliteStore is one SQLite file: one writing connection, a few reading ones.
type sqliteStore struct {
	pool    *sql.DB
	owner   *os.File // holds the file's lock
	group   *group
	readers chan *session
	all     []*session
	clock   func() time.Time
}

func openSQLite(ctx context.Context, cfg Config) (_ *sqliteStore, err error) {
	if err := prepareFile(cfg.Path); err != nil {
		return nil, err
	}
	owner, err := lockFile(cfg.Path)
	if err != nil {
		return nil, err
	}
	s := &sqliteStore{owner: owner, clock: cfg.Now}
	defer func() {
		if err != nil {
			_ = s.close()
		}
	}()
	if cfg.VFS == "" {
		if err := refuseEmptied(cfg.Path, owner); err != nil {
			return nil, err
		}
	}
	if s.pool, err = sql.Open("sqlite", sqliteDSN(cfg.Path, cfg.VFS, "rwc")); err != nil {
		return nil, thole.Errorf(thole.CodeInternal, "open %s: %w", cfg.Path, err)
	}
	writer, err := s.connect(ctx)
	if err != nil {
		return nil, openError(cfg.Path, err)
	}
	if err := migrate(ctx, writer.conn, sqliteDialect{}, cfg.Schema, cfg.Now); err != nil {
		return nil, openError(cfg.Path, err)
	}
	if err := markUsed(owner); err != nil {
		return nil, openError(cfg.Path, err)
	}
	s.group = newGroup(writer, cfg.Hook, cfg.Now)
	n := cfg.Conns
	if n <= 0 {
		n = 4
	}
	readers := make(chan *session, n)
	for range n {
		r, err := s.connect(ctx)
		if err != nil {
			return nil, openError(cfg.Path, err)
		}
		if err := r.run("pragma query_only = 1"); err != nil {
			return nil, openError(cfg.Path, err)
		}
		readers <- r
	}
	s.readers = readers
	return s, nil
}

func (s *sqliteStore) connect(ctx context.Context) (*session, error) {
	conn, err := s.pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	se := newSession(conn)
	s.all = append(s.all, se)
	return se, nil
}

// sqliteDSN: FULL because NORMAL loses acknowledged commits on power loss; no
// double-quoted strings because a mistyped column must not become a text.
func sqliteDSN(path, vfs, mode string) string {
	q := url.Values{"mode": {mode}, "_dqs": {"0"}, "_pragma": {
		"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)",
	}}
	if vfs != "" {
		q.Set("vfs", vfs)
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

// sqliteFile is the DSN to look at a file without setting anything up.
func sqliteFile(path, mode string) string {
	q := url.Values{"mode": {mode}, "_pragma": {"busy_timeout(5000)"}}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

func openError(path string, err error) error {
	return thole.Errorf(thole.CodeOf(classify(err)), "open store %s: %w", path, classify(err))
}

func (s *sqliteStore) name() string { return SQLite }

func (s *sqliteStore) update(ctx context.Context, step string, fn func(*Tx) error) (*Tx, error) {
	return s.group.update(ctx, step, fn)
}

func (s *sqliteStore) view(ctx context.Context, fn func(*Tx) error) error {
	var r *session
	select {
	case <-ctx.Done():
		return ctx.Err()
	case r = <-s.readers:
		if r == nil {
			return errClosed()
		}
	}
	defer func() { s.readers <- r }()
	if err := r.run("begin"); err != nil {
		return classify(err)
	}
	defer func() { _ = r.run("rollback") }()
	tx := &Tx{ctx: ctx, q: r, readOnly: true, clock: func(*Tx) time.Time { return s.clock() }}
	return tx.outcome(fn(tx))
}

func (s *sqliteStore) close() error {
	if s.group != nil {
		s.group.close()
	}
	if s.readers != nil {
		for range cap(s.readers) {
			if r := <-s.readers; r == nil {
				return nil // closed before
			}
		}
		close(s.readers)
	}
	for _, se := range s.all {
		_ = se.close()
	}
	var err error
	if s.pool != nil {
		err = s.pool.Close()
	}
	return unlockFile(s.owner, err)
}

// writerQuerier ignores the caller's context inside a statement: interrupting
// one would undo the whole group. Tx checks the context between statements.
type writerQuerier struct{ s *session }

func (w writerQuerier) exec(_ context.Context, query string, args []any) (int64, error) {
	return w.s.exec(context.Background(), query, args)
}

func (w writerQuerier) query(_ context.Context, query string, args []any) (*sql.Rows, error) {
	return w.s.query(context.Background(), query, args)
}
