package httpapi_test

import (
	"net/http"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/identity"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/tholetest"
	"github.com/tholehq/thole/internal/unguarded"
)

// TestScopesBoundMethods: a token of an administrator that may only act manages no users.
func TestScopesBoundMethods(t *testing.T) {
	kit := tholetest.New(t, tholetest.People())
	methods := daemon.IdentityMethods(kit.People, func() string { return "https://thole.example.org" })
	g := rigOn(t, kit, func(c *httpapi.Config) {
		c.Identity, c.Methods = kit.People, func(name string) httpapi.Method { return httpapi.Method(methods[name]) }
	})
	for scope, want := range map[session.Scope]int{session.ScopeRead: 403, session.ScopeAct: 403, session.ScopeAdmin: 200} {
		secret, _, err := g.Sessions.NewToken(ctx, thole.LocalUser, session.Grant{Name: string(scope), Scope: scope})
		if err != nil {
			t.Fatal(err)
		}
		if unguarded.Build {
			want = 200
		}
		script := &caller{g: g, header: http.Header{"Authorization": {"Bearer " + secret}}}
		script.call(want, "POST", "/methods", obj{"method": identity.MethodUserAdd, "params": obj{"login": "by-" + string(scope)}}, nil)
	}
}
