package daemon

import (
	_ "embed" // the table
	"strings"
	"sync"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
)

//go:embed actions.txt
var actionsText string

var actions = sync.OnceValue(func() map[string]authz.Action {
	all := map[string]authz.Action{}
	for line := range strings.SplitSeq(actionsText, "\n") {
		if f := strings.Fields(line); len(f) == 2 && f[0] != "#" {
			all[f[1]] = authz.Action(f[0])
		}
	}
	return all
})

// ActionOf is what a call of a method wants to do, "" for one that nobody named.
func ActionOf(method string) authz.Action { return actions()[method] }

// Undecided refuses methods of which one does not say what it does.
func Undecided(methods map[string]Method) error {
	for name := range methods {
		if ActionOf(name) == "" {
			return thole.Errorf(thole.CodeInternal, "method %s has no action: name it in internal/daemon/actions.txt", name)
		}
	}
	return nil
}
