package thread_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/uuid"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/crash"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/thread/threadtest"
)

// TestKilledWhileReverting: on PostgreSQL too a revert took place as a whole or not at all.
// TestKilledAtEveryStep has it on SQLite.
func TestKilledWhileReverting(t *testing.T) {
	const at = "THOLE_TEST_REVERT_DSN"
	if os.Getenv(at) == "" {
		t.Setenv(at, lab.PostgresLike(t, func(dsn string) error {
			db, err := store.Open(bg, sqldb.Config{DSN: dsn})
			if err != nil {
				return err
			}
			return db.Close()
		}))
	}
	open := func(hook sqldb.Hook) (*store.DB, *thread.Machine, error) {
		db, err := storetest.OpenAt(bg, sqldb.Config{DSN: os.Getenv(at), Hook: hook})
		if err != nil {
			return nil, nil, err
		}
		m, err := thread.New(thread.Config{Store: threadtest.Unfenced{Store: db.Threads()}})
		if err == nil {
			m.Attach(nobody{})
		}
		return db, m, err
	}
	// All children share the database; each has a thread of its own.
	of := func(dir string) thole.ThreadID {
		return thole.ThreadID(uuid.NewSHA1(uuid.NameSpaceURL, []byte(filepath.Base(dir))).String())
	}
	crash.Enumerate(t, func(w *crash.Work) error {
		db, m, err := open(func(p sqldb.Point, step string) {
			if step == "thread.revert" {
				w.Hook(p, step)
			}
		})
		if err != nil {
			return err
		}
		defer db.Close()
		id := of(w.Dir)
		if _, err := m.Create(bg, me, thread.Create{ID: id}); err != nil {
			return err
		}
		var first thole.TurnID
		for i := range 3 {
			turn, err := m.StartTurn(bg, me, thread.StartTurn{Thread: id, Input: thole.Text(fmt.Sprint("number ", i))})
			if err != nil {
				return err
			}
			ref := thread.TurnRef{Thread: id, Turn: turn.ID}
			if err := m.Apply(bg, ref, []event.Event{{ID: "n" + thole.EventID(turn.ID), Kind: event.ThreadUpdated, Data: event.Data{NativeID: "session"}},
				{ID: "e" + thole.EventID(turn.ID), Kind: event.TurnEnded, Data: event.Data{Outcome: thole.OutcomeCompleted}}}); err != nil {
				return err
			}
			if err := m.SetPhase(bg, ref, thole.PhaseSucceeded, ""); err != nil {
				return err
			}
			if i == 1 {
				first = turn.ID
			}
		}
		if _, err = m.Revert(bg, me, id, first); err == nil {
			w.Ack("reverted")
		}
		return err
	}, func(t *testing.T, dir string, acked []string, killed string) {
		db, m, err := open(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		id := of(dir)
		th, err := m.Get(bg, me, id)
		if err != nil {
			t.Fatal(err)
		}
		turns, err := m.Turns(bg, me, id, thread.PageParams{})
		if err != nil {
			t.Fatal(err)
		}
		items, err := m.Items(bg, me, id, "", all)
		if err != nil {
			t.Fatal(err)
		}
		log, err := m.Events(bg, me, id, 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		gone := slices.ContainsFunc(log, func(e event.Event) bool { return e.Kind == event.ThreadReverted })
		want := 3
		if gone {
			want = 1
		}
		if slices.Contains(acked, "reverted") && !gone || th.Retell != gone || (th.NativeID == "") != gone || len(turns.Items) != want || len(items.Items) != want {
			t.Errorf("killed %q: in the log %v, retold %v, session %q, %d turns, %d items", killed, gone, th.Retell, th.NativeID, len(turns.Items), len(items.Items))
		}
	})
}
