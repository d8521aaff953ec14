package appserver

import (
	_ "embed" // the table
	"strings"
	"sync"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
)

//go:embed actions.txt
var actionsText string

// methodActions says what a request of each method wants to do.
var methodActions = sync.OnceValue(func() map[string]authz.Action {
	all := map[string]authz.Action{}
	for line := range strings.SplitSeq(actionsText, "\n") {
		if f := strings.Fields(line); len(f) == 2 && f[0] != "#" {
			all[f[1]] = authz.Action(f[0])
		}
	}
	return all
})

// ActionOf is what a request of a method wants to do, "" for one that nobody named.
func ActionOf(method string) authz.Action { return methodActions()[method] }

// undecided names a method that does not say what it does.
func (s *Server) undecided() error {
	for name := range s.methods {
		if ActionOf(name) == "" {
			return thole.Errorf(thole.CodeInternal, "app server: method %s has no action: name it in actions.txt", name)
		}
	}
	return nil
}
