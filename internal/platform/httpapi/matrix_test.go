package httpapi_test

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/identity"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/tholetest"
)

// absent is an id that nothing has.
const absent = "01900000-0000-7000-8000-0000000000ff"

// foreign are the parameters that name a thread or something in one.
var foreign = regexp.MustCompile(`\{(session_id|chat_id|run_id)\}`)

// people are the actors of the matrix, besides the owner: their grants in the words of the
// table, and what these make of things of the local user.
func people(t *testing.T, g *rig, kit *tholetest.Kit) (by map[string]*caller, subjects map[string]authz.Subject) {
	t.Helper()
	by, subjects = map[string]*caller{"owner": g.me}, map[string]authz.Subject{"owner": {User: thole.LocalUser, Active: true}}
	for name, grants := range map[string][]identity.NewGrant{
		"stranger": nil,
		"member":   {{Role: authz.Member, Kind: authz.OnProject, On: string(thole.DefaultProject)}},
		"manager":  {{Role: authz.ProjectAdmin, Kind: authz.OnProject, On: string(thole.DefaultProject)}, {Role: authz.AppAdmin, Kind: authz.OnApp, On: string(thole.DefaultApp)}},
		"viewer":   {{Role: authz.Viewer, Kind: authz.OnUser, On: string(thole.LocalUser)}},
		"admin":    {{Role: authz.PlatformAdmin, Kind: authz.OnPlatform}},
	} {
		u, _, err := kit.People.Add(ctx, thole.LocalActor, identity.NewUser{Login: name, Kind: identity.Service})
		if err != nil {
			t.Fatal(err)
		}
		s := authz.Subject{User: u.ID, Active: true}
		for _, n := range grants {
			n.Holder, n.To = identity.ToUser, name
			if name == "viewer" { // through a department, as teams do
				if _, err := kit.People.AddDepartment(ctx, thole.LocalActor, "readers", "", ""); err != nil {
					t.Fatal(err)
				}
				if err := kit.People.SetMember(ctx, thole.LocalActor, "readers", name, true); err != nil {
					t.Fatal(err)
				}
				n.Holder, n.To = identity.ToDepartment, "readers"
			}
			if _, err := kit.People.Grant(ctx, thole.LocalActor, n); err != nil {
				t.Fatal(err)
			}
			s.Grants = append(s.Grants, authz.Grant{Role: n.Role, Kind: n.Kind, ID: n.On})
		}
		by[name], subjects[name] = g.login(u.ID), s
	}
	return by, subjects
}

