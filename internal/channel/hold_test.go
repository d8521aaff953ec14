package channel_test

import (
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/channel"
)

// A refusal that lasts is held for a reason of its own, and everything else by policy: never
// for one that says that something arrived.
func TestRefusalsAreHeldFor(t *testing.T) {
	own := map[channel.Reason]thole.HoldReason{
		channel.ReasonNoThread: thole.HoldNoThread, channel.ReasonOtherHome: thole.HoldOtherHome, channel.ReasonUnfitThread: thole.HoldUnfitThread,
		channel.ReasonNoChannel: thole.HoldNoChannel, channel.ReasonNoServer: thole.HoldNoServer,
	}
	for r, want := range own {
		if got := r.Hold(); got != want {
			t.Errorf("%s is held for %s, want %s", r, got, want)
		}
	}
	for _, r := range []channel.Reason{channel.ReasonPolicy, channel.ReasonPermissions, channel.ReasonDrift, channel.ReasonUnknown, ""} {
		if got := r.Hold(); got != thole.HoldPolicy {
			t.Errorf("%s is held for %s", r, got)
		}
	}
}
