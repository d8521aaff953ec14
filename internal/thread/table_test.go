package thread

import (
	"fmt"
	"slices"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
)

// want is the transition table a second time, in the form a reader checks: one
// row per event, one column per slot (idle, queued, running, waiting, parked,
// over), each with the slots it may lead to: i q r w p o, or - for illegal.
var want = map[Kind][6]string{
	ThreadCreated:  {"-", "-", "-", "-", "-", "-"},
	ThreadUpdated:  {"i", "q", "r", "w", "p", "o"},
	ThreadDeleted:  {"i", "q", "r", "w", "p", "o"},
	ThreadStatus:   {"-", "-", "-", "-", "-", "-"},
	TurnStarted:    {"q", "-", "-", "-", "-", "-"},
	TurnPhase:      {"-", "qr", "q", "p", "-", "o"},
	TurnSteered:    {"-", "q", "r", "w", "p", "-"},
	SteerRefused:   {"-", "q", "r", "w", "p", "-"},
	TurnInterrupt:  {"-", "q", "r", "w", "p", "-"},
	TurnEnded:      {"-", "o", "o", "o", "o", "-"},
	StepStarted:    {"-", "-", "r", "w", "-", "-"},
	StepEnded:      {"-", "-", "r", "w", "-", "-"},
	StepReset:      {"-", "-", "r", "w", "-", "-"},
	ItemStarted:    {"-", "q", "r", "w", "p", "-"},
	ItemDelta:      {"-", "-", "-", "-", "-", "-"},
	ItemUpdated:    {"-", "-", "r", "w", "-", "-"},
	ItemCompleted:  {"-", "q", "r", "w", "p", "-"},
	TodoSnapshot:   {"-", "-", "r", "w", "-", "-"},
	TodoUpdate:     {"-", "-", "r", "w", "-", "-"},
	AskRequested:   {"-", "-", "w", "w", "-", "-"},
	AskResolved:    {"-", "-", "r", "rw", "qp", "-"},
	UsageUpdated:   {"-", "-", "r", "w", "-", "-"},
	ErrorReported:  {"-", "-", "r", "w", "-", "-"},
	NoteReported:   {"i", "q", "r", "w", "p", "-"},
	QueueAdded:     {"i", "q", "r", "w", "p", "o"},
	QueueEdited:    {"i", "q", "r", "w", "p", "o"},
	QueueRemoved:   {"i", "q", "r", "w", "p", "o"},
	QueueReordered: {"i", "q", "r", "w", "p", "o"},
}

func TestTransitionTable(t *testing.T) {
	if len(want) != len(kinds) {
		t.Fatalf("%d kinds are tabled, %d exist", len(want), len(kinds))
	}
	for _, k := range kinds {
		for col, from := range slots {
			for _, to := range slots {
				expected := slices.Contains([]byte(want[k][col]), to[0])
				if got := legal(k, from, to); got != expected {
					t.Errorf("%s: %s → %s: legal %v, want %v", k, from, to, got, expected)
				}
			}
		}
	}
}

// in builds a state whose open turn is in a slot, with one of everything the
// events below need.
func in(t *testing.T, sl slot) *writer {
	t.Helper()
	n := 0
	w := &writer{
		s: &state{}, c: &Commit{}, now: time.UnixMilli(1e12).UTC(), actor: thole.LocalActor, flights: &flightPlan{base: flights{}},
		newID: func(time.Time) string { n++; return fmt.Sprintf("id-%d", n) },
	}
	w.append(Event{Thread: "t", Kind: ThreadCreated, Data: Data{Created: &Created{Owner: thole.DefaultOwner}}})
	w.add(QueueAdded, "", Data{Message: &Message{ID: "m1"}})
	w.add(QueueAdded, "", Data{Message: &Message{ID: "m2"}})
	start := func() {
		if _, err := w.startTurn(StartTurn{Thread: "t", ID: "turn", Input: thole.Text("hi")}); err != nil {
			t.Fatal(err)
		}
		w.add(TurnSteered, "turn", Data{Message: &Message{ID: "s1"}})
	}
	run := func() {
		start()
		w.add(TurnPhase, "turn", Data{Phase: thole.PhaseRunning})
		w.add(ItemStarted, "turn", Data{Item: &thole.Item{ID: "open", Kind: thole.ItemMessage}})
		w.add(ItemCompleted, "turn", Data{Item: &thole.Item{ID: "open", Kind: thole.ItemMessage}})
		w.add(ItemStarted, "turn", Data{Item: &thole.Item{ID: "second", Kind: thole.ItemMessage}})
	}
	ask := func() { w.add(AskRequested, "turn", Data{Ask: &thole.Ask{ID: "a1", Kind: thole.AskCommand}}) }
	switch sl {
	case slotQueued:
		start()
	case slotRunning:
		run()
		ask()
		w.resolve("a1", thole.AskCanceled, nil)
	case slotWaiting:
		run()
		ask()
	case slotParked:
		run()
		ask()
		w.add(TurnPhase, "turn", Data{Phase: thole.PhaseWaitingHuman, AskID: "a1"})
	case slotOver:
		start()
		w.s.queue = nil // nothing may start behind it
		w.add(SteerRefused, "turn", Data{MessageID: "s1"})
		w.endTurn(thole.OutcomeCompleted, nil)
		w.s.queue = []Message{{ID: "m1"}, {ID: "m2"}}
	}
	if w.err != nil {
		t.Fatal(w.err)
	}
	return w
}

