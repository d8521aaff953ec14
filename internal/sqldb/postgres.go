package sqldb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/backoff"
)

// Postgres is the name of that engine.
const Postgres = "postgres"

const maxRetries = 8

// connectTimeout bounds a try to reach the server where the DSN has no connect_timeout.
const connectTimeout = 10 * time.Second

// oldestServer is the oldest major version of PostgreSQL that is still maintained.
const oldestServer = 14

// postgres is a pool of connections to one database that other processes share.
type postgres struct {
	cfg  *pgx.ConnConfig
	pool *sql.DB
	line *sql.DB // for batches
	hook Hook
	log  *slog.Logger
}

func openPostgres(ctx context.Context, cfg Config) (*postgres, error) {
	pc, err := pgx.ParseConfig(cfg.DSN)
	if err != nil {
		return nil, badDSN()
	}
	if pc.ConnectTimeout == 0 {
		pc.ConnectTimeout = connectTimeout
	}
	pg := &postgres{cfg: pc, pool: stdlib.OpenDB(*pc), line: stdlib.OpenDB(*byIndex(pc)), hook: cfg.Hook, log: cfg.Log}
	n := cfg.Conns
	if n <= 0 {
		n = 16
	}
	few := max(1, n/4)
	for pool, n := range map[*sql.DB]int{pg.line: few, pg.pool: max(1, n-few)} {
		pool.SetMaxOpenConns(n)
		pool.SetMaxIdleConns(n)
	}
	conn, err := pg.pool.Conn(ctx)
	if err == nil {
		if err = usableServer(ctx, conn); err == nil {
			err = migrate(ctx, conn, postgresDialect{}, cfg.Schema, cfg.Now)
		}
		err = errors.Join(err, conn.Close())
	}
	if err != nil {
		_ = pg.close()
		return nil, thole.Errorf(thole.CodeOf(classify(err)), "open PostgreSQL store: %w", classify(err))
	}
	return pg, nil
}

// usableServer refuses a server that is too old, and a database that cannot hold every
// text, before anything is made there.
func usableServer(ctx context.Context, conn *sql.Conn) error {
	var version int
	var encoding string
	err := conn.QueryRowContext(ctx, "select current_setting('server_version_num')::int, current_setting('server_encoding')").Scan(&version, &encoding)
	if err != nil {
		return err
	}
	return supported(version, encoding)
}

func supported(version int, encoding string) error {
	if version < oldestServer*10000 {
		return thole.Errorf(thole.CodeUnsupported, "PostgreSQL %d is too old", version/10000).WithHint("use PostgreSQL %d or newer", oldestServer)
	}
	if encoding != "UTF8" {
		return thole.Errorf(thole.CodeUnsupported, "the database has the encoding %s", encoding).
			WithHint("make one with UTF8: create database NAME encoding 'UTF8' template template0")
	}
	return nil
}

func (pg *postgres) name() string { return Postgres }
func (pg *postgres) close() error { return errors.Join(pg.line.Close(), pg.pool.Close()) }

// byIndex keeps a connection to one plan for each statement, of look-ups by index.
// PostgreSQL's statistics are of another time: a queue that was empty a second ago
// has thousands of rows, and a plan made for the one reads all rows of the other. A
// bitmap scan reads every dead index entry, again and again, that an index scan
// passes over once it has met it.
func byIndex(cfg *pgx.ConnConfig) *pgx.ConnConfig {
	cfg = cfg.Copy()
	for _, way := range []string{"seqscan", "bitmapscan", "sort", "hashjoin", "mergejoin", "hashagg"} {
		cfg.RuntimeParams["enable_"+way] = "off"
	}
	cfg.RuntimeParams["plan_cache_mode"], cfg.RuntimeParams["jit"] = "force_generic_plan", "off"
	return cfg
}

func (pg *postgres) update(ctx context.Context, step string, fn func(*Tx) error) (*Tx, error) {
	var tx *Tx
	err := pg.again(ctx, func() (err error) {
		tx, err = pg.once(ctx, step, fn)
		return err
	})
	return tx, err
}

// again repeats what lost against another transaction, apart from those who lost
// with it.
func (pg *postgres) again(ctx context.Context, do func() error) (err error) {
	for range (backoff.Policy{Min: time.Millisecond, Max: time.Second, Jitter: backoff.Full}).Tries(ctx, 1+maxRetries) {
		if err = do(); err == nil || OutcomeUnknown(err) || !serialization(err) {
			return err
		}
	}
	return cmp.Or(ctx.Err(), err)
}

func (pg *postgres) once(ctx context.Context, step string, fn func(*Tx) error) (_ *Tx, err error) {
	// The transaction outlives ctx: a context that dies during the commit would
	// cut the connection and leave the outcome unknown.
	sqlTx, err := pg.begin(ctx, nil)
	if err != nil {
		return nil, err
	}
	committed := false
	defer func() {
		if !committed {
			_ = sqlTx.Rollback()
		}
	}()
	tx := &Tx{ctx: ctx, q: pgQuerier{sqlTx}, clock: databaseTime}
	if err := tx.outcome(fn(tx)); err != nil {
		return nil, err
	}
	if len(tx.notes) > 0 {
		if _, err := tx.Exec("select pg_notify($1, $2)", busChannel, encodeNotes(tx.notes)); err != nil {
			return nil, err
		}
	}
	if pg.hook != nil {
		pg.hook(BeforeCommit, step)
	}
	committed = true
	if err := sqlTx.Commit(); err != nil {
		var answered *pgconn.PgError
		if errors.As(err, &answered) {
			return nil, classify(err)
		}
		return nil, &unknownOutcome{classify(err)}
	}
	if pg.hook != nil {
		pg.hook(AfterCommit, step)
	}
	return tx, nil
}

func (pg *postgres) view(ctx context.Context, fn func(*Tx) error) error {
	sqlTx, err := pg.begin(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = sqlTx.Rollback() }()
	tx := &Tx{ctx: ctx, q: pgQuerier{sqlTx}, readOnly: true, clock: databaseTime}
	return tx.outcome(fn(tx))
}

func (pg *postgres) begin(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	tx, err := pg.pool.BeginTx(context.WithoutCancel(ctx), opts)
	return tx, classify(err)
}

func databaseTime(tx *Tx) time.Time {
	var ms int64
	if err := tx.QueryRow("select " + databaseMillis).Scan(&ms); err != nil {
		_ = tx.fail(err)
	}
	return time.UnixMilli(ms)
}

type pgQuerier struct{ tx *sql.Tx }

func (q pgQuerier) exec(ctx context.Context, query string, args []any) (int64, error) {
	res, err := q.tx.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (q pgQuerier) query(ctx context.Context, query string, args []any) (*sql.Rows, error) {
	return q.tx.QueryContext(ctx, query, args...)
}
