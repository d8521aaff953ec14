package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
)

// many is more than any list gives at once.
const many = 1003

// Sweeps and the daemon's end go by this list: an open session that it left out
// would lose its server.
func TestEveryOpenAttachmentIsListed(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		ctx := context.Background()
		db := open(t)
		now := time.UnixMilli(1_700_000_000_000).UTC()
		s := db.Attachments()
		first := &attachment.Attachment{
			ID: "a", User: "u", Home: "/h", Thread: "t", Kind: attachment.Owned, Address: "unix:///s", State: attachment.Live, Epoch: 1,
			Trust: attachment.StrictSafe, Wish: attachment.Wishes{Approval: attachment.Auto, Network: attachment.No, Write: attachment.Yes}, Created: now, Updated: now, Version: 1,
		}
		if err := s.InsertAttachment(ctx, first); err != nil {
			t.Fatal(err)
		}
		copyRows(t, db, "attachments", "attachment_id", "thread_id")
		list, err := s.Attachments(ctx, false)
		if err != nil || len(list) != many {
			t.Errorf("%d of %d, %v", len(list), many, err)
		}
	})
}

// copyRows makes many of the one row of a table, each with values of its own in the
// named columns.
func copyRows(t *testing.T, db *store.DB, table string, own ...string) {
	t.Helper()
	err := db.Update(context.Background(), "test.copy", func(tx *sqldb.Tx) error {
		rows, err := tx.Query("select * from " + table) //nolint:rowserrcheck // only its columns are of interest
		if err != nil {
			return err
		}
		names, err := rows.Columns()
		if err == nil {
			err = rows.Close() //nolint:sqlclosecheck // before the next statement
		}
		if err != nil {
			return err
		}
		for i := 1; i < many; i++ {
			values := make([]string, len(names))
			for j, name := range names {
				values[j] = name
				for _, o := range own {
					if o == name {
						values[j] = fmt.Sprintf("'%s-%d'", name, i)
					}
				}
			}
			if _, err := tx.Exec(fmt.Sprintf("insert into %s (%s) select %s from %s limit 1", table, strings.Join(names, ", "), strings.Join(values, ", "), table)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A turn is found in every fork that shares it, so that a user who may read one of
// them finds it.
func TestEveryForkHasTheTurn(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		ctx := context.Background()
		db := open(t)
		f := newFiles(t, db)
		f.turn("new")
		const forks = 40
		for range forks {
			_, err := f.Fork(ctx, thole.LocalActor, f.id, thread.Fork{})
			f.must(err)
		}
		turns, err := f.Turns(ctx, thole.LocalActor, f.id, thread.PageParams{})
		f.must(err)
		ids, err := db.Index().ThreadsOf(ctx, turns.Items[0].ID)
		if err != nil || len(ids) != forks+1 || ids[0] != f.id {
			t.Errorf("%d threads, %v", len(ids), err)
		}
	})
}

// One collection takes every deleted thread off its snapshot.
func TestEveryDeletedThreadLeavesItsSnapshot(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		ctx := context.Background()
		db := open(t)
		f := newFiles(t, db)
		f.turn("new")
		copyRows(t, db, "workspace_heads", "thread_id")
		_, err := db.Workspaces().Prune(ctx, time.Now().Add(-time.Hour), time.Now().Add(-time.Hour), 100)
		f.must(err)
		var left, at int
		f.must(db.View(ctx, func(tx *sqldb.Tx) error {
			if err := tx.QueryRow("select count(*) from workspace_snapshots where left_at > 0").Scan(&at); err != nil {
				return err
			}
			return tx.QueryRow("select count(*) from workspace_heads").Scan(&left)
		}))
		if left != 1 || at != 1 {
			t.Errorf("%d threads are at a snapshot, %d snapshots were left", left, at)
		}
	})
}
