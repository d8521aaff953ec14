package event_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
)

// Executors outlive servers: what an earlier version wrote must read as today's.
func TestEarlierLines(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	head := func(k event.Kind, d event.Data) event.Event {
		return event.Event{ID: "e", Kind: k, Turn: "t", Time: at, Data: d}
	}
	const prefix = `{"id":"e","turn":"t","time":"2026-01-02T03:04:05Z",`
	for line, want := range map[string]event.Event{
		`"kind":"session","native_id":"n"}`:                  head(event.ThreadUpdated, event.Data{NativeID: "n"}),
		`"kind":"usage","usage":{"input":3,"output":4}}`:     head(event.UsageUpdated, event.Data{Usage: &thole.Usage{Input: 3, Output: 4}}),
		`"kind":"error","error":{"code":"x","message":"m"}}`: head(event.ErrorReported, event.Data{Error: &thole.TurnError{Code: "x", Message: "m"}}),
		`"kind":"note","text":"hm"}`:                         head(event.NoteReported, event.Data{Text: "hm"}),
		`"kind":"steered","item":{"id":"i","kind":"user_message","client_id":"c","stamp":{}},"item_id":"i"}`: head(event.SteerTaken,
			event.Data{ItemID: "i", Item: &event.Item{ID: "i", Kind: event.ItemUserMessage, ClientID: "c"}}),
		`"kind":"ended","ended":{"outcome":"completed"}}`:       head(event.TurnEnded, event.Data{Outcome: thole.OutcomeCompleted}),
		`"kind":"ended","ended":{"outcome":"","deferred":"a"}}`: head(event.TurnEnded, event.Data{AskID: "a"}),
		`"kind":"ended","ended":{"outcome":"failed","error":{"code":"x","message":"m"}}}`: head(event.TurnEnded,
			event.Data{Outcome: thole.OutcomeFailed, Error: &thole.TurnError{Code: "x", Message: "m"}}),
		`"kind":"turn.ended","outcome":"failed"}`: head(event.TurnEnded, event.Data{Outcome: thole.OutcomeFailed}),
	} {
		var got event.Reported
		if err := json.Unmarshal([]byte(prefix+line), &got); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if diff := cmp.Diff(want, got.Current()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
}

// The envelope belongs to the server: nothing an executor writes can set it.
func TestReportsCarryNoEnvelope(t *testing.T) {
	var got event.Reported
	line := `{"id":"e","kind":"note.reported","Thread":"x","thread":"x","Seq":7,"seq":7,"Actor":{"User":"root"},"actor":{"user":"root"},"Executor":"e","Trace":"t"}`
	if err := json.Unmarshal([]byte(line), &got); err != nil {
		t.Fatal(err)
	}
	if e := got.Current(); e.Thread != "" || e.Seq != 0 || e.Actor != (thole.Actor{}) || e.Executor != "" || e.Trace != "" {
		t.Fatalf("%+v", e)
	}
}

func TestAnEventSurvivesItsEncoding(t *testing.T) {
	code := 1
	want := event.Event{ID: "e", Kind: event.ItemCompleted, Turn: "t", Time: time.Unix(1, 0).UTC(), Data: event.Data{
		Item: &event.Item{ID: "i", Kind: event.ItemCommand, State: event.StateFailed, Command: &event.Command{Line: "false", ExitCode: &code}},
	}}
	raw, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got event.Event
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

func TestKindsAreListedOnce(t *testing.T) {
	seen := slices.Clone(event.Kinds)
	slices.Sort(seen)
	if n := len(slices.Compact(seen)); n != len(event.Kinds) {
		t.Fatalf("%d different kinds of %d", n, len(event.Kinds))
	}
}
