package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/identity"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/platform/spend"
	"github.com/tholehq/thole/internal/tholetest"
	"github.com/tholehq/thole/internal/unguarded"
)

// TestWhatUsersShareIsDecidedByRoles: on a server with several users budgets, secrets of a
// project, an app or the platform, and what everybody used are theirs who have a role for it.
// The user of the machine is one user among them.
func TestWhatUsersShareIsDecidedByRoles(t *testing.T) {
	if unguarded.Build {
		t.Skip("the build without guards")
	}
	kit := tholetest.New(t, tholetest.People())
	var methods map[string]daemon.Method
	g := rigOn(t, kit, func(c *httpapi.Config) {
		methods = daemon.SpendMethods(c.Spend)
		c.Methods = func(name string) httpapi.Method { return httpapi.Method(methods[name]) }
	})
	link, err := kit.People.SetupLink(ctx)
	if err != nil {
		t.Fatal(err)
	}
	root, err := kit.People.Use(ctx, link, identity.Chosen{Login: "root", Password: "correct horse battery"})
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]*caller{"root": g.login(root.ID), "local": g.me, "other": g.you}
	boss := thole.Actor{User: root.ID, Via: "cookie"}
	for name, grant := range map[string]identity.NewGrant{
		"project": {Role: authz.ProjectAdmin, Kind: authz.OnProject, On: string(thole.DefaultProject)},
		"app":     {Role: authz.AppAdmin, Kind: authz.OnApp, On: string(thole.DefaultApp)},
		"viewer":  {Role: authz.Viewer, Kind: authz.OnPlatform},
	} {
		u, _, err := kit.People.Add(ctx, boss, identity.NewUser{Login: name, Kind: identity.Service})
		if err != nil {
			t.Fatal(err)
		}
		grant.Holder, grant.To = identity.ToUser, name
		if _, err := kit.People.Grant(ctx, boss, grant); err != nil {
			t.Fatal(err)
		}
		by[name] = g.login(u.ID)
	}

	// What was used.
	ended(g, g.me.session(obj{"name": "x"}), "sim: usage in=150 out=50 ;; say hi")
	for name, c := range by {
		var out, own obj
		c.call(200, "POST", "/methods", obj{"method": spend.MethodUsage, "params": obj{"by": "session"}}, &out)
		c.call(200, "GET", "/usage", nil, &own)
		want := 0.0
		if name == "local" || name == "root" {
			want = 1
		}
		if got := out["total"].(obj)["runs"]; got != want || len(out["groups"].([]any)) != int(want) {
			t.Errorf("%s sees the usage of %v runs: %v", name, got, out)
		}
		if name != "local" && own["total"].(obj)["runs"] != 0.0 {
			t.Errorf("%s used what another one did: %v", name, own)
		}
	}

	// Budgets and secrets: who may make them, by what they are of.
	may := map[string]string{"root": " user project app platform ", "project": " project ", "app": " app "}
	allowed := func(name, of string, made int) int {
		if strings.Contains(may[name], " "+of+" ") {
			return made
		}
		return 403
	}
	subject := map[string]string{"user": string(thole.LocalUser), "project": string(thole.DefaultProject), "app": string(thole.DefaultApp)}
	for name, c := range by {
		for of, id := range subject {
			var b obj
			want := allowed(name, of, 201)
			c.call(want, "POST", "/budgets", obj{"scope": of, "subject": id, "limit_tokens": 1000000}, &b)
			if want == 201 {
				c.call(204, "DELETE", "/budgets/"+b["id"].(string), nil, nil)
			}
		}
		c.call(allowed(name, "platform", 201), "POST", "/budgets", obj{"scope": "user", "period": "day", "limit_tokens": 1000000 + len(name)}, nil)
		for _, of := range []string{"project", "app", "platform"} {
			c.call(allowed(name, of, 201), "POST", "/vault/items", obj{"name": "of-" + name, "kind": "env", "owner": of, "value": "v"}, nil)
		}
		c.call(201, "POST", "/vault/items", obj{"name": "of-" + name, "kind": "env", "value": "v"}, nil)
	}
	for name, want := range map[string]int{"root": 6, "local": 1, "other": 1, "viewer": 1, "project": 3, "app": 3} { // two of each shared owner but the platform, and one's own
		var out obj
		by[name].call(200, "GET", "/vault/items", nil, &out)
		if got := len(out["items"].([]any)); got != want {
			t.Errorf("%s lists %d secrets, want %d: %v", name, got, want, out)
		}
	}
	token, _, err := g.Sessions.NewToken(ctx, root.ID, session.Grant{Name: "act", Scope: session.ScopeAct})
	if err != nil {
		t.Fatal(err)
	}
	script := &caller{g: g, header: http.Header{"Authorization": {"Bearer " + token}}}
	script.call(403, "POST", "/budgets", obj{"scope": "app", "limit_tokens": 1}, nil)
	script.call(403, "POST", "/methods", obj{"method": spend.MethodBudgetSet, "params": obj{"scope": "app", "limit_tokens": 1}}, nil)
}
