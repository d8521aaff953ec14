package appserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/tholetest"
	"github.com/tholehq/thole/protocol/app"
)

// agents say what they have, or not.
type agents struct{ err error }

func (a agents) Running(context.Context, thole.ThreadID) (provider.Inventory, error) {
	return provider.Inventory{Skills: []provider.Skill{{Name: "by-its-word"}}}, a.err
}

func (a agents) Call(_ context.Context, _ thole.ThreadID, call provider.ServerCall) (json.RawMessage, error) {
	switch {
	case a.err != nil:
		return nil, a.err
	case call.Server == "broken":
		return json.RawMessage(`{"content":7,"contents":7}`), nil
	case call.Tool != "":
		return json.RawMessage(`{"content":[{"type":"text","text":"` + call.Server + "." + call.Tool + `"}],"structuredContent":` + string(call.Arguments) + `,"isError":false}`), nil
	}
	return json.RawMessage(`{"contents":[{"uri":"` + call.URI + `","text":"read"}]}`), nil
}

// A client calls a tool of an agent's server and reads a resource, of a thread that it may
// use and whose agent runs.
func TestServersOfAnAgent(t *testing.T) {
	w := join(t, tholetest.New(t, tholetest.Has(agents{})), full)
	id := w.thread(`{}`)
	if got, _ := json.Marshal(w.ok("mcpServer/tool/call", ofThread(id, `"server":"shop","tool":"price","arguments":{"of": "tea"}`))); string(got) != `{"content":[{"text":"shop.price","type":"text"}],"isError":false,"structuredContent":{"of":"tea"}}` {
		t.Errorf("the tool answers %s", got)
	}
	if got, _ := json.Marshal(w.ok("mcpServer/resource/read", ofThread(id, `"server":"shop","uri":"x:/y"`))); string(got) != `{"contents":[{"text":"read","uri":"x:/y"}]}` {
		t.Errorf("the resource is %s", got)
	}
	for params, want := range map[string]string{
		ofThread(id, `"server":"broken","uri":"u"`):                                "cannot be read",
		ofThread(id, `"server":"s","uri":"u","connectorId":"c"`):                   "connectorId is not supported",
		`{"server":"s","uri":"u"}`:                                                 "needs a threadId",
		ofThread("01a1e55a-f641-71ed-b6b5-ec3c44535040", `"server":"s","uri":"u"`): "not found",
		ofThread(id, `"server":"s"`):                                               "missing field `uri`",
	} {
		if err := w.refused("mcpServer/resource/read", params); !strings.Contains(err.Message, want) {
			t.Errorf("%s: %s", params, err.Message)
		}
	}
	idle := join(t, tholetest.New(t, tholetest.Has(agents{thole.Errorf(thole.CodeConflict, "none runs")})), full)
	if err := idle.refused("mcpServer/tool/call", ofThread(idle.thread(`{}`), `"server":"s","tool":"t"`)); !strings.Contains(err.Message, "none runs") {
		t.Error(err.Message)
	}
}

func (a agents) Laid(string, string) provider.Inventory {
	return provider.Inventory{Skills: []provider.Skill{{Name: "by-configuration"}}}
}

// A thread's agent is asked while it runs; otherwise, and when it does not answer, its
// configuration counts. Nothing of the user's is said of a thread that is not there.
func TestWhatAgentsHave(t *testing.T) {
	for _, c := range []struct {
		err         error
		skill, warn string
	}{
		{nil, "by-its-word", "[]"},
		{thole.Errorf(thole.CodeConflict, "none runs"), "by-configuration", "[]"},
		{thole.Errorf(thole.CodeUnavailable, "it hangs"), "by-configuration", `["The running agent did not answer; this is what its configuration says."]`},
	} {
		w := join(t, tholetest.New(t, tholetest.Has(agents{c.err})), full)
		var started app.ThreadView
		ask(t, w, "thread/start", `{}`, &started)
		var skills app.SkillsListResult
		ask(t, w, "skills/list", fmt.Sprintf(`{"cwds":[%q,"/elsewhere"]}`, started.Cwd), &skills)
		if len(skills.Data) != 2 || skills.Data[0].Skills[0].Name != c.skill || skills.Data[1].Skills[0].Name != "by-configuration" {
			t.Errorf("%v: %+v", c.err, skills)
		}
		tui := connect(t, w.rig.Stream())
		tui.ok("initialize", `{"clientInfo":{"name":"codex-tui","version":"0.166.0"}}`)
		tui.ok("thread/resume", ofThread(started.Thread.ID))
		for _, cwds := range []string{`["/elsewhere"]`, `[]`} {
			skills = app.SkillsListResult{}
			ask(t, tui, "skills/list", `{"cwds":`+cwds+`}`, &skills)
			if last := skills.Data[len(skills.Data)-1]; last.Cwd != started.Cwd || last.Skills[0].Name != c.skill {
				t.Errorf("a TUI that asks for %s hears %+v", cwds, skills)
			}
		}
		var hooks app.HooksListResult
		ask(t, w, "hooks/list", fmt.Sprintf(`{"threadId":%q}`, started.Thread.ID), &hooks)
		warned, _ := json.Marshal(hooks.Data[0].Warnings)
		if len(hooks.Data) != 1 || hooks.Data[0].Cwd != started.Cwd || string(warned) != c.warn {
			t.Errorf("%v: %+v", c.err, hooks)
		}
		if c.err != nil {
			continue
		}
		for params, want := range map[string]string{
			fmt.Sprintf(`{"threadId":%q,"cwds":["/"]}`, started.Thread.ID): "specify either threadId or cwds",
			`{"threadId":"01a1e55a-f641-71ed-b6b5-ec3c44535040"}`:          "not found",
		} {
			if err := w.refused("hooks/list", params); !strings.Contains(err.Message, want) {
				t.Errorf("%s: %s", params, err.Message)
			}
		}
	}
}

// ask calls a method and reads its answer.
func ask(t *testing.T, w *wire, method, params string, out any) {
	t.Helper()
	_, m := w.call(method, params)
	if m.Error != nil {
		t.Fatal(m.Error)
	}
	if err := json.Unmarshal(m.Result, out); err != nil {
		t.Fatal(err)
	}
}
