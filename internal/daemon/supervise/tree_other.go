//go:build !linux

package supervise

import thole "github.com/tholehq/thole"

// Check refuses: only Linux gives a supervisor every descendant whose own parent
// dies. Elsewhere one that forks twice would outlive a cancel that says everything
// was ended.
func Check() error {
	return thole.Errorf(thole.CodeUnsupported, "commands are supervised on Linux only: elsewhere a descendant can escape").
		WithHint("run the command yourself and report it with thole job submit and thole job complete")
}

func adoptOrphans() error { return Check() }

// descendants has nothing to list where nothing is supervised.
func descendants(int) []int { return nil }
