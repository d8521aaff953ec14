package thread

import (
	"fmt"
	"slices"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
)

// want is the transition table a second time, in the form a reader checks: one
// row per event, one column per slot (idle, queued, running, waiting, parked,
// over), each with the slots it may lead to: i q r w p o, or - for illegal.
var want = map[event.Kind][6]string{
	event.ThreadCreated:  {"-", "-", "-", "-", "-", "-"},
	event.ThreadUpdated:  {"i", "q", "r", "w", "p", "o"},
	event.ThreadDeleted:  {"i", "q", "r", "w", "p", "o"},
	event.ThreadReverted: {"i", "-", "-", "-", "-", "-"},
	event.ThreadStatus:   {"-", "-", "-", "-", "-", "-"},
	event.TurnStarted:    {"q", "-", "-", "-", "-", "-"},
	event.TurnPhase:      {"-", "qr", "q", "p", "-", "o"},
	event.TurnSteered:    {"-", "q", "r", "w", "p", "-"},
	event.SteerTaken:     {"-", "-", "-", "-", "-", "-"},
	event.SteerRefused:   {"-", "q", "r", "w", "p", "-"},
	event.TurnInterrupt:  {"-", "q", "r", "w", "p", "-"},
	event.TurnEnded:      {"-", "o", "o", "o", "o", "-"},
	event.StepStarted:    {"-", "-", "r", "w", "-", "-"},
	event.StepEnded:      {"-", "-", "r", "w", "-", "-"},
	event.StepReset:      {"-", "-", "r", "w", "-", "-"},
	event.ItemStarted:    {"-", "q", "r", "w", "p", "-"},
	event.ItemDelta:      {"-", "-", "-", "-", "-", "-"},
	event.ItemUpdated:    {"-", "-", "r", "w", "-", "-"},
	event.ItemCompleted:  {"-", "q", "r", "w", "p", "-"},
	event.TodoSnapshot:   {"-", "-", "r", "w", "-", "-"},
	event.TodoUpdate:     {"-", "-", "r", "w", "-", "-"},
	event.AskRequested:   {"-", "-", "w", "w", "-", "-"},
	event.AskResolved:    {"-", "-", "r", "rw", "qp", "-"},
	event.UsageUpdated:   {"-", "-", "r", "w", "-", "-"},
	event.NetworkUpdated: {"-", "-", "r", "w", "-", "-"},
	event.ErrorReported:  {"-", "-", "r", "w", "-", "-"},
	event.NoteReported:   {"i", "q", "r", "w", "p", "-"},
	event.LimitsUpdated:  {"-", "-", "r", "w", "-", "-"},
	event.GoalUpdated:    {"i", "q", "r", "w", "p", "o"},
	event.QueueAdded:     {"i", "q", "r", "w", "p", "o"},
	event.QueueEdited:    {"i", "q", "r", "w", "p", "o"},
	event.QueueRemoved:   {"i", "q", "r", "w", "p", "o"},
	event.QueueReordered: {"i", "q", "r", "w", "p", "o"},
}

func TestTransitionTable(t *testing.T) {
	if len(want) != len(event.Kinds) {
		t.Fatalf("%d kinds are tabled, %d exist", len(want), len(event.Kinds))
	}
	for _, k := range event.Kinds {
		for col, from := range fold.Slots {
			for _, to := range fold.Slots {
				expected := slices.Contains([]byte(want[k][col]), to[0])
				if got := fold.Legal(k, from, to); got != expected {
					t.Errorf("%s: %s → %s: legal %v, want %v", k, from, to, got, expected)
				}
			}
		}
	}
}

