package provider

import (
	"encoding/json"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
)

// Elicitation is the ask for an MCP server that wants data from the user: in the
// shape of schema, or at an address to visit.
func Elicitation(id thole.AskID, server, message, url string, schema json.RawMessage) event.Ask {
	return event.Ask{ID: id, Kind: event.AskElicitation, Title: server + " asks", Reason: strings.TrimSpace(message + " " + url), Schema: schema,
		Decisions: []event.Decision{event.DecisionAllow, event.DecisionDeny, event.DecisionCancel}}
}

// Elicited is its answer as MCP words it.
func Elicited(a event.Answer) map[string]any {
	switch a.Decision {
	case event.DecisionAllow, event.DecisionAlways:
		return map[string]any{"action": "accept", "content": a.Result}
	case event.DecisionCancel:
		return map[string]any{"action": "cancel", "content": nil}
	}
	return map[string]any{"action": "decline", "content": nil}
}
