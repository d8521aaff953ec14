package thread

import (
	"slices"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
)

// pipeline is the order of phases a driver walks. It may skip what it has no
// part for, and falls back to queued when it loses the turn before its outcome.
var pipeline = []thole.Phase{
	thole.PhaseQueued, thole.PhaseClaimed, thole.PhaseRestoring, thole.PhaseLinking,
	thole.PhasePreparing, thole.PhaseRunning,
}

// phasesAfterOutcome is the order of phases after a turn's outcome.
var phasesAfterOutcome = []thole.Phase{thole.PhaseSyncing, thole.PhaseExported}

// mayEnter says whether a driver may move a turn to phase p.
func mayEnter(t *fold.Turn, p thole.Phase) bool {
	if t.Outcome != "" {
		if p == t.Outcome.Phase() {
			return !t.Phase.Terminal()
		}
		to := slices.Index(phasesAfterOutcome, p)
		return to >= 0 && !t.Phase.Terminal() && to > slices.Index(phasesAfterOutcome, t.Phase)
	}
	if p == thole.PhaseQueued { // the driver lost it: it runs again from the start of the pipeline
		return t.Phase != thole.PhaseQueued
	}
	from, to := slices.Index(pipeline, t.Phase), slices.Index(pipeline, p)
	return from >= 0 && to > from
}
