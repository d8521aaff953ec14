package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/identity"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/tholetest"
)

// TestAccounts: set up, invite, log in by password, and nothing of it twice or by others.
func TestAccounts(t *testing.T) {
	kit := tholetest.New(t)
	var site *tholetest.Site
	people := identity.New(identity.Config{Store: kit.Store().Identities(), Ended: func(ids []string) { site.Sessions.Ended(ids) }})
	t.Cleanup(people.Close)
	methods := daemon.IdentityMethods(people, func() string { return "https://thole.example.org" })
	g := rigOn(t, kit, func(c *httpapi.Config) {
		c.Identity, c.Methods = people, func(name string) httpapi.Method { return httpapi.Method(methods[name]) }
	})
	site = g.Site
	anybody := &caller{g: g, header: http.Header{"Sec-Fetch-Site": {"same-origin"}}}
	link, err := people.SetupLink(ctx)
	if err != nil {
		t.Fatal(err)
	}
	const word = "correct horse battery"
	foreign := anybody.with("Sec-Fetch-Site", "cross-site")
	foreign.call(403, "POST", "/auth/account", obj{"code": link, "login": "evil", "password": word}, nil)
	foreign.call(403, "POST", "/auth/login", obj{"login": "root", "password": word}, nil)
	anybody.call(200, "POST", "/auth/account", obj{"code": link, "login": "root", "password": word}, nil)
	anybody.call(401, "POST", "/auth/account", obj{"code": link, "login": "again", "password": word}, nil)

	root := g.browser(obj{"login": "root", "password": word})
	var made, users obj
	root.call(200, "POST", "/methods", obj{"method": identity.MethodUserAdd, "params": obj{"login": "ada"}}, &made)
	url := made["url"].(string)
	const prefix = "https://thole.example.org/auth/account#code="
	if len(url) < len(prefix) || url[:len(prefix)] != prefix { // whatever Host a request says
		t.Fatalf("the invitation leads to %s", url)
	}
	root.call(404, "POST", "/methods", obj{"method": "thole/daemon/stop"}, nil)
	anybody.call(200, "POST", "/auth/account", obj{"code": url[len(prefix):], "password": word}, nil)
	ada := g.browser(obj{"login": "ada", "password": word})
	ada.call(403, "POST", "/methods", obj{"method": identity.MethodUserList}, &users)
	ada.call(403, "POST", "/methods", obj{"method": identity.MethodGrantAdd, "params": obj{"user": "ada", "role": "platform_admin"}}, nil)
	g.me.call(403, "POST", "/methods", obj{"method": identity.MethodUserAdd, "params": obj{"login": "eve"}}, nil) // the local user of a team's server

	// A user changes the password with the old one; what else was made with it ends, and nobody
	// tries old ones without end.
	const next = "a new horse battery"
	other := g.browser(obj{"login": "ada", "password": word})
	var script0 obj
	other.call(201, "POST", "/auth/tokens", obj{"name": "old"}, &script0)
	token0 := &caller{g: g, header: http.Header{"Authorization": {"Bearer " + script0["token"].(string)}}}
	token0.call(403, "PUT", "/auth/password", obj{"old": word, "password": next}, nil)
	ada.call(403, "PUT", "/auth/password", obj{"old": "not the old one", "password": next}, nil)
	ada.call(422, "PUT", "/auth/password", obj{"old": word, "password": "short"}, nil)
	g.me.call(403, "PUT", "/auth/password", obj{"old": "", "password": next}, nil) // who has none
	ada.call(204, "PUT", "/auth/password", obj{"old": word, "password": next}, nil)
	ada.call(200, "GET", "/auth/session", nil, nil)
	other.call(401, "GET", "/auth/session", nil, nil)
	token0.call(401, "GET", "/auth/session", nil, nil)
	anybody.call(401, "POST", "/auth/login", obj{"login": "ada", "password": word}, nil)
	g.browser(obj{"login": "ada", "password": next})

	// What one has is not there for the other, and a disabled user is out with the streams.
	id := ada.session(obj{"name": "of ada"})
	g.me.call(404, "GET", "/sessions/"+id, nil, nil)
	var token obj
	ada.call(201, "POST", "/auth/tokens", obj{"name": "ci"}, &token)
	script := &caller{g: g, header: http.Header{"Authorization": {"Bearer " + token["token"].(string)}}}
	script.call(200, "GET", "/sessions/"+id, nil, nil)
	script.call(403, "POST", "/methods", obj{"method": identity.MethodGrantList}, nil) // its scope is act
	stream := ada.stream("GET", "/sessions/"+id+"/events", nil)
	root.call(200, "POST", "/methods", obj{"method": identity.MethodUserDisable, "params": obj{"login": "ada"}}, nil)
	for _, more := stream.next(); more; _, more = stream.next() { // it ends, or the test does not
	}
	ada.call(401, "GET", "/sessions/"+id, nil, nil)
	script.call(401, "GET", "/sessions/"+id, nil, nil)
	anybody.call(401, "POST", "/auth/login", obj{"login": "ada", "password": next}, nil)

	for range 5 {
		anybody.call(401, "POST", "/auth/login", obj{"login": "nobody", "password": word}, nil)
	}
	if res := anybody.call(429, "POST", "/auth/login", obj{"login": "nobody", "password": word}, nil); res.Header.Get("Retry-After") == "" {
		t.Error("429 does not say when to come again")
	}
	for range 5 {
		root.call(403, "PUT", "/auth/password", obj{"old": "a guess of the old", "password": next}, nil)
	}
	root.call(429, "PUT", "/auth/password", obj{"old": word, "password": next}, nil)
}