// TestFoldObeysTable appends every event to a thread in every slot: the fold
// takes exactly what the table allows, and a refusal leaves the state alone.
func TestFoldObeysTable(t *testing.T) {
	data := map[Kind]Data{
		ThreadUpdated: {Name: new("n")}, ThreadDeleted: {}, TurnStarted: {Input: thole.Text("x")},
		TurnSteered: {Message: &Message{ID: "s2"}}, SteerRefused: {MessageID: "s1"}, TurnInterrupt: {},
		StepStarted: {}, StepEnded: {}, StepReset: {}, ItemStarted: {Item: &thole.Item{ID: "new", Kind: thole.ItemMessage}},
		ItemUpdated:   {Item: &thole.Item{ID: "second", Kind: thole.ItemMessage}},
		ItemCompleted: {Item: &thole.Item{ID: "new", Kind: thole.ItemMessage}},
		TodoSnapshot:  {Todos: []thole.Todo{{ID: "1"}}}, TodoUpdate: {Todos: []thole.Todo{{ID: "1"}}},
		AskRequested: {Ask: &thole.Ask{ID: "a2", Kind: thole.AskInput}},
		AskResolved:  {AskID: "a1", AskState: thole.AskAnswered, Answer: &thole.Answer{Decision: thole.DecisionAllow}},
		UsageUpdated: {Usage: &thole.Usage{Input: 1}}, ErrorReported: {Error: &thole.TurnError{}}, NoteReported: {},
		QueueAdded: {Message: &Message{ID: "m3"}}, QueueEdited: {Message: &Message{ID: "m1"}},
		QueueRemoved: {MessageID: "m1"}, QueueReordered: {Order: []thole.MessageID{"m2", "m1"}},
		TurnPhase: {Phase: thole.PhaseClaimed}, TurnEnded: {Outcome: thole.OutcomeCompleted},
		ThreadStatus: {}, ItemDelta: {},
	}
	about := func(k Kind) thole.TurnID {
		switch k {
		case ThreadUpdated, ThreadDeleted, QueueAdded, QueueEdited, QueueRemoved, QueueReordered:
			return ""
		case TurnStarted:
			return "turn2"
		}
		return "turn"
	}
	for _, k := range kinds {
		if k == ThreadCreated {
			continue
		}
		for col, from := range slots {
			t.Run(string(k)+"/"+string(from), func(t *testing.T) {
				w := in(t, from)
				d := data[k]
				if k == TurnPhase {
					d.Phase = map[slot]thole.Phase{slotRunning: thole.PhaseQueued, slotWaiting: thole.PhaseWaitingHuman, slotOver: thole.PhaseExported}[from]
					if from == slotWaiting {
						d.AskID = "a1"
					}
					if d.Phase == "" {
						d.Phase = thole.PhaseClaimed
					}
				}
				if k == AskResolved && from == slotRunning { // what is settled can only turn out otherwise
					d.AskState = thole.AskSelfAnswered
				}
				if k == TurnEnded {
					w.cancelAsks()
					w.closeItems()
				}
				before := w.s.seq()
				w.add(k, about(k), d)
				allowed := want[k][col] != "-"
				if k == NoteReported && from == slotIdle {
					allowed = false // a note about a turn needs the turn
				}
				if k == TurnStarted && from == slotOver {
					allowed = true // another turn: behind one that is over the thread is idle
				}
				if k == TurnPhase && from == slotIdle {
					allowed = true // a turn that is over is not in memory; the store refuses one that never was
				}
				if got := w.err == nil; got != allowed {
					t.Fatalf("taken %v, want %v (%v)", got, allowed, w.err)
				}
				if w.err != nil && w.s.seq() != before {
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
			if got := mayEnter(&Turn{Phase: c.from, Outcome: c.outcome}, to); got != slices.Contains(c.to, to) {
				t.Errorf("%s (%q) → %s: %v", c.from, c.outcome, to, got)
			}
		}
	}
}

func TestAskMoves(t *testing.T) {
	states := []thole.AskState{thole.AskPending, thole.AskAnswered, thole.AskExpired, thole.AskCanceled, thole.AskSelfAnswered}
	for _, from := range states {
		for _, to := range states {
			if got := askMove(from, to); got != (from == thole.AskPending && to != thole.AskPending || to == thole.AskSelfAnswered && from != to) {
				t.Errorf("%s → %s: %v", from, to, got)
			}
		}
	}
}
