package event

import thole "github.com/tholehq/thole"

// legacyKinds are the names that executors of earlier versions write into their
// logs. An executor outlives the server that started it, so a newer server reads
// them.
var legacyKinds = map[Kind]Kind{
	"session": ThreadUpdated,
	"usage":   UsageUpdated,
	"error":   ErrorReported,
	"note":    NoteReported,
	"steered": SteerTaken,
	"ended":   TurnEnded,
}

// LegacyEnd is how earlier versions wrote the end of a turn.
type LegacyEnd struct {
	Outcome  thole.Outcome    `json:"outcome"`
	Error    *thole.TurnError `json:"error,omitempty"`
	Deferred thole.AskID      `json:"deferred,omitempty"`
}

// Reported is an event as a line of an executor's log: of this version, or of an
// earlier one.
type Reported struct {
	Event
	End *LegacyEnd `json:"ended,omitempty"`
}

// Current returns the event in today's form.
func (r Reported) Current() Event {
	e := r.Event
	if k, ok := legacyKinds[e.Kind]; ok {
		e.Kind = k
	}
	if r.End != nil {
		e.Outcome, e.Error, e.AskID = r.End.Outcome, r.End.Error, r.End.Deferred
	}
	return e
}
