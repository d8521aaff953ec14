package jobs

import (
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
)

// An ordinary user's jobs run in boxes too.
func TestAsAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	lab.OrdinaryUser(t, []string{"TestInThread", "TestToolsOfCodex"}, "codex")
}