// in builds a state whose open turn is in a slot, with one of everything the
// events below need.
func in(t *testing.T, sl fold.Slot) *writer {
	t.Helper()
	n := 0
	w := &writer{
		s: &fold.State{}, c: &Commit{}, now: time.UnixMilli(1e12).UTC(), actor: thole.LocalActor, flights: &flightPlan{base: flights{}},
		newID: func(time.Time) string { n++; return fmt.Sprintf("id-%d", n) },
	}
	w.append(event.Event{Thread: "t", Kind: event.ThreadCreated, Data: event.Data{Created: &event.Created{Owner: thole.DefaultOwner}}})
	w.add(event.QueueAdded, "", event.Data{Message: &event.Message{ID: "m1"}})
	w.add(event.QueueAdded, "", event.Data{Message: &event.Message{ID: "m2"}})
	start := func() {
		if _, err := w.startTurn(StartTurn{Thread: "t", ID: "turn", Input: thole.Text("hi")}); err != nil {
			t.Fatal(err)
		}
		w.add(event.TurnSteered, "turn", event.Data{Message: &event.Message{ID: "s1"}})
	}
	run := func() {
		start()
		w.add(event.TurnPhase, "turn", event.Data{Phase: thole.PhaseRunning})
		w.add(event.ItemStarted, "turn", event.Data{Item: &event.Item{ID: "open", Kind: event.ItemMessage}})
		w.add(event.ItemCompleted, "turn", event.Data{Item: &event.Item{ID: "open", Kind: event.ItemMessage}})
		w.add(event.ItemStarted, "turn", event.Data{Item: &event.Item{ID: "second", Kind: event.ItemMessage}})
	}
	ask := func() {
		w.add(event.AskRequested, "turn", event.Data{Ask: &event.Ask{ID: "a1", Kind: event.AskCommand}})
	}
	switch sl {
	case fold.Queued:
		start()
	case fold.Running:
		run()
		ask()
		w.resolve("a1", event.AskCanceled, nil)
	case fold.Waiting:
		run()
		ask()
	case fold.Parked:
		run()
		ask()
		w.add(event.TurnPhase, "turn", event.Data{Phase: thole.PhaseWaitingHuman, AskID: "a1"})
	case fold.Over:
		start()
		w.s.Queue = nil // nothing may start after it
		w.add(event.SteerRefused, "turn", event.Data{MessageID: "s1"})
		w.endTurn(thole.OutcomeCompleted, nil)
		w.s.Queue = []event.Message{{ID: "m1"}, {ID: "m2"}}
	}
	if w.err != nil {
		t.Fatal(w.err)
	}
	return w
}

// TestFoldObeysTable appends every event to a thread in every slot: the fold
// takes exactly what the table allows, and a refusal leaves the state alone.
func TestFoldObeysTable(t *testing.T) {
	data := map[event.Kind]event.Data{
		event.ThreadUpdated: {Name: new("n")}, event.ThreadDeleted: {}, event.TurnStarted: {Input: thole.Text("x")},
		event.TurnSteered: {Message: &event.Message{ID: "s2"}}, event.SteerRefused: {MessageID: "s1"}, event.TurnInterrupt: {},
		event.StepStarted: {}, event.StepEnded: {}, event.StepReset: {}, event.ItemStarted: {Item: &event.Item{ID: "new", Kind: event.ItemMessage}},
		event.ItemUpdated:   {Item: &event.Item{ID: "second", Kind: event.ItemMessage}},
		event.ItemCompleted: {Item: &event.Item{ID: "new", Kind: event.ItemMessage}},
		event.TodoSnapshot:  {Todos: []event.Todo{{ID: "1"}}}, event.TodoUpdate: {Todos: []event.Todo{{ID: "1"}}},
		event.AskRequested: {Ask: &event.Ask{ID: "a2", Kind: event.AskInput}},
		event.AskResolved:  {AskID: "a1", AskState: event.AskAnswered, Answer: &event.Answer{Decision: event.DecisionAllow}},
		event.UsageUpdated: {Usage: &thole.Usage{Input: 1}}, event.ErrorReported: {Error: &thole.TurnError{}}, event.NoteReported: {}, event.LimitsUpdated: {}, event.NetworkUpdated: {},
		event.QueueAdded: {Message: &event.Message{ID: "m3"}}, event.QueueEdited: {Message: &event.Message{ID: "m1"}},
		event.QueueRemoved: {MessageID: "m1"}, event.QueueReordered: {Order: []thole.MessageID{"m2", "m1"}},
		event.TurnPhase: {Phase: thole.PhaseClaimed}, event.TurnEnded: {Outcome: thole.OutcomeCompleted},
		event.ThreadStatus: {}, event.ItemDelta: {}, event.ThreadReverted: {Cut: &event.Cut{Turn: "turn", Number: 1}},
	}
	about := func(k event.Kind) thole.TurnID {
		switch k {
		case event.ThreadUpdated, event.ThreadDeleted, event.ThreadReverted, event.GoalUpdated, event.QueueAdded, event.QueueEdited, event.QueueRemoved, event.QueueReordered:
			return ""
		case event.TurnStarted:
			return "turn2"
		}
		return "turn"
	}
	for _, k := range event.Kinds {
		if k == event.ThreadCreated {
			continue
		}
		for col, from := range fold.Slots {
			t.Run(string(k)+"/"+string(from), func(t *testing.T) {
				w := in(t, from)
				d := data[k]
				if k == event.TurnPhase {
					d.Phase = map[fold.Slot]thole.Phase{fold.Running: thole.PhaseQueued, fold.Waiting: thole.PhaseWaitingHuman, fold.Over: thole.PhaseExported}[from]
					if from == fold.Waiting {
						d.AskID = "a1"
					}
					if d.Phase == "" {
						d.Phase = thole.PhaseClaimed
					}
				}
				if k == event.AskResolved && from == fold.Running { // what is settled can only turn out otherwise
					d.AskState = event.AskSelfAnswered
				}
				if k == event.TurnEnded {
					w.cancelAsks()
					w.closeItems()
				}
				before := w.s.Seq()
				w.add(k, about(k), d)
				allowed := want[k][col] != "-"
				if k == event.NoteReported && from == fold.Idle {
					allowed = false // a note about a turn needs the turn
				}
				if (k == event.TurnStarted || k == event.ThreadReverted) && from == fold.Over {
					allowed = true // another turn: after one that is over the thread is idle
				}
				if k == event.TurnPhase && from == fold.Idle {
					allowed = true // a turn that is over is not in memory; the store refuses one that never was
				}
				if got := w.err == nil; got != allowed {
					t.Fatalf("taken %v, want %v (%v)", got, allowed, w.err)
				}
				if w.err != nil && w.s.Seq() != before {
					t.Fatal("a refused event moved the sequence")
				}
			})
		}
	}
}

