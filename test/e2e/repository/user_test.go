package repository

import (
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
)

// An ordinary user's agents are that user, and nothing is shown through another one's eyes.
func TestAsAnOrdinaryUser(t *testing.T) {
	lab.OrdinaryUser(t, []string{"TestWorkOnAPackage", "TestAHostileRepository", "TestTwoAgentsHere"}, "codex", "claude", "opencode")
}
