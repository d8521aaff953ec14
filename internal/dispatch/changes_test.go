package dispatch_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
)

// changeLog records what the dispatcher asks to be kept.
type changeLog struct {
	mu    sync.Mutex
	calls []string
	fails error
}

func (c *changeLog) add(what string, turn int, dir string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	names, _ := filepath.Glob(dir + "/*")
	for i := range names {
		names[i] = filepath.Base(names[i])
	}
	c.calls = append(c.calls, fmt.Sprintf("%s %d %v", what, turn, names))
	return c.fails
}

func (c *changeLog) Before(_ context.Context, _ fold.Thread, turn int, dir string) error {
	return c.add("before", turn, dir)
}

func (c *changeLog) After(_ context.Context, _ fold.Thread, turn int, dir string) error {
	return c.add("after", turn, dir)
}

func (c *changeLog) Undo(_ context.Context, _ fold.Thread, dir string, as, turn int) (string, error) {
	if err := c.add(fmt.Sprintf("undo as %d", as), turn, dir); err != nil {
		return "", err
	}
	return fmt.Sprintf("put back to before %d", turn), os.Remove(filepath.Join(dir, "made"))
}

func (c *changeLog) all() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.calls, "; ")
}

// Files are kept before the agent runs and after; an undo is a turn without an agent, of
// which the agent hears with the next message.
func TestStatesAroundTurns(t *testing.T) {
	t.Parallel()
	log := &changeLog{}
	r := newWorld(t).rig(t, storetest.SQLite(t), func(c *dispatch.Config) { c.Changes = log })
	id := r.thread()
	r.settled(id, r.start(id, "sim: run touch made"))
	undo, err := r.StartTurn(context.Background(), me, thread.StartTurn{Thread: id, Input: thole.Undo(1), Command: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.settled(id, undo.ID); got.Outcome != thole.OutcomeCompleted || got.Executor == "" {
		t.Errorf("%+v", got)
	}
	page, err := r.Items(context.Background(), me, id, undo.ID, thread.PageParams{Limit: 10})
	if err != nil || len(page.Items) != 1 || page.Items[0].Item.Kind != event.ItemSystem || page.Items[0].Item.Text != "put back to before 1" {
		t.Errorf("%+v, %v", page.Items, err)
	}
	next := r.start(id, "sim: say heard: %user%")
	r.settled(id, next)
	if said := r.said(id, next); !strings.Contains(said, "(undo) put back to before 1") {
		t.Errorf("the agent heard %q", said)
	}
	if got, want := log.all(), "before 1 []; after 1 [made]; undo as 2 1 [made]; after 2 []; before 3 []; after 3 []"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// outcomes records what is known of a turn's end when its files are kept.
type outcomes struct {
	changeLog
	of func() thole.Outcome
}

func (o *outcomes) After(_ context.Context, _ fold.Thread, turn int, _ string) error {
	return o.add(fmt.Sprintf("after, when the outcome was %q,", o.of()), turn, "/nonexistent")
}

// What a turn left in the user's own directory is kept before anybody hears of its end: a
// file that a person writes then is the person's. Elsewhere nobody waits for it.
func TestFilesInPlaceAreKeptBeforeTheEnd(t *testing.T) {
	t.Parallel()
	for kind, want := range map[thole.SourceKind]string{
		thole.SourceHere:  `after, when the outcome was "", 1 []`,
		thole.SourceEmpty: `after, when the outcome was "completed", 1 []`,
	} {
		log := &outcomes{}
		r := newWorld(t).rig(t, storetest.SQLite(t), func(c *dispatch.Config) { c.Changes = log })
		th, err := r.Create(context.Background(), me, thread.Create{Settings: event.Settings{Provider: "test", Profile: thole.ProfileFull}, Files: thole.Source{Kind: kind, Dir: map[bool]string{true: t.TempDir()}[kind == thole.SourceHere]}})
		if err != nil {
			t.Fatal(err)
		}
		begun := make(chan thole.TurnID, 1)
		log.of = func() thole.Outcome {
			id := <-begun
			begun <- id
			got, err := r.Turn(context.Background(), me, th.ID, id)
			if err != nil {
				t.Error(err)
			}
			return got.Outcome
		}
		turn := r.start(th.ID, "sim: say hi")
		begun <- turn
		r.settled(th.ID, turn)
		if got := log.all(); !strings.HasSuffix(got, want) || strings.Count(got, "after") != 1 {
			t.Errorf("%s: %s", kind, got)
		}
	}
}

// That states cannot be kept changes no turn, and is said; an undo that fails says why.
func TestStatesThatCannotBeKept(t *testing.T) {
	t.Parallel()
	log := &changeLog{fails: thole.Errorf(thole.CodeInvalid, "no git here")}
	r := newWorld(t).rig(t, storetest.SQLite(t), func(c *dispatch.Config) { c.Changes = log })
	id := r.thread()
	turn := r.start(id, "sim: say hi")
	if got := r.settled(id, turn); got.Outcome != thole.OutcomeCompleted {
		t.Errorf("%+v", got)
	}
	events, err := r.Events(context.Background(), me, id, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	for _, e := range events {
		if e.Kind == event.NoteReported || e.Kind == event.TurnPhase && e.Phase.Terminal() {
			notes = append(notes, e.Text)
		}
	}
	if got := strings.Join(notes, "; "); got != "this turn cannot be undone: the files before it could not be kept: no git here; the turn's changes are not kept: no git here" {
		t.Errorf("%s", got)
	}
	undo, err := r.StartTurn(context.Background(), me, thread.StartTurn{Thread: id, Input: thole.Undo(1), Command: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.settled(id, undo.ID); got.Outcome != thole.OutcomeFailed || got.Error == nil || !strings.Contains(got.Error.Message, "no git here") {
		t.Errorf("%+v", got)
	}
}

// An undo whose dispatcher ended in the middle is taken up again by the next one.
func TestAnUndoIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	w, db := newWorld(t), storetest.SQLite(t)
	stuck := &stuckUndo{begun: make(chan struct{})}
	r := w.rig(t, db, func(c *dispatch.Config) { c.Changes = stuck })
	id := r.thread()
	r.settled(id, r.start(id, "sim: run touch made"))
	undo, err := r.StartTurn(context.Background(), me, thread.StartTurn{Thread: id, Input: thole.Undo(1), Command: true})
	if err != nil {
		t.Fatal(err)
	}
	<-stuck.begun
	r.halt()
	log := &changeLog{}
	next := w.rig(t, db, func(c *dispatch.Config) { c.Changes = log })
	if got := next.settled(id, undo.ID); got.Outcome != thole.OutcomeCompleted {
		t.Errorf("%+v", got)
	}
	if got := log.all(); got != "undo as 2 1 [made]; after 2 []" {
		t.Errorf("%s", got)
	}
}

// stuckUndo begins an undo that does not end before its context.
type stuckUndo struct {
	changeLog
	begun chan struct{}
}

func (s *stuckUndo) Undo(ctx context.Context, _ fold.Thread, _ string, _, _ int) (string, error) {
	close(s.begun)
	<-ctx.Done()
	return "", context.Cause(ctx)
}

// The number of an undo is one of a turn, and no message can pass for one.
func TestUndoIsACommand(t *testing.T) {
	t.Parallel()
	r := newWorld(t).rig(t, storetest.SQLite(t))
	id := r.thread()
	for _, p := range []thread.StartTurn{
		{Thread: id, Input: thole.Undo(0), Command: true}, {Thread: id, Input: thole.Undo(-1), Command: true}, {Thread: id, Input: thole.Text("/undo 1"), Command: true}, {Thread: id, Input: thole.Undo(1)},
		{Thread: id, Input: []thole.Input{{Type: string(thole.TurnCommandUndo), Text: "/undo x"}}, Command: true},
	} {
		if turn, err := r.StartTurn(context.Background(), me, p); thole.CodeOf(err) != thole.CodeInvalid {
			t.Errorf("%+v started %+v, %v", p, turn, err)
		}
	}
	undo, err := r.StartTurn(context.Background(), me, thread.StartTurn{Thread: id, Input: thole.Undo(1), Command: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.settled(id, undo.ID); got.Outcome != thole.OutcomeFailed || got.Error == nil || !strings.Contains(got.Error.Message, "keeps no states") {
		t.Errorf("where nobody keeps states: %+v", got)
	}
}
