package dispatch_test

import (
	"context"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
)

// turnCommand starts a command turn on an idle thread and returns its id.
func (r *rig) turnCommand(id thole.ThreadID, input []thole.Input) thole.TurnID {
	r.t.Helper()
	if _, err := r.Enqueue(context.Background(), me, thread.Enqueue{Thread: id, Input: input, Command: true, Start: true}); err != nil {
		r.t.Fatal(err)
	}
	th, err := r.Get(context.Background(), me, id)
	if err != nil || th.Open == "" {
		r.t.Fatalf("no turn runs: %v", err)
	}
	return th.Open
}

// A user's own command runs in the executor's workspace, and the agent hears of
// it with the next message, once.
func TestTheAgentHearsOfCommands(t *testing.T) {
	t.Parallel()
	r := newWorld(t).rig(t, storetest.SQLite(t))
	id := r.thread()
	first := r.turnCommand(id, thole.Shell("echo by hand > made; cat made"))
	if got := r.settled(id, first); got.Outcome != thole.OutcomeCompleted {
		t.Fatalf("%+v", got)
	}
	r.settled(id, r.turnCommand(id, thole.Shell("echo twice; exit 7")))
	next := r.start(id, "sim: run cat made ;; say heard: %user%")
	r.settled(id, next)
	said := r.said(id, next)
	for _, want := range []string{"by hand\n", "$ echo by hand > made; cat made\nby hand\n(exit code 0)\n\n$ echo twice; exit 7\ntwice\n(exit code 7)"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in %q", want, said)
		}
	}
	page, err := r.Items(context.Background(), me, id, next, thread.PageParams{Limit: 1})
	if err != nil || len(page.Items[0].Item.Content) != 1 {
		t.Errorf("the user's message became %+v (%v)", page.Items, err)
	}
	last := r.start(id, "sim: say heard: %user%")
	if r.settled(id, last); strings.Contains(r.said(id, last), "twice") {
		t.Errorf("it heard again: %q", r.said(id, last))
	}
}

// A command that was cut off is not run again: nobody knows how far it got.
func TestALostCommandIsNotRepeated(t *testing.T) {
	t.Parallel()
	r := newWorld(t).rig(t, storetest.SQLite(t))
	id := r.thread()
	turn := r.turnCommand(id, thole.Shell("echo once >> times; echo begun; sleep 600"))
	r.until(id, func(e event.Event) bool { return strings.Contains(e.Data.Delta, "begun") })
	row, err := r.db.Executors().OfThread(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.driver.Stop(context.Background(), row.ID); err != nil {
		t.Fatal(err)
	}
	got := r.settled(id, turn)
	if got.Outcome != thole.OutcomeFailed || !strings.Contains(got.Error.Message, "cut off") {
		t.Fatalf("%+v", got)
	}
	look := r.turnCommand(id, thole.Shell("wc -l < times"))
	if r.settled(id, look); strings.TrimSpace(r.said(id, look)) != "1" {
		t.Errorf("it ran %s times", r.said(id, look))
	}
}

// A turn whose executor is lost during the setup is taken up from the beginning: its agent,
// which has only planned so far, has not heard the message yet.
func TestALostSetupIsRepeated(t *testing.T) {
	t.Parallel()
	r := newWorld(t).rig(t, storetest.SQLite(t))
	th, err := r.Create(context.Background(), me, thread.Create{Owner: thole.DefaultOwner, Files: thole.Source{Kind: thole.SourceUpload}, Settings: event.Settings{Provider: "test", Profile: thole.ProfileFull}})
	if err != nil {
		t.Fatal(err)
	}
	planned, err := r.StartTurn(context.Background(), me, thread.StartTurn{Thread: th.ID, Input: thole.Text("sim: say planned"), Once: &event.Settings{Profile: thole.ProfilePlan}})
	if err != nil {
		t.Fatal(err)
	}
	r.settled(th.ID, planned.ID)
	r.settled(th.ID, r.turnCommand(th.ID, thole.Shell("mkdir .thole && echo 'echo set up >> times; test -e again && exit 4; touch again; echo begun; sleep 600' > .thole/setup")))
	turn := r.start(th.ID, "sim: run cat times ;; say heard: %user%")
	r.until(th.ID, func(e event.Event) bool { return strings.Contains(e.Data.Delta, "begun") })
	row, err := r.db.Executors().OfThread(context.Background(), th.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.driver.Stop(context.Background(), row.ID); err != nil {
		t.Fatal(err)
	}
	if got := r.settled(th.ID, turn); got.Outcome != thole.OutcomeCompleted {
		t.Fatalf("%+v", got)
	}
	if said := r.said(th.ID, turn); !strings.Contains(said, "set up\nset up\n") || !strings.Contains(said, "heard: ") || !strings.Contains(said, "which failed:") || !strings.Contains(said, "\n(exit code 4)\n") || strings.Contains(said, "restarted") {
		t.Errorf("%q", said)
	}
}

// A compaction needs something to compact.
func TestCompaction(t *testing.T) {
	t.Parallel()
	r := newWorld(t).rig(t, storetest.SQLite(t))
	id := r.thread()
	if got := r.settled(id, r.turnCommand(id, thole.Compact())); got.Outcome != thole.OutcomeFailed || !strings.Contains(got.Error.Message, "heard nothing yet") {
		t.Errorf("%+v", got)
	}
	r.settled(id, r.start(id, "sim: say something"))
	turn := r.turnCommand(id, thole.Compact())
	got := r.settled(id, turn)
	page, err := r.Items(context.Background(), me, id, turn, thread.PageParams{Limit: 10})
	if err != nil || got.Outcome != thole.OutcomeCompleted || len(page.Items) != 1 || page.Items[0].Item.Kind != event.ItemCompaction {
		t.Errorf("%+v %+v %v", got, page.Items, err)
	}
}
