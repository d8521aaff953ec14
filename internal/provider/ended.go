package provider

import (
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
)

// Ended is how a provider's part of a turn ended.
type Ended struct {
	Outcome thole.Outcome
	Error   *thole.TurnError
	// Deferred is the ask that was parked on disk: the turn waits for a human and
	// goes on with a Turn.Reply, in this process or another.
	Deferred thole.AskID
}

// Data is the payload of event.TurnEnded.
func (e Ended) Data() event.Data {
	return event.Data{Outcome: e.Outcome, Error: e.Error, AskID: e.Deferred}
}

// EndedOf reads it back.
func EndedOf(e event.Event) Ended {
	return Ended{Outcome: e.Outcome, Error: e.Error, Deferred: e.AskID}
}