// TestMatrix calls every route that names a thread as every kind of user. What the table says
// of the route's action decides: who may not see the thread gets what is answered for one that
// there is not, who may see it and not do that is refused, and the others are not.
func TestMatrix(t *testing.T) {
	kit := tholetest.New(t, tholetest.People())
	g := rigOn(t, kit, deliveries(thole.LocalUser))
	by, subjects := people(t, g, kit)
	ids := mine(g)
	none := map[string]string{}
	for k, v := range ids {
		none[k] = v
		if k == "session_id" || k == "chat_id" || k == "run_id" {
			none[k] = absent
		}
	}
	ask := func(c *caller, rt httpapi.Route, ids map[string]string) (int, string) {
		t.Helper()
		wait, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		res, err := http.DefaultClient.Do(c.request(rt.Method, fill(rt.Path, ids), bodies(ids)[rt.Method+" "+rt.Path]).WithContext(wait))
		if err != nil {
			t.Fatalf("%s %s: %v", rt.Method, rt.Path, err)
		}
		defer func() { _ = res.Body.Close() }()
		if res.StatusCode == 200 && strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
			return 200, ""
		}
		b, _ := io.ReadAll(res.Body)
		return res.StatusCode, regexp.MustCompile(`"trace_id":"[^"]*"|"instance":"[^"]*"`).ReplaceAllString(strings.NewReplacer(ids["session_id"], "ID", ids["run_id"], "ID").Replace(string(b)), "")
	}
	thing := authz.Of(thole.Owner{App: thole.DefaultApp, Project: thole.DefaultProject, User: thole.LocalUser})
	tried := 0
	judge := func(who string, rt httpapi.Route) {
		t.Helper()
		tried++
		name := who + ": " + rt.Method + " " + rt.Path
		sees, _ := authz.Can(subjects[who], authz.ViewThread, thing)
		may, _ := authz.Can(subjects[who], rt.Action, thing)
		status, body := ask(by[who], rt, ids)
		switch {
		case !sees:
			if want, text := ask(by[who], rt, none); status != want || body != text {
				t.Errorf("%s is answered %d %s, and of what is not there %d %s", name, status, body, want, text)
			}
			if strings.Contains(body, secret) || status < 400 && !strings.HasPrefix(rt.Path, "/api/chat") {
				t.Errorf("%s: %d %s", name, status, body)
			}
		case !may && status != 403:
			t.Errorf("%s has no right to %s and gets %d %s", name, rt.Action, status, body)
		case may && (status == 401 || status == 403 || status >= 500 && status != 501 || status == 404 && rt.Method == "GET" && !strings.Contains(rt.Path, "output")):
			t.Errorf("%s may %s and gets %d %s", name, rt.Action, status, body)
		}
	}
	var read, act []httpapi.Route
	for _, rt := range g.HTTP.Routes() {
		switch {
		case !foreign.MatchString(rt.Path) || rt.Shared:
		case rt.Method == "GET":
			read = append(read, rt)
		default:
			act = append(act, rt)
		}
	}
	for _, who := range []string{"stranger", "member", "manager", "viewer", "admin", "owner"} {
		for _, rt := range read {
			judge(who, rt)
		}
	}
	for _, who := range []string{"stranger", "member", "manager", "viewer"} {
		for _, rt := range act {
			judge(who, rt)
		}
	}
	var still obj // and nothing of it happened
	g.me.call(200, "GET", "/sessions/"+ids["session_id"]+"/snapshot", nil, &still)
	if still["session"].(obj)["name"] != secret || len(still["queue"].([]any)) != 1 || len(still["questions"].([]any)) != 1 || still["active_run"].(obj)["interrupt_requested"] != false {
		t.Errorf("what was refused had an effect: %v", still)
	}
	for _, who := range []string{"admin", "owner"} {
		for _, rt := range act {
			if rt.Method != "DELETE" && !strings.HasSuffix(rt.Path, "/fork") && !strings.Contains(rt.Path, "/api/chat") {
				judge(who, rt)
			}
		}
	}
	if tried < 300 {
		t.Errorf("only %d cells", tried)
	}

	// Ids in bodies, queries and lists.
	for who, c := range by {
		sees, _ := authz.Can(subjects[who], authz.ViewThread, thing)
		var all obj
		c.call(200, "GET", "/sessions?everybody=true", nil, &all)
		if got := len(all["items"].([]any)) > 0; got != sees {
			t.Errorf("%s lists the thread: %v", who, got)
		}
		want := 404
		if sees {
			want = 200
		}
		res, err := http.DefaultClient.Do(c.request("GET", "/events?sessions="+ids["session_id"], nil))
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != want {
			t.Errorf("%s follows the thread: %d", who, res.StatusCode)
		}
		_ = res.Body.Close()
	}
	// A right that is taken away ends what it opened.
	grants, err := kit.People.Grants(ctx, thole.LocalActor)
	if err != nil {
		t.Fatal(err)
	}
	stream := by["viewer"].stream("GET", "/sessions/"+ids["session_id"]+"/events", nil)
	for _, gr := range grants {
		if gr.Role == authz.Viewer {
			if err := kit.People.Revoke(ctx, thole.LocalActor, gr.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	stream.until(func(e sseEvent) bool { return e.name == "end" })
	by["viewer"].call(404, "GET", "/sessions/"+ids["session_id"], nil, nil)
}
