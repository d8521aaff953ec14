package store_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/workspace"
)

// files is a thread whose turns end with syncs.
type files struct {
	*thread.Machine
	t     *testing.T
	db    *store.DB
	id    thole.ThreadID
	where thole.ExecutorID
	head  workspace.SnapshotID
}

func (f *files) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// turn runs one. Its sync stores something new, nothing new, or fails.
func (f *files) turn(sync string) thole.TurnID {
	f.t.Helper()
	ctx := context.Background()
	turn, err := f.StartTurn(ctx, thole.LocalActor, thread.StartTurn{Thread: f.id, Input: thole.Text("go")})
	f.must(err)
	leases, err := f.db.Queue().Claim(ctx, queue.Claim{Owner: "x", Token: string(turn.ID), Max: 1, Lease: time.Hour})
	f.must(err)
	if len(leases) != 1 {
		f.t.Fatalf("claimed %d", len(leases))
	}
	ref := thread.TurnRef{Thread: f.id, Turn: turn.ID, Token: leases[0].Token, Executor: f.where}
	if sync == "never placed" {
		ref.Executor = ""
	}
	f.must(f.SetPhase(ctx, ref, thole.PhaseClaimed, ""))
	end := event.Event{ID: thole.EventID(turn.ID), Kind: event.TurnEnded, Turn: turn.ID, Time: time.Now(), Data: provider.Ended{Outcome: thole.OutcomeCompleted}.Data()}
	f.must(f.Apply(ctx, ref, []event.Event{end}))
	if ref.Executor != "" {
		f.sync(sync, turn.ID, ref.Token)
	}
	f.must(f.SetPhase(ctx, ref, thole.PhaseSucceeded, ""))
	f.must(f.db.Queue().Complete(ctx, turn.ID, ref.Token))
	return turn.ID
}

func (f *files) sync(how string, lease thole.TurnID, token string) {
	f.t.Helper()
	ctx := context.Background()
	_, err := f.db.Executors().BeginSync(ctx, f.where, how)
	f.must(err)
	var failure error
	switch how {
	case "new":
		next := thole.NewID[workspace.SnapshotID](time.Now())
		f.must(f.db.Workspaces().Commit(ctx, workspace.Commit{
			Snapshot: workspace.Snapshot{ID: next, Thread: f.id, Turn: lease, Executor: f.where, Tree: objects.SumOf([]byte(next))}, Base: f.head, Lease: lease, Token: token,
		}))
		f.head = next
	case "failed":
		failure = fmt.Errorf("no space")
	}
	_, err = f.db.Executors().EndSync(ctx, f.where, string(f.head), failure)
	f.must(err)
}

// begins forks the thread and returns the snapshot the fork begins with.
func (f *files) begins(upTo thole.TurnID) (workspace.SnapshotID, error) {
	f.t.Helper()
	fork, err := f.Fork(context.Background(), thole.LocalActor, f.id, thread.Fork{UpTo: upTo})
	if err != nil {
		return "", err
	}
	s, _, err := f.db.Workspaces().Head(context.Background(), fork.ID)
	return s.ID, err
}

// A turn whose files are not saved says why, until a later sync saves them; what was
// kept of earlier turns stays saved.
func TestATurnSaysThatItsFilesAreNotSaved(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		f := newFiles(t, open(t))
		check := func(when string, want map[thole.TurnID]string) {
			t.Helper()
			for id, why := range want {
				if got, err := f.Turn(context.Background(), thole.LocalActor, f.id, id); err != nil || got.Unsaved != why {
					t.Errorf("%s: turn %d says %q, %v, and not %q", when, got.Number, got.Unsaved, err, why)
				}
			}
		}
		saved, nowhere, first, second := f.turn("new"), f.turn("never placed"), f.turn("failed"), f.turn("failed")
		check("after two failures", map[thole.TurnID]string{saved: "", nowhere: "", first: "no space", second: "no space"})
		f.sync("new", "", "")
		check("after a catch-up", map[thole.TurnID]string{saved: "", nowhere: "", first: "", second: ""})
	})
}

// A fork begins with the files its turn ended with, whatever came later, for as
// long as they are kept; after that it is refused.
func TestAForkBeginsWithTheFilesOfItsTurn(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		ctx := context.Background()
		db := open(t)
		f := newFiles(t, db)

		early := f.turn("never placed")
		first := f.turn("new")
		one := f.head
		same := f.turn("unchanged")
		lost := f.turn("failed")
		last := f.turn("new")
		f.sync("new", "", "") // a catch-up belongs to the turn before it
		f.turn("never placed")
		for name, tc := range map[string]struct {
			turn thole.TurnID
			want workspace.SnapshotID
			code thole.Code
		}{
			"before the first files": {early, "", thole.CodeNotFound},
			"an older turn":          {first, one, ""},
			"one without a change":   {same, one, ""},
			"one whose sync failed":  {lost, "", thole.CodeGone},
			"the newest with files":  {last, f.head, ""},
			"none named":             {"", f.head, ""},
		} {
			got, err := f.begins(tc.turn)
			if got != tc.want || err != nil && thole.CodeOf(err) != tc.code || err == nil && tc.code != "" {
				t.Errorf("%s: %q, %v; want %q %s", name, got, err, tc.want, tc.code)
			}
		}
		// A fork of a fork can go back as far as its parent could.
		fork, err := f.Fork(ctx, thole.LocalActor, f.id, thread.Fork{UpTo: last})
		f.must(err)
		back, err := f.Fork(ctx, thole.LocalActor, fork.ID, thread.Fork{UpTo: first})
		f.must(err)
		if s, _, err := db.Workspaces().Head(ctx, back.ID); err != nil || s.ID != one {
			t.Errorf("a fork of a fork begins with %q, %v", s.ID, err)
		}

		f.turn("new")
		prune := func(turns time.Time) {
			t.Helper()
			_, err := db.Workspaces().Prune(ctx, time.Now().Add(time.Hour), turns, 100)
			f.must(err)
		}
		prune(time.Now().Add(-time.Hour))
		if got, err := f.begins(first); got != one {
			t.Errorf("within its time: %q, %v", got, err)
		}
		prune(time.Now().Add(time.Hour))
		if _, err := f.begins(first); thole.CodeOf(err) != thole.CodeGone || thole.HintOf(err) == "" {
			t.Errorf("after its time: %v", err)
		}
	})
}

