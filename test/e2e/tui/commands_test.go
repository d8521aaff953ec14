package tui

import (
	"strings"
	"testing"
)

// What a user types besides messages: the terminal stays, and says what happened.
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
	s.rests("FROM-A-SHELL") // nothing is reviewed during a turn
	s.say("/review")
	s.wait("Select a review preset", "2. Review uncommitted changes")
	s.keys("2")
	s.wait("Code review started: current changes", "• Before this message the user ran", "(exit code 0)", "  Review the uncommitted changes", "Code review finished") // the agent repeats what it reads
	s.say("/stop")
	s.wait("Stopping all background terminals", "1 warning")
	s.say("/goal")
	s.wait("Usage: /goal")
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
