package thread

import (
	"slices"
	"sync"

	thole "github.com/tholehq/thole"
)

// slot is where a turn stands for the legality of events. It is derived from
// the turn's facts and never stored.
type slot string

const (
	slotIdle    slot = "idle"    // the thread has no open turn
	slotQueued  slot = "queued"  // open, before the agent runs
	slotRunning slot = "running" // the agent works
	slotWaiting slot = "waiting" // the agent works and at least one ask is pending
	slotParked  slot = "parked"  // waits for a human and no process holds it
	slotOver    slot = "over"    // has its outcome; the pipeline may still be behind it
)

var slots = []slot{slotIdle, slotQueued, slotRunning, slotWaiting, slotParked, slotOver}

func slotOf(t *Turn) slot {
	switch {
	case t == nil:
		return slotIdle
	case t.Outcome != "":
		return slotOver
	case t.Deferred != "":
		return slotParked
	case t.Phase == thole.PhaseRunning:
		return slotRunning
	case t.Phase == thole.PhaseWaitingHuman:
		return slotWaiting
	default:
		return slotQueued
	}
}

// moves is the transition table of turns: for each event, the slots in which it
// may be appended and the slots it may lead to from there. What is not written
// here is illegal, and the fold refuses it.
var moves = sync.OnceValue(func() map[Kind]map[slot][]slot {
	table := map[Kind]map[slot][]slot{}
	for _, k := range kinds {
		table[k] = movesOf(k)
	}
	return table
})

func movesOf(k Kind) map[slot][]slot {
	stay := func(in ...slot) map[slot][]slot {
		m := map[slot][]slot{}
		for _, s := range in {
			m[s] = []slot{s}
		}
		return m
	}
	switch k {
	case TurnStarted:
		return map[slot][]slot{slotIdle: {slotQueued}}
	case TurnPhase:
		return map[slot][]slot{
			slotQueued:  {slotQueued, slotRunning},
			slotRunning: {slotQueued},
			slotWaiting: {slotParked},
			slotOver:    {slotOver},
		}
	case TurnSteered, SteerRefused, TurnInterrupt:
		return stay(slotQueued, slotRunning, slotWaiting, slotParked)
	case TurnEnded:
		return map[slot][]slot{
			slotQueued: {slotOver}, slotRunning: {slotOver}, slotWaiting: {slotOver}, slotParked: {slotOver},
		}
	case AskRequested:
		return map[slot][]slot{slotRunning: {slotWaiting}, slotWaiting: {slotWaiting}}
	case AskResolved:
		return map[slot][]slot{
			slotRunning: {slotRunning}, // the agent had answered it itself
			slotWaiting: {slotRunning, slotWaiting},
			slotParked:  {slotQueued, slotParked},
		}
	case StepStarted, StepEnded, StepReset, ItemUpdated, TodoSnapshot, TodoUpdate, UsageUpdated, ErrorReported:
		return stay(slotRunning, slotWaiting)
	case ItemStarted, ItemCompleted:
		// Our own items (the user's message, the rest of a turn that was cut off) also
		// belong to turns that no agent runs.
		return stay(slotQueued, slotRunning, slotWaiting, slotParked)
	case NoteReported:
		return stay(slotIdle, slotQueued, slotRunning, slotWaiting, slotParked)
	case ThreadUpdated, ThreadDeleted, QueueAdded, QueueEdited, QueueRemoved, QueueReordered:
		return stay(slots...)
	default: // ThreadCreated comes before any slot; ephemeral events are not appended
		return nil
	}
}

func legal(k Kind, from, to slot) bool { return slices.Contains(moves()[k][from], to) }

// pipeline is the order of phases a driver walks. It may skip what it has no
// part for, and falls back to queued when it loses the turn before its outcome.
var pipeline = []thole.Phase{
	thole.PhaseQueued, thole.PhaseClaimed, thole.PhaseRestoring, thole.PhaseLinking,
	thole.PhasePreparing, thole.PhaseRunning,
}

// aftermath is the order of phases behind a turn's outcome.
var aftermath = []thole.Phase{thole.PhaseSyncing, thole.PhaseExported}

// mayEnter says whether a driver may move a turn to phase p.
func mayEnter(t *Turn, p thole.Phase) bool {
	if t.Outcome != "" {
		if p == t.Outcome.Phase() {
			return !t.Phase.Terminal()
		}
		to := slices.Index(aftermath, p)
		return to >= 0 && !t.Phase.Terminal() && to > slices.Index(aftermath, t.Phase)
	}
	if p == thole.PhaseQueued { // the driver lost it: it runs again from the start of the pipeline
		return t.Phase != thole.PhaseQueued
	}
	from, to := slices.Index(pipeline, t.Phase), slices.Index(pipeline, p)
	return from >= 0 && to > from
}

// askMove is the transition table of asks: pending moves once, to exactly one
// of the others. That the agent answered itself is found out also afterwards.
func askMove(from, to thole.AskState) bool {
	switch to {
	case thole.AskAnswered, thole.AskExpired, thole.AskCanceled:
		return from == thole.AskPending
	case thole.AskSelfAnswered:
		return from != thole.AskSelfAnswered
	}
	return false
}
