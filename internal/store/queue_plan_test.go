package store_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
)

// Claims and completions look up what they need, also with plans that PostgreSQL
// made when it knew the table to be empty.
func TestTheQueueIsReadByIndex(t *testing.T) {
	ctx := context.Background()
	db := storetest.Postgres(t, func(c *sqldb.Config) { c.Conns = 1 }) // plans and statistics are a connection's
	read := func() (n int) {
		t.Helper()
		if err := store.OnLine(ctx, db, `select pg_stat_force_next_flush()`); err != nil {
			if strings.Contains(err.Error(), "pg_stat_force_next_flush") && os.Getenv("CI") != "true" {
				t.Skip("PostgreSQL before 15 tells its statistics late")
			}
			t.Fatal(err)
		}
		if err := db.View(ctx, func(tx *sqldb.Tx) error {
			return tx.QueryRow(`select seq_tup_read + idx_tup_fetch from pg_stat_user_tables where relname = 'turn_queue'`).Scan(&n)
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if err := db.Update(ctx, "test.analyze", func(tx *sqldb.Tx) error {
		_, err := tx.Exec("analyze turn_queue")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	q, limits := db.Queue(), queue.Limits{Total: 50, PerUser: 40}
	if got := claim(t, q, 2, time.Hour, limits); len(got) != 0 {
		t.Fatalf("claimed %v", got)
	}
	if err := q.Complete(ctx, "nobody's", "none"); !errors.Is(err, queue.ErrLeaseLost) {
		t.Fatal(err)
	}
	for i := range 300 {
		add(t, q, i, i, i%3, 0)
	}
	before := read()
	for _, l := range claim(t, q, 2, time.Hour, limits) {
		if err := q.Complete(ctx, l.Turn, l.Token); err != nil {
			t.Fatal(err)
		}
	}
	if n := read() - before; n > 100 {
		t.Errorf("two of 300 turns took %d reads of rows", n)
	}
}
