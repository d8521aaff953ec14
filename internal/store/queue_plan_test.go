package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
)

// A claim and a completion never read the whole table, whatever PostgreSQL knows
// about it.
func TestTheQueueIsReadByIndex(t *testing.T) {
	ctx := context.Background()
	db := storetest.Postgres(t, func(c *store.Config) { c.Conns = 1 }) // statistics are a connection's
	scans := func() (n int) {
		t.Helper()
		for _, text := range []string{
			`select count(*) from (select pg_stat_force_next_flush()) told`,
			`select seq_scan from pg_stat_user_tables where relname = 'turn_queue'`,
		} {
			if err := db.Update(ctx, "test.scans", func(tx *store.Tx) error { return tx.QueryRow(text).Scan(&n) }); err != nil {
				t.Skipf("PostgreSQL before 15 tells its statistics late: %v", err)
			}
		}
		return n
	}
	q := db.Queue()
	for i := range 60 {
		add(t, q, i, i, i%3, 0)
	}
	before := scans()
	for _, l := range claim(t, q, 60, time.Hour, queue.Limits{Total: 50, PerUser: 40}) {
		if err := q.Complete(ctx, l.Turn, l.Token); err != nil {
			t.Fatal(err)
		}
	}
	if n := scans() - before; n != 0 {
		t.Errorf("the whole table was read %d times", n)
	}
}