func TestPhaseMoves(t *testing.T) {
	p := func(names ...thole.Phase) []thole.Phase { return names }
	queued, claimed, restoring, linking, preparing := thole.PhaseQueued, thole.PhaseClaimed, thole.PhaseRestoring, thole.PhaseLinking, thole.PhasePreparing
	running, waiting, syncing, exported := thole.PhaseRunning, thole.PhaseWaitingHuman, thole.PhaseSyncing, thole.PhaseExported
	succeeded, failed, canceled := thole.PhaseSucceeded, thole.PhaseFailed, thole.PhaseCanceled
	all := p(queued, claimed, restoring, linking, preparing, running, waiting, syncing, exported, succeeded, failed, canceled)
	cases := []struct {
		outcome thole.Outcome
		from    thole.Phase
		to      []thole.Phase
	}{
		{"", queued, p(claimed, restoring, linking, preparing, running)},
		{"", claimed, p(queued, restoring, linking, preparing, running)},
		{"", restoring, p(queued, linking, preparing, running)},
		{"", linking, p(queued, preparing, running)},
		{"", preparing, p(queued, running)},
		{"", running, p(queued)},
		{"", waiting, p(queued)},
		{thole.OutcomeCompleted, syncing, p(exported, succeeded)},
		{thole.OutcomeFailed, syncing, p(exported, failed)},
		{thole.OutcomeInterrupted, syncing, p(exported, canceled)},
		{thole.OutcomeCompleted, exported, p(succeeded)},
		{thole.OutcomeFailed, exported, p(failed)},
		{thole.OutcomeInterrupted, exported, p(canceled)},
		{thole.OutcomeCompleted, succeeded, nil},
		{thole.OutcomeFailed, failed, nil},
		{thole.OutcomeInterrupted, canceled, nil},
	}
	for _, c := range cases {
		for _, to := range all {
			if got := mayEnter(&fold.Turn{Phase: c.from, Outcome: c.outcome}, to); got != slices.Contains(c.to, to) {
				t.Errorf("%s (%q) → %s: %v", c.from, c.outcome, to, got)
			}
		}
	}
}

func TestAskMoves(t *testing.T) {
	states := []event.AskState{event.AskPending, event.AskAnswered, event.AskExpired, event.AskCanceled, event.AskSelfAnswered}
	for _, from := range states {
		for _, to := range states {
			if got := from.MayBecome(to); got != (from == event.AskPending && to != event.AskPending || to == event.AskSelfAnswered && from != to) {
				t.Errorf("%s → %s: %v", from, to, got)
			}
		}
	}
}
