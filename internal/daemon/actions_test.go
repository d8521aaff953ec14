package daemon_test

import (
	"slices"
	"testing"

	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/daemon"
)

// A method that nobody gave an action does not get onto the socket.
func TestMethodsNameTheirAction(t *testing.T) {
	if err := daemon.Undecided(map[string]daemon.Method{"thole/new": nil}); err == nil {
		t.Error("a method without an action is served")
	}
	for _, name := range []string{"thole/thread/push", "thole/user/add", "thole/job/submit"} {
		if !slices.Contains(authz.Actions(), daemon.ActionOf(name)) {
			t.Errorf("%s has the action %q", name, daemon.ActionOf(name))
		}
	}
}
