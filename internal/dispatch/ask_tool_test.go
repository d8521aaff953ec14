package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
)

// calls calls a client's tool in the middle of a turn, as an agent without such tools of its
// own does.
func (r *rig) calls(ctx context.Context, turn thole.TurnID, id thole.AskID) <-chan told {
	out := make(chan told, 1)
	go func() {
		a, err := r.disp.Ask(ctx, turn, event.Ask{ID: id, Kind: event.AskTool, Tool: &event.ToolCall{Name: "lookup", Input: json.RawMessage(`{"id": 7}`)}})
		out <- told{a, err}
	}()
	return out
}

// state is that of an ask.
func (r *rig) state(id thole.ThreadID, ask thole.AskID) (st event.AskState) {
	r.t.Helper()
	asks, err := r.Asks(context.Background(), me, id, false)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, a := range asks {
		if a.Ask.ID == ask {
			st = a.State
		}
	}
	return st
}

// A call of a client's tool is an ask that is answered by what the tool returned. It keeps
// nobody waiting who might be asked, and is withdrawn when its agent gives it up.
func TestCallOfAClientsTool(t *testing.T) {
	t.Parallel()
	r := newWorld(t).rig(t, storetest.SQLite(t))
	id := r.thread()
	turn := r.start(id, "sim: wait 60s")
	r.until(id, kind(turn, event.TurnPhase))
	const first, second = thole.AskID("00000000-0000-8000-8000-000000000001"), thole.AskID("00000000-0000-8000-8000-000000000002")
	c := r.calls(t.Context(), turn, first)
	asked := r.until(id, kind(turn, event.AskRequested))
	if asked.Ask.Kind != event.AskTool || asked.Ask.Tool.Name != "lookup" || asked.Ask.Deadline.IsZero() {
		t.Errorf("asked %+v", asked.Ask)
	}
	if th, err := r.Get(t.Context(), me, id); err != nil || th.Status.WaitingOnInput || th.Status.WaitingOnApproval {
		t.Errorf("the thread waits for a person: %+v, %v", th.Status, err)
	}
	result := json.RawMessage(`{"success":true,"contentItems":[]}`)
	if _, err := r.Answer(t.Context(), me, id, first, event.Answer{Result: result}); err != nil {
		t.Fatal(err)
	}
	if got := <-c; got.err != nil || string(got.Result) != string(result) {
		t.Errorf("%+v", got)
	}
	gone, leave := context.WithCancel(t.Context())
	c = r.calls(gone, turn, second)
	waitFor(t, func() bool { return r.state(id, second) == event.AskPending })
	leave()
	if got := <-c; !errors.Is(got.err, context.Canceled) {
		t.Errorf("%+v", got)
	}
	waitFor(t, func() bool { return r.state(id, second) == event.AskCanceled })
	if got := r.state(id, first); got != event.AskAnswered {
		t.Errorf("the first is %s", got)
	}
	if err := r.Interrupt(t.Context(), me, id, turn); err != nil {
		t.Fatal(err)
	}
	r.settled(id, turn)
}

// A turn keeps its schema when its executor is lost and another takes it up.
func TestSchemaSurvivesALostExecutor(t *testing.T) {
	t.Parallel()
	r := newWorld(t).rig(t, storetest.SQLite(t))
	id := r.thread()
	schema := json.RawMessage(`{"type":"object","properties":{"a":{}}}`)
	turn, err := r.StartTurn(t.Context(), me, thread.StartTurn{Thread: id, Input: thole.Text("sim: wait 2s ;; say %schema%"), Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	r.until(id, kind(turn.ID, event.StepStarted))
	if err := r.driver.Stop(t.Context(), r.row(id).ID); err != nil {
		t.Fatal(err)
	}
	got := r.settled(id, turn.ID)
	if said := r.said(id, turn.ID); got.Outcome != thole.OutcomeCompleted || got.Run == 0 || !strings.Contains(said, string(schema)) {
		t.Errorf("%+v said %q", got, said)
	}
}

// A title is made without an executor, in the form that is asked for.
func TestTitle(t *testing.T) {
	t.Parallel()
	r := newWorld(t).rig(t, storetest.SQLite(t))
	th, err := r.Create(t.Context(), me, thread.Create{Owner: thole.DefaultOwner, Source: fold.SourceTitle, Ephemeral: true, Settings: event.Settings{Provider: "none"}})
	if err != nil {
		t.Fatal(err)
	}
	const ask = "Generate a title.\n\nUser prompt:\n"
	title := `{"type":"object","properties":{"title":{"type":"string","minLength":1,"maxLength":12}},"required":["title"],"additionalProperties":false}`
	for _, c := range []struct{ prompt, schema, want string }{
		{ask + "Fix the parser\nof dates", title, `{"title":"Fix the…"}`},
		{ask + "Fix it", title, `{"title":"Fix it"}`},
		{ask + "Supercalifragilistic", title, `{"title":"Supercalifr…"}`},
		{ask + " \n", title, `{"title":"Untitled"}`},
		{"Name \"this\"", "", `Name "this"`},
	} {
		p := thread.StartTurn{Thread: th.ID, Input: thole.Text(c.prompt)}
		if c.schema != "" {
			p.Schema = json.RawMessage(c.schema)
		}
		turn, err := r.StartTurn(t.Context(), me, p)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.settled(th.ID, turn.ID); got.Outcome != thole.OutcomeCompleted || got.Executor != "" || r.said(th.ID, turn.ID) != c.want+"\n" {
			t.Errorf("%q: %s in executor %q said %q", c.prompt, got.Outcome, got.Executor, r.said(th.ID, turn.ID))
		}
	}
	turn, err := r.StartTurn(t.Context(), me, thread.StartTurn{Thread: th.ID, Input: thole.Text("x"), Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}`)})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.settled(th.ID, turn.ID); got.Outcome != thole.OutcomeFailed || !strings.Contains(got.Error.Message, "a title is one text") {
		t.Errorf("%+v", got.Error)
	}
	if rows, err := r.db.Executors().Of(t.Context(), th.ID); err != nil || len(rows) != 0 {
		t.Errorf("executors %+v, %v", rows, err)
	}
}
