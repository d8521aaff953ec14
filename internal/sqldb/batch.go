package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	thole "github.com/tholehq/thole"
)

// Statement is one step of a batch. {now} in its text is the store's time in
// milliseconds.
type Statement struct {
	Text string
	Args []any
	// Row is called for each row that comes back; without it rows are dropped.
	Row func(scan func(dest ...any) error) error
	// Postgres: SQLite, which has one writer, does without it.
	Postgres bool
}

// Batch runs statements whose text does not depend on what those before them
// returned, in one durable transaction, and wakes the topic. PostgreSQL gets them
// all in one round trip; there each statement sees what was committed when it
// began, so what is decided under a lock is right if the lock stands before it.
// list makes new statements for each try.
func (db *DB) Batch(ctx context.Context, step, topic string, list func() []Statement) error {
	if pg, ok := db.eng.(*postgres); ok {
		began := time.Now()
		err := pg.again(ctx, func() error { return pg.pipeline(ctx, step, topic, list()) })
		if err == nil {
			db.cfg.Took(time.Since(began))
		}
		return err
	}
	return db.Update(ctx, step, func(tx *Tx) error {
		for _, s := range list() {
			if err := tx.Run(s); err != nil {
				return err
			}
		}
		if topic != "" {
			tx.Notify(topic, "")
		}
		return nil
	})
}

// Run executes a batch's statement as part of a larger transaction.
func (tx *Tx) Run(s Statement) error {
	if _, shared := tx.q.(pgQuerier); s.Postgres && !shared {
		return nil
	}
	if strings.Contains(s.Text, "{now}") {
		s.Args = append(s.Args[:len(s.Args):len(s.Args)], thole.Millis(tx.Now()))
		s.Text = strings.ReplaceAll(s.Text, "{now}", "$"+strconv.Itoa(len(s.Args)))
	}
	if s.Row == nil {
		_, err := tx.Exec(s.Text, s.Args...)
		return err
	}
	_, err := All(tx, func(rows *sql.Rows) (struct{}, error) { return struct{}{}, s.Row(rows.Scan) }, s.Text, s.Args...)
	return err
}

// databaseMillis is {now} on PostgreSQL. It is read while the statement runs, so
// after every lock that was taken before it.
const databaseMillis = "(date_part('epoch', clock_timestamp()) * 1000)::bigint"

// pipeline sends a batch in one go. PostgreSQL makes one transaction of what
// comes before one Sync; only a hook, which must see it open, asks for begin and
// commit of their own.
func (pg *postgres) pipeline(ctx context.Context, step, topic string, list []Statement) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// As in an Update: a context that dies halfway would leave the outcome unknown.
	ctx = context.WithoutCancel(ctx)
	conn, err := pg.line.Conn(ctx)
	if err != nil {
		return classify(err)
	}
	defer conn.Close()
	return conn.Raw(func(driver any) error {
		c := driver.(*stdlib.Conn).Conn()
		if pg.hook == nil {
			return sent(send(ctx, c, topic, list))
		}
		if _, err := c.Exec(ctx, "begin"); err != nil {
			return classify(err)
		}
		if err := send(ctx, c, topic, list); err != nil {
			_, _ = c.Exec(ctx, "rollback")
			return classify(err)
		}
		pg.hook(BeforeCommit, step)
		if _, err := c.Exec(ctx, "commit"); err != nil {
			return sent(err)
		}
		pg.hook(AfterCommit, step)
		return nil
	})
}

// sent judges the error of something that may have been committed.
func sent(err error) error {
	var answered *pgconn.PgError
	if err == nil || errors.As(err, &answered) || pgconn.SafeToRetry(err) {
		return classify(err)
	}
	return &unknownOutcome{classify(err)}
}

func send(ctx context.Context, c *pgx.Conn, topic string, list []Statement) error {
	b := &pgx.Batch{}
	for _, s := range list {
		q := b.Queue(strings.ReplaceAll(s.Text, "{now}", databaseMillis), s.Args...)
		if s.Row == nil {
			continue
		}
		q.Query(func(rows pgx.Rows) error {
			for rows.Next() {
				if err := s.Row(rows.Scan); err != nil {
					return err
				}
			}
			return rows.Err()
		})
	}
	if topic != "" {
		b.Queue("select pg_notify($1, $2)", busChannel, encodeNotes([]note{{Topic: topic}}))
	}
	return c.SendBatch(ctx, b).Close()
}
