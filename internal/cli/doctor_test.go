package cli

import (
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/doctor"
)

func TestFindingsStandInColumns(t *testing.T) {
	var b strings.Builder
	printFindings(&b, []doctor.Finding{
		{Part: "home", OK: true, Found: "at home"}, {Part: "credential opencode", Problem: "at all", Disables: "at least", Fix: "at once"},
	})
	at := -1
	for line := range strings.Lines(b.String()) {
		line = strings.NewReplacer("disables ", "", "try: ", "").Replace(line)
		if i := strings.Index(line, "at "); at >= 0 && i != at {
			t.Errorf("a line begins elsewhere:\n%s", b.String())
		} else {
			at = i
		}
	}
}
