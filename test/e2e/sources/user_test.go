package sources

import (
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
)

// An ordinary user chooses in the same way.
func TestAsAnOrdinaryUser(t *testing.T) {
	lab.OrdinaryUser(t, []string{"TestRun", "TestThePageChooses"})
}
