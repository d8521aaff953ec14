package store_test

import (
	"context"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
)

// TestFilesAreLinks: an edit that an agent reports is the agent's and never its user's, files
// that were saved are the program's with what they were before, and who deletes a thread is
// named.
func TestFilesAreLinks(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		ctx := context.Background()
		f := newFiles(t, open(t))
		latest := func(action string) (out []audit.Link) {
			t.Helper()
			out, err := f.db.Audit().Latest(ctx, audit.Filter{Action: action, Limit: 100})
			f.must(err)
			return out
		}
		f.turn("new")
		f.turn("unchanged")
		first := f.head
		f.turn("new")
		saved := latest("file.save")
		if len(saved) != 2 || saved[1].Before != "" || !strings.Contains(saved[0].Before, string(first)) || !strings.Contains(saved[0].After, string(f.head)) {
			t.Fatalf("saved: %+v", saved)
		}
		for _, l := range saved {
			if l.Actor != "system" || l.OnBehalf != thole.LocalUser || l.Owner != thole.LocalUser || l.ID != string(f.id) {
				t.Errorf("%+v", l)
			}
		}

		turn, err := f.StartTurn(ctx, thole.LocalActor, thread.StartTurn{Thread: f.id, Input: thole.Text("go")})
		f.must(err)
		leases, err := f.db.Queue().Claim(ctx, queue.Claim{Owner: "x", Token: string(turn.ID), Max: 1, Lease: time.Hour})
		f.must(err)
		ref := thread.TurnRef{Thread: f.id, Turn: turn.ID, Token: leases[0].Token, Executor: f.where}
		f.must(f.SetPhase(ctx, ref, thole.PhaseClaimed, ""))
		edit := func(id string, state event.ItemState) event.Event {
			it := event.Item{ID: thole.ItemID(id), Kind: event.ItemFileChange, State: state, Changes: []event.FileChange{{Path: "src/a.go", Kind: "update", Diff: "@@ secret"}}}
			return event.Event{ID: thole.EventID(id), Kind: event.ItemCompleted, Turn: turn.ID, Time: time.Now(), Data: event.Data{Item: &it}}
		}
		f.must(f.Apply(ctx, ref, []event.Event{edit("made", event.StateCompleted), edit("refused", event.StateDeclined)}))
		f.must(f.Apply(ctx, ref, []event.Event{edit("made", event.StateCompleted)})) // reported again after a crash
		edits := latest("file.edit")
		if len(edits) != 1 || edits[0].Actor != "agent" || edits[0].OnBehalf != thole.LocalUser || !strings.Contains(edits[0].After, "src/a.go") || strings.Contains(edits[0].After, "secret") {
			t.Fatalf("edits: %+v", edits)
		}

		f.must(f.Delete(ctx, thole.LocalActor, f.id))
		gone := latest("thread.delete")
		if len(gone) != 1 || gone[0].ID != string(f.id) || gone[0].Owner != thole.LocalUser {
			t.Fatalf("deleted: %+v", gone)
		}
	})
}
