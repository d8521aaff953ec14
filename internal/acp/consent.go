package acp

import (
	"context"
	"encoding/json"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
)

// wantedCall is a call of a tool of the editor's own servers, before it is made.
type wantedCall struct {
	tool    string
	input   json.RawMessage
	verdict chan bool // has room for one
}

func (w *wantedCall) settle(yes bool) {
	select {
	case w.verdict <- yes:
	default:
	}
}

// consents reports whether a tool of the editor's servers may be called: they run outside
// of the agent's box, so the user is asked for each in every mode but the one that never
// asks.
func (s *session) consents(ctx context.Context, tool string, input json.RawMessage) bool {
	w := &wantedCall{tool, input, make(chan bool, 1)}
	s.later(func() { s.consider(w) })
	select {
	case yes := <-w.verdict:
		return yes
	case <-s.ctx.Done():
	case <-ctx.Done(): // the call was withdrawn; so is what the editor was asked
	}
	return false
}

// consider puts a call to the user, under the ask of the thread that it is the answer of.
func (s *session) consider(w *wantedCall) {
	if s.set.profile == string(thole.ProfileFull) || s.always[w.tool] {
		w.settle(true)
		return
	}
	s.askedNow()
	for _, a := range s.asks {
		name, _, _ := strings.Cut(a.Call, " ")
		if event.AskKind(a.Kind) != event.AskTool || a.call != nil || name != w.tool {
			continue
		}
		a.call = w
		c := s.callFor(a, kindOther, oneLine(a.Call, 200))
		if len(w.input) > 0 {
			c.RawInput = w.input
		}
		s.permission(a, c, []permissionOption{
			{string(event.DecisionAllow), "Allow", "allow_once"}, {string(event.DecisionAlways), "Always allow", "allow_always"}, {string(event.DecisionDeny), "Reject", "reject_once"},
		}, func(choice string) {
			if choice == string(event.DecisionAlways) {
				s.always[w.tool] = true
			}
			w.settle(choice != string(event.DecisionDeny))
		})
		return
	}
	w.settle(false) // settled meanwhile
}
