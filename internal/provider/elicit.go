package provider

import (
	"encoding/json"
	"strings"

	thole "github.com/tholehq/thole"
)

// Elicitation is the ask for an MCP server that wants data from the user: in the
// shape of schema, or at an address to visit.
func Elicitation(id thole.AskID, server, message, url string, schema json.RawMessage) thole.Ask {
	return thole.Ask{ID: id, Kind: thole.AskElicitation, Title: server + " asks", Reason: strings.TrimSpace(message + " " + url), Schema: schema,
		Decisions: []thole.Decision{thole.DecisionAllow, thole.DecisionDeny, thole.DecisionCancel}}
}

// Elicited is its answer as MCP words it.
func Elicited(a thole.Answer) map[string]any {
	switch a.Decision {
	case thole.DecisionAllow, thole.DecisionAlways:
		return map[string]any{"action": "accept", "content": a.Result}
	case thole.DecisionCancel:
		return map[string]any{"action": "cancel", "content": nil}
	}
	return map[string]any{"action": "decline", "content": nil}
}
