package appserver_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/tholetest"
)

// A goal is answered before it is announced, works in turns without a message, and is
// paused by who interrupts one.
func TestGoal(t *testing.T) {
	w := join(t, tholetest.New(t), full)
	id := w.thread(`{}`)
	in := `{"threadId":"` + id + `"`
	if got := w.ok("thread/goal/get", in+`}`); got["goal"] != nil {
		t.Fatalf("%v", got)
	}
	from := w.len()
	set := w.ok("thread/goal/set", in+`,"objective":"sim: say going ;; hang","status":"active","origin":"user","tokenBudget":100000}`)["goal"].(map[string]any)
	if set["threadId"] != id || set["status"] != "active" || set["tokenBudget"] != 1e5 || set["timeUsedSeconds"] != 0.0 {
		t.Fatalf("%v", set)
	}
	answered, _ := w.find(from, "the answer", func(m msg) bool { return m.Method == "" })
	told, updated := w.note(from, "thread/goal/updated")
	if answered > told || updated.field("turnId") != nil || updated.field("goal", "objective") != set["objective"] {
		t.Errorf("answer %d, notification %d: %s", answered, told, updated.Params)
	}
	at, began := w.note(from, "turn/started")
	if at < told {
		t.Error("the turn began before the goal was told")
	}
	turn := began.field("turn", "id").(string)
	_, first := w.note(from, "item/started")
	if first.field("item", "type") != "agentMessage" {
		t.Errorf("the turn begins with %s", first.Params)
	}
	other := join(t, w.rig, full)
	other.ok("thread/resume", in+`}`)
	if _, again := other.note(0, "thread/goal/updated"); again.field("goal", "status") != "active" {
		t.Errorf("a joiner hears %s", again.Params)
	}
	w.ok("turn/interrupt", in+`,"turnId":"`+turn+`"}`)
	paused, stopped := w.find(told+1, "the pause", func(m msg) bool { return m.Method == "thread/goal/updated" })
	if done, _ := w.note(from, "turn/completed"); stopped.field("goal", "status") != "paused" || stopped.field("turnId") != turn || done < paused {
		t.Errorf("%s", stopped.Params)
	}
	items := w.ok("thread/items/list", in+`,"turnId":"`+turn+`"}`)["data"].([]any)
	if kind := items[0].(map[string]any)["item"].(map[string]any)["type"]; kind != "agentMessage" {
		t.Errorf("history begins with %v", kind)
	}
	if got := w.ok("thread/goal/set", in+`,"status":"complete","tokenBudget":null}`)["goal"].(map[string]any); got["tokenBudget"] != nil || got["status"] != "complete" || got["objective"] != set["objective"] {
		t.Errorf("%v", got)
	}
	if got := w.ok("thread/goal/clear", in+`}`); got["cleared"] != true {
		t.Errorf("%v", got)
	}
	w.note(from, "thread/goal/cleared")
	if got := w.ok("thread/goal/clear", in+`}`); got["cleared"] != false {
		t.Errorf("%v", got)
	}
	brief := w.thread(`{"ephemeral":true}`)
	if e := w.refused("thread/goal/get", `{"threadId":"`+brief+`"}`); !strings.Contains(e.Message, "ephemeral thread does not support goals: "+brief) {
		t.Errorf("%s", e.Message)
	}
	for params, words := range map[string]string{
		`,"status":"paused"}`:                    "cannot update goal for thread " + id + ": no goal exists",
		`,"objective":" "}`:                      "goal objective must not be empty",
		`,"objective":"x","tokenBudget":0}`:      "goal budgets must be positive when provided",
		`,"objective":"x","status":"asleep"}`:    "unknown variant `asleep`",
		`,"objective":"x","origin":"elsewhere"}`: "unknown variant `elsewhere`",
		`,"objective":"x","tokenBudget":"all"}`:  "tokenBudget is not a whole number",
	} {
		if e := w.refused("thread/goal/set", in+params); !strings.Contains(e.Message, words) || e.Code != -32600 {
			t.Errorf("%s: %d %s", params, e.Code, e.Message)
		}
	}
}

// The one section has the pinned threads; a list of one that is not there is empty, not an error.
func TestSections(t *testing.T) {
	w := join(t, tholetest.New(t), full)
	id, other := w.thread(`{}`), w.thread(`{}`)
	pinned := w.ok("threadSection/list", `{}`)["data"].([]any)[0].(map[string]any)
	section := pinned["id"].(string)
	lists := func(want map[string][]string) {
		t.Helper()
		for params, ids := range want {
			var got []string
			for _, one := range w.ok("thread/list", params)["data"].([]any) {
				of := one.(map[string]any)
				got = append(got, of["id"].(string))
				if in, _ := of["section"].(map[string]any); (in["name"] == "Pinned") != strings.Contains(params, section) && params != `{}` {
					t.Errorf("%s: %s is in section %v", params, of["id"], in)
				}
			}
			if !slices.Equal(got, ids) {
				t.Errorf("%s: %v, not %v", params, got, ids)
			}
		}
	}
	lists(map[string][]string{`{}`: {other, id}, `{"sectionId":"` + section + `"}`: nil, `{"sectionId":null}`: {other, id}})
	w.ok("thread/section/move", ofThread(id, `"sectionId":"`+section+`"`))
	lists(map[string][]string{
		`{"sortKey":"section_position","sectionId":"` + section + `","useStateDbOnly":true}`: {id},
		`{"sectionId":"` + section + `"}`: {id}, `{"sectionId":null}`: {other}, `{"sectionId":"another"}`: nil, `{}`: {other, id},
	})
	w.ok("thread/section/move", ofThread(id, `"sectionId":null`))
	lists(map[string][]string{`{"sectionId":"` + section + `"}`: nil, `{"sectionId":null}`: {other, id}})
	for params, words := range map[string]string{
		ofThread(id):                          "missing field `sectionId`",
		ofThread(id, `"sectionId":"another"`): "section not found",
		ofThread(id, `"sectionId":7`):         "sectionId is not a string",
		ofThread(id, `"sectionId":"`+section+`"`, `"beforeThreadId":"`+other+`"`): "beforeThreadId is not supported",
	} {
		if e := w.refused("thread/section/move", params); !strings.Contains(e.Message, words) {
			t.Errorf("%s: %s", params, e.Message)
		}
	}
	for params, words := range map[string]string{
		`{"sortKey":"section_position"}`: "section-position sorting requires a section filter",
		`{"sectionId":7}`:                "sectionId is not a string",
	} {
		if e := w.refused("thread/list", params); !strings.Contains(e.Message, words) {
			t.Errorf("%s: %s", params, e.Message)
		}
	}
}
