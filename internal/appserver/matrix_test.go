package appserver_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/appserver"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/identity"
	"github.com/tholehq/thole/internal/tholetest"
	"github.com/tholehq/thole/protocol/app"
)

// members are what a request needs besides its thread, to be about something.
var members = map[string]string{
	"command/exec":                         `"command":["true"],"cwd":"/workspace"`,
	"fs/copy":                              `"sourcePath":"/workspace/a","destinationPath":"/workspace/b","recursive":false`,
	"fs/createDirectory":                   `"path":"/workspace/d"`,
	"fs/getMetadata":                       `"path":"/workspace/a"`,
	"fs/readDirectory":                     `"path":"/workspace"`,
	"fs/readFile":                          `"path":"/workspace/a"`,
	"fs/remove":                            `"path":"/workspace/a"`,
	"fs/watch":                             `"path":"/workspace","watchId":"w"`,
	"fs/writeFile":                         `"path":"/workspace/a","dataBase64":""`,
	"fuzzyFileSearch":                      `"query":"a","roots":["/workspace"]`,
	"fuzzyFileSearch/sessionStart":         `"sessionId":"s","roots":["/workspace"]`,
	"mcpServer/resource/read":              `"server":"s","uri":"u"`,
	"mcpServer/tool/call":                  `"server":"s","tool":"t"`,
	"review/start":                         `"target":{"type":"uncommittedChanges"}`,
	"thole/ask/answer":                     `"askId":"a","answer":{"decision":"deny"}`,
	"thole/turn/startIfIdle":               `"input":[{"type":"text","text":"x"}]`,
	"thread/backgroundTerminals/terminate": `"processId":"1"`,
	"thread/goal/set":                      `"objective":"x"`,
	"thread/inject_items":                  `"items":[{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}]}]`,
	"thread/name/set":                      `"name":"taken"`,
	"thread/revert":                        `"beforeTurnId":"t"`,
	"thread/queue/add":                     `"input":[{"type":"text","text":"x"}],"clientUserMessageId":"c"`,
	"thread/queue/delete":                  `"queuedSubmissionId":"q"`,
	"thread/queue/reorder":                 `"queuedSubmissionIds":[]`,
	"thread/queue/start":                   `"queuedSubmissionId":"q"`,
	"thole/queue/promote":                  `"queuedSubmissionId":"q"`,
	"thread/queue/update":                  `"queuedSubmissionId":"q","input":[{"type":"text","text":"x"}]`,
	"thread/metadata/update":               `"gitInfo":{"branch":"b"}`,
	"thread/section/move":                  `"sectionId":null`,
	"thread/shellCommand":                  `"command":"true"`,
	"turn/interrupt":                       `"turnId":"t"`,
	"turn/start":                           `"input":[{"type":"text","text":"x"}]`,
	"turn/steer":                           `"input":[{"type":"text","text":"x"}],"expectedTurnId":"t"`,
}

// freely are methods whose thread is a wish, or that answer the same whatever it is.
var freely = map[string]string{
	"thread/start":          "the id is that of a new thread",
	"thread/unsubscribe":    "nobody is subscribed to what they may not see",
	"mcpServer/oauth/login": "refused always",
	"mcpServerStatus/list":  "lists those of the thread, none where there is none",
}

func names(t reflect.Type, name string) bool {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous && names(f.Type, name) || strings.Split(f.Tag.Get("json"), ",")[0] == name {
			return true
		}
	}
	return false
}

// TestMatrix makes every request that names a thread as every kind of user, for a thread that
// is another's: what the table says of the request's action decides.
func TestMatrix(t *testing.T) {
	kit := tholetest.New(t, tholetest.People())
	owner := join(t, kit, full)
	id := owner.thread(`{}`)
	const absent = "01900000-0000-7000-8000-0000000000ff"
	thing := authz.Of(thole.Owner{App: thole.DefaultApp, Project: thole.DefaultProject, User: thole.LocalUser})
	cells := 0
	for name, grant := range map[string]identity.NewGrant{
		"stranger": {}, "member": {Role: authz.Member, Kind: authz.OnProject, On: string(thole.DefaultProject)},
		"manager": {Role: authz.AppAdmin, Kind: authz.OnApp, On: string(thole.DefaultApp)}, "viewer": {Role: authz.Viewer, Kind: authz.OnUser, On: string(thole.LocalUser)},
	} {
		u, _, err := kit.People.Add(t.Context(), thole.LocalActor, identity.NewUser{Login: name, Kind: identity.Service})
		if err != nil {
			t.Fatal(err)
		}
		s := authz.Subject{User: u.ID, Active: true}
		if grant.Role != "" {
			grant.Holder, grant.To = identity.ToUser, name
			if _, err := kit.People.Grant(t.Context(), thole.LocalActor, grant); err != nil {
				t.Fatal(err)
			}
			s.Grants = []authz.Grant{{Role: grant.Role, Kind: grant.Kind, ID: grant.On}}
		}
		w := connect(t, kit.StreamOf(thole.Actor{User: u.ID, Via: "token"}))
		w.ok("initialize", `{"clientInfo":{"name":"test","version":"1"},"capabilities":`+full+`}`)
		ask := func(method, id string) string {
			_, m := w.call(method, ofThread(id, slices.DeleteFunc([]string{members[method]}, func(s string) bool { return s == "" })...))
			if m.Error == nil {
				return "ok"
			}
			return strings.ReplaceAll(m.Error.Message, id, "ID")
		}
		for _, m := range app.Methods() {
			if m.Direction != app.FromClient || m.Params == nil || !names(reflect.TypeOf(m.Params), "threadId") || freely[m.Name] != "" {
				continue
			}
			cells++
			sees, _ := authz.Can(s, authz.ViewThread, thing)
			may, _ := authz.Can(s, appserver.ActionOf(m.Name), thing)
			got := ask(m.Name, id)
			switch {
			case strings.Contains(got, "Invalid request"):
				t.Fatalf("%s needs more members: %s", m.Name, got)
			case !sees && got != ask(m.Name, absent):
				t.Errorf("%s: %s of another's thread is answered %q, of none %q", name, m.Name, got, ask(m.Name, absent))
			case !sees && got == "ok":
				t.Errorf("%s: %s is answered", name, m.Name)
			case sees && !may && !strings.Contains(got, "this needs the right to"):
				t.Errorf("%s: %s without the right to %s: %q", name, m.Name, appserver.ActionOf(m.Name), got)
			case may && strings.Contains(got, "this needs the right to"):
				t.Errorf("%s may %s: %s", name, m.Name, got)
			}
		}
	}
	if cells < 4*40 {
		t.Errorf("only %d cells", cells)
	}
	if got := owner.ok("thread/read", ofThread(id, `"includeTurns":true`))["thread"].(map[string]any); got["name"] != nil || len(got["turns"].([]any)) != 0 {
		t.Errorf("what was refused had an effect: %v", got)
	}
}

// TestEveryMethodNamesItsAction, one that there is.
func TestEveryMethodNamesItsAction(t *testing.T) {
	for _, m := range app.Methods() {
		if a := appserver.ActionOf(m.Name); m.Direction == app.FromClient && !slices.Contains(authz.Actions(), a) {
			t.Errorf("%s has the action %q: name one in actions.txt", m.Name, a)
		}
	}
}
