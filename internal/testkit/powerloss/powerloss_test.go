package powerloss_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/testkit/powerloss"
)

func rounds() int {
	if os.Getenv("THOLE_SOAK") != "" {
		return 40
	}
	return 1
}

// TestStoreKeepsAcknowledgedCommits: at every I/O operation, with any subset of
// the un-synced sectors lost, the store opens, is whole, and has every
// acknowledged commit, in order, none by half.
func TestStoreKeepsAcknowledgedCommits(t *testing.T) {
	commits := 3 // one more is the same again
	if os.Getenv("THOLE_SOAK") != "" {
		commits = 8
	}
	work := func(d *powerloss.Disk) error {
		db, err := store.Open(context.Background(), sqldb.Config{Path: filepath.Join(d.Dir, "s.db"), VFS: d.VFS, Conns: 1})
		if err != nil {
			return err
		}
		if os.Getenv("THOLE_SOAK") == "" {
			d.Start() // cuts inside the migrations take long and are left to the soak
		}
		for i := range commits {
			err := db.Update(context.Background(), "test.pair", func(tx *sqldb.Tx) error {
				for _, half := range []string{"a", "b"} {
					if _, err := tx.Exec("insert into apps (id, name, created_at) values ($1, $2, 0)", fmt.Sprintf("%03d%s", i, half),
						fmt.Sprintf("%0900d%s", i, half)); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
			d.Ack(fmt.Sprint(i))
		}
		return db.Close()
	}
	powerloss.Enumerate(t, rounds(), work, func(dir string, acked []string) error {
		ctx := context.Background()
		path := filepath.Join(dir, "s.db")
		if _, err := os.Stat(path); err == nil && len(acked) > 0 {
			if r, err := store.Check(ctx, path); err != nil || len(r.Problems) > 0 {
				return fmt.Errorf("check: %+v, %v", r, err)
			}
		}
		db, err := store.Open(ctx, sqldb.Config{Path: path, Conns: 1})
		if err != nil {
			return err
		}
		defer db.Close()
		return db.View(ctx, func(tx *sqldb.Tx) error {
			var n int
			var last *string
			if err := tx.QueryRow("select count(*), max(id) from apps where name <> 'default'").Scan(&n, &last); err != nil {
				return err
			}
			if n%2 != 0 || n > 0 && *last != fmt.Sprintf("%03db", n/2-1) {
				return fmt.Errorf("half a transaction: %d rows, last %v", n, last)
			}
			if n/2 < len(acked) {
				return fmt.Errorf("%d transactions acknowledged, %d found", len(acked), n/2)
			}
			return nil
		})
	})
}
