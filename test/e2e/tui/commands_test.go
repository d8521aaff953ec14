package tui

import (
	"slices"
	"strings"
	"testing"

	"github.com/tholehq/thole/protocol/app"
)

// A command that is declined is not run, and the turn goes on without it.
func TestCommandDeclined(t *testing.T) {
	rig, _, s := attach(t)
	s.say("sim: run echo never-printed > out ;; say went on without")
	s.wait("echo never-printed", "No, continue without running it (d)")
	s.keys("d")
	s.wait("• went on without")
	turns := turnsOf(t, rig, loaded(t, rig))
	if turns[0].Status != app.TurnCompleted {
		t.Errorf("the turn is %s", turns[0].Status)
	}
	if !slices.ContainsFunc(turns[0].Items, func(i app.Item) bool {
		return i.Type == app.ItemCommandExecution && i.Status == app.ItemDeclined
	}) {
		t.Errorf("no item is declined: %+v", turns[0].Items)
	}
}

// What a user types beside messages: the terminal stays, and says what happened.
func TestCommandsOfTheTerminal(t *testing.T) {
	_, _, s := attach(t)
	s.say("sim: say at work")
	s.wait("• at work")
	s.say("/model")
	s.wait("Select Model and Effort", "Scripted agent: Scripted (current)")
	s.keys("Enter")
	s.wait("Model changed to test/script")
	s.say("/compact")
	s.wait("• Context compacted")
	s.say("!echo from-a-shell | tr a-z A-Z")
	s.wait("• You ran echo from-a-shell", "FROM-A-SHELL")
	s.say("/review")
	s.wait("Select a review preset", "2. Review uncommitted changes")
	s.keys("2")
	s.wait("› Review the uncommitted changes", "• Review the uncommitted changes") // the agent repeats what it is told
	s.say("/stop")
	s.wait("Stopping all background terminals", "1 warning")
	s.say("/goal end well")
	s.wait("Failed to set thread goal")
	s.say("/btw sim: say aside")
	s.wait("• aside", "Side")
	s.keys("C-c")
	s.until("the main thread", func(shown string) bool { return !strings.Contains(shown, "Side") })
	s.say("sim: say still here")
	s.wait("• still here")
	if shown := s.text(); strings.Contains(shown, "unknown variant") {
		t.Errorf("a method is missing:\n%s", shown)
	}
}
