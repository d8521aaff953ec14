package httpapi

import (
	_ "embed" // the table
	"fmt"
	"strings"
	"sync"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/platform/session"
)

//go:embed actions.txt
var actionsText string

// actions says what a request to each route wants to do. A route that is not in the file is
// not served.
var actions = sync.OnceValue(func() map[string]authz.Action {
	all := map[string]authz.Action{}
	for line := range strings.SplitSeq(actionsText, "\n") {
		if f := strings.Fields(line); len(f) == 3 && f[0] != "#" {
			all[f[1]+" "+f[2]] = authz.Action(f[0])
		}
	}
	return all
})

// undecided names the routes that neither say what they do nor why anybody may.
func (m *router) undecided() error {
	for pattern, rt := range m.routes {
		if rt.Action == "" && rt.Public == "" && !rt.Shared {
			return fmt.Errorf("route %s has no action: name it in actions.txt", pattern)
		}
	}
	return nil
}

// may decides whether a caller may do at all what a route does, with things of their own.
// Whose the thing of the request is, its service asks.
func may(w who, a authz.Action) error {
	s := authz.Subject{User: w.actor.User, Active: true, Token: string(w.by.Scope)} // who is disabled has no login and no token
	ok, why := authz.Can(s, a, authz.Resource{Owner: w.actor.User})
	if ok {
		return nil
	}
	for _, need := range []session.Scope{session.ScopeJobs, session.ScopeRead, session.ScopeAct, session.ScopeAdmin} {
		s.Token = string(need)
		if ok, _ := authz.Can(s, a, authz.Resource{Owner: w.actor.User}); ok {
			return thole.Errorf(thole.CodeForbidden, "this needs scope %s; the login or token has %s", need, w.by.Scope)
		}
	}
	return thole.Errorf(thole.CodeForbidden, "%s", why)
}
