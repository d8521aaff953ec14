package fold

import (
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
)

// revert takes the newest turns out of the thread. What they used stays counted, and so do
// their numbers. The agent's own session remembers them, so the thread leaves it.
func (s *State) revert(e event.Event, c *Changes) {
	t := &s.Row.Thread
	t.NativeID, t.Origin, t.Retell = "", "", true
	s.Row.LastOutcome, s.Row.Paused = "", false
	s.Todos = nil // the list is that of later work
	c.Retodo, c.Todos = true, nil
	c.Reverted = e.Data.Cut.Number
}

// retold reports whether the agent has a session that remembers the thread, after a turn
// which began with what is left of it.
func (t Turn) retold(native string) bool {
	command, _ := thole.TurnCommandOf(t.Input)
	return native != "" && command.AgentReads() && t.Outcome != thole.OutcomeFailed
}