// A fork at a turn whose files are being saved waits for them.
func TestAForkWaitsForTheFilesOfItsTurn(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		ctx := context.Background()
		f := newFiles(t, open(t))
		f.turn("new")
		turn, err := f.StartTurn(ctx, thole.LocalActor, thread.StartTurn{Thread: f.id, Input: thole.Text("go")})
		f.must(err)
		leases, err := f.db.Queue().Claim(ctx, queue.Claim{Owner: "x", Token: string(turn.ID), Max: 1, Lease: time.Hour})
		f.must(err)
		ref := thread.TurnRef{Thread: f.id, Turn: turn.ID, Token: leases[0].Token, Executor: f.where}
		f.must(f.SetPhase(ctx, ref, thole.PhaseClaimed, ""))
		f.must(f.Apply(ctx, ref, []event.Event{{ID: thole.EventID(turn.ID), Kind: event.TurnEnded, Turn: turn.ID, Time: time.Now(), Data: provider.Ended{Outcome: thole.OutcomeCompleted}.Data()}}))

		impatient, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if _, err := f.Fork(impatient, thole.LocalActor, f.id, thread.Fork{}); err == nil {
			t.Error("it was forked before its files were saved")
		}
		type made struct {
			head workspace.SnapshotID
			err  error
		}
		forked := make(chan made, 1)
		go func() {
			head, err := f.begins("")
			forked <- made{head, err}
		}()
		f.sync("new", turn.ID, ref.Token)
		f.must(f.SetPhase(ctx, ref, thole.PhaseSucceeded, ""))
		if got := <-forked; got.err != nil || got.head != f.head {
			t.Errorf("the fork begins with %q, %v; want %q", got.head, got.err, f.head)
		}
	})
}

// A deleted thread's snapshot goes, but not while its executor is there, nor what
// a fork or a running restore needs.
func TestSnapshotsOfDeletedThreadsGo(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		ctx := context.Background()
		db := open(t)
		f := newFiles(t, db)
		f.turn("new")
		fork, err := f.Fork(ctx, thole.LocalActor, f.id, thread.Fork{})
		f.must(err)
		shared := f.head
		f.turn("new")
		own := f.head
		f.must(db.Workspaces().Pin(ctx, "restore", own, time.Now().Add(time.Hour)))
		f.must(f.Delete(ctx, thole.LocalActor, f.id))
		// left expects that a collection long after leaves these.
		left := func(why string, grace time.Duration, want ...workspace.SnapshotID) {
			t.Helper()
			_, err := db.Workspaces().Prune(ctx, time.Now().Add(-grace), time.Now().Add(-time.Hour), 100)
			f.must(err)
			for _, id := range []workspace.SnapshotID{shared, own} {
				if _, _, err := db.Workspaces().Snapshot(ctx, id); (err == nil) != slices.Contains(want, id) {
					t.Errorf("%s: snapshot %s of %s and %s: %v", why, id, shared, own, err)
				}
			}
		}
		const over = -time.Hour // the grace period is over for all
		f.must(db.Workspaces().Unpin(ctx, "restore"))
		left("its executor is there", over, shared, own)
		_, err = db.Executors().MarkMissing(ctx, f.where)
		f.must(err)
		f.must(db.Workspaces().Pin(ctx, "restore", own, time.Now().Add(time.Hour)))
		left("a restore runs", over, shared, own)
		if _, _, err := db.Workspaces().Head(ctx, f.id); thole.CodeOf(err) != thole.CodeNotFound {
			t.Errorf("the deleted thread is at a snapshot: %v", err)
		}
		f.must(db.Workspaces().Unpin(ctx, "restore"))
		left("within the grace period", time.Hour, shared, own)
		left("a fork is at the other", over, shared)
		f.must(f.Delete(ctx, thole.LocalActor, fork.ID))
		left("the fork is deleted too", over)
	})
}

// newFiles makes a thread with an executor.
func newFiles(t *testing.T, db *store.DB) *files {
	t.Helper()
	ctx := context.Background()
	f := &files{Machine: newMachine(t, db), t: t, db: db}
	f.id = newThread(t, f.Machine)
	row, err := db.Executors().Ensure(ctx, executor.Row{ID: thole.NewID[thole.ExecutorID](time.Now()), Thread: f.id, Scope: executor.ScopeThread, Driver: "d"})
	f.must(err)
	f.where = row.ID
	_, err = db.Executors().MarkRunning(ctx, f.where)
	f.must(err)
	_, err = db.Executors().MarkRestored(ctx, f.where)
	f.must(err)
	return f
}
