package fold

import (
	"slices"
	"sync"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
)

// Slot is where a turn stands for the legality of events. It is derived from
// the turn's facts and never stored.
type Slot string

const (
	Idle    Slot = "idle"    // the thread has no open turn
	Queued  Slot = "queued"  // open, before the agent runs
	Running Slot = "running" // the agent works
	Waiting Slot = "waiting" // the agent works and at least one ask is pending
	Parked  Slot = "parked"  // waits for a human and no process holds it
	Over    Slot = "over"    // has its outcome; the pipeline may still go on
)

// Slots lists every slot once.
var Slots = []Slot{Idle, Queued, Running, Waiting, Parked, Over}

// SlotOf derives the slot of a thread's open turn, or of one that is over.
func SlotOf(t *Turn) Slot {
	switch {
	case t == nil:
		return Idle
	case t.Outcome != "":
		return Over
	case t.Deferred != "":
		return Parked
	case t.Phase == thole.PhaseRunning:
		return Running
	case t.Phase == thole.PhaseWaitingHuman:
		return Waiting
	default:
		return Queued
	}
}

// Moves is the transition table of turns: for each event, the slots in which it
// may be appended and the slots it may lead to from there. What is not written
// here is illegal, and the fold refuses it.
var Moves = sync.OnceValue(func() map[event.Kind]map[Slot][]Slot {
	table := map[event.Kind]map[Slot][]Slot{}
	for _, k := range event.Kinds {
		table[k] = movesOf(k)
	}
	return table
})

func movesOf(k event.Kind) map[Slot][]Slot {
	stay := func(in ...Slot) map[Slot][]Slot {
		m := map[Slot][]Slot{}
		for _, s := range in {
			m[s] = []Slot{s}
		}
		return m
	}
	switch k {
	case event.TurnStarted:
		return map[Slot][]Slot{Idle: {Queued}}
	case event.TurnPhase:
		return map[Slot][]Slot{
			Queued:  {Queued, Running},
			Running: {Queued},
			Waiting: {Parked},
			Over:    {Over},
		}
	case event.TurnSteered, event.SteerRefused, event.TurnInterrupt:
		return stay(Queued, Running, Waiting, Parked)
	case event.TurnEnded:
		return map[Slot][]Slot{
			Queued: {Over}, Running: {Over}, Waiting: {Over}, Parked: {Over},
		}
	case event.AskRequested:
		return map[Slot][]Slot{Running: {Waiting}, Waiting: {Waiting}}
	case event.AskResolved:
		return map[Slot][]Slot{
			Running: {Running}, // the agent had answered it itself
			Waiting: {Running, Waiting},
			Parked:  {Queued, Parked},
		}
	case event.StepStarted, event.StepEnded, event.StepReset, event.ItemUpdated, event.TodoSnapshot, event.TodoUpdate, event.UsageUpdated, event.ErrorReported, event.LimitsUpdated, event.NetworkUpdated:
		return stay(Running, Waiting)
	case event.ItemStarted, event.ItemCompleted:
		// Our own items (the user's message, the rest of a turn that was cut off) also
		// belong to turns that no agent runs.
		return stay(Queued, Running, Waiting, Parked)
	case event.ThreadReverted:
		return stay(Idle)
	case event.NoteReported:
		return stay(Idle, Queued, Running, Waiting, Parked)
	case event.ThreadUpdated, event.ThreadDeleted, event.GoalUpdated, event.QueueAdded, event.QueueEdited, event.QueueRemoved, event.QueueReordered:
		return stay(Slots...)
	default: // ThreadCreated comes before any slot; ephemeral events are not appended
		return nil
	}
}

// Legal reports whether the table allows an event to lead from one slot to another.
func Legal(k event.Kind, from, to Slot) bool { return slices.Contains(Moves()[k][from], to) }
