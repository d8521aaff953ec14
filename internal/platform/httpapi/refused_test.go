package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/audit/anchor"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/tholetest"
)

// TestRequestsAreLinksOfTheChain: who logs in, makes and revokes, with what and from where;
// a request that is refused is a link, and one without any proof is not.
func TestRequestsAreLinksOfTheChain(t *testing.T) {
	var trail *audit.Log
	kit := tholetest.New(t)
	g := rigOn(t, kit, func(c *httpapi.Config) {
		trail = audit.New(kit.Store().Audit(), anchor.Dir(t.TempDir()), nil, nil)
		c.Audit = trail
	})
	var made obj
	g.me.call(201, "POST", "/auth/tokens", obj{"name": "ci", "scope": "read"}, &made)
	reader := &caller{g: g, header: http.Header{"Authorization": {"Bearer " + made["token"].(string)}}}
	reader.call(403, "GET", "/auth/logins", nil, nil)
	stranger := &caller{g: g, header: http.Header{"Authorization": {"Bearer thole_none"}}}
	stranger.call(401, "GET", "/sessions", nil, nil)
	(&caller{g: g}).call(401, "GET", "/sessions", nil, nil)
	g.me.call(204, "DELETE", "/auth/tokens/"+made["id"].(string), nil, nil)

	var got []string
	links, err := trail.Links(ctx, 0, 500)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if l.Action == "login.link" || l.Via == "" && l.Outcome == audit.Allowed { // of the rig
			continue
		}
		by := map[string]string{string(thole.LocalUser): "me", string(otherUser): "you", "": "nobody"}[l.Actor]
		with := map[string]string{g.me.id: "browser", g.you.id: "browser", made["id"].(string): "token", "": "nothing"}[l.Login]
		if l.Address != "127.0.0.1" {
			t.Errorf("%+v", l)
		}
		if strings.Contains(audit.Facts(l), made["token"].(string)) {
			t.Errorf("a link has a secret: %+v", l)
		}
		got = append(got, strings.Join([]string{by, with, l.Via, l.Action, string(l.Outcome)}, " "))
	}
	want := []string{
		"me browser cookie login.begin allowed", "you browser cookie login.begin allowed", "me browser cookie token.create allowed",
		"me token token http.request denied", "nobody nothing  http.request denied", "me browser cookie token.revoke allowed",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Fatalf("the chain is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
