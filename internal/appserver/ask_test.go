package appserver_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tholehq/thole/internal/tholetest"
)

const askApproval = "item/commandExecution/requestApproval"

// An ask goes to every subscriber under one id, is replayed to every joiner, and
// is answered once; an error or garbage from an observer is no answer.
func TestAskIsSharedAndAnsweredOnce(t *testing.T) {
	rig := tholetest.New(t)
	one := join(t, rig, `{}`)
	id := one.thread(`{}`)
	two := join(t, rig, `{}`)
	two.ok("thread/resume", `{"threadId":"`+id+`"}`)
	one.turn(id, "sim: run echo yes ;; say %tool%")
	_, a := one.note(0, askApproval)
	_, b := two.note(0, askApproval)
	if string(a.ID) != string(b.ID) {
		t.Fatalf("the ask is %s here and %s there", a.ID, b.ID)
	}
	two.send(`{"id":` + string(b.ID) + `,"error":{"code":-32601,"message":"method not found"}}`)
	two.send(`{"id":` + string(b.ID) + `,"result":{"decision":"perhaps"}}`)
	two.send(`{"id":` + string(b.ID) + `,"result":[]}`)
	two.note(0, "warning")
	two.close()
	one.close() // nobody is left; the turn waits

	late := join(t, rig, `{}`)
	r := late.ok("thread/resume", `{"threadId":"`+id+`"}`)
	if flags := fmt.Sprint(r["thread"].(map[string]any)["status"]); !strings.Contains(flags, "waitingOnApproval") {
		t.Errorf("status is %s", flags)
	}
	_, again := late.note(0, askApproval)
	if string(again.ID) != string(a.ID) {
		t.Errorf("the replayed ask is %s, was %s", again.ID, a.ID)
	}
	third := join(t, rig, `{}`)
	third.ok("thread/resume", `{"threadId":"`+id+`"}`)
	third.note(0, askApproval)
	var race sync.WaitGroup
	race.Go(func() { late.send(`{"id":` + string(a.ID) + `,"result":{"decision":"accept"}}`) })
	race.Go(func() { third.send(`{"id":` + string(a.ID) + `,"result":{"decision":"accept"}}`) })
	race.Wait()
	for _, w := range []*wire{late, third} {
		_, m := w.note(0, "serverRequest/resolved")
		raw, _ := json.Marshal(m.field("requestId"))
		if string(raw) != string(a.ID) {
			t.Errorf("resolved %s", raw)
		}
		end, _ := w.note(0, "turn/completed")
		resolved := 0
		for _, name := range w.methods(0)[:end] {
			if name == "serverRequest/resolved" {
				resolved++
			}
		}
		if resolved != 1 {
			t.Errorf("resolved %d times", resolved)
		}
	}
	// An answer to a settled ask changes nothing and ends nothing.
	late.send(`{"id":` + string(a.ID) + `,"result":{"decision":"cancel"}}`)
	late.send(`{"id":"nobody/knows","result":{}}`)
	late.send(`{"id":12345,"result":{}}`)
	late.ok("thread/read", `{"threadId":"`+id+`"}`)
}

func TestAnswerByID(t *testing.T) {
	rig := tholetest.New(t)
	w := join(t, rig, full)
	id := w.thread(`{}`)
	w.turn(id, "sim: ask Which? | a | b ;; say chose %tool%")
	_, m := w.note(0, "item/tool/requestUserInput")
	if m.field("questions").([]any)[0].(map[string]any)["question"] != "Which?" {
		t.Errorf("question is %s", m.Params)
	}
	list := w.ok("thole/ask/list", `{"threadId":"`+id+`","pendingOnly":true}`)["data"].([]any)
	ask := list[0].(map[string]any)
	r := w.ok("thole/ask/answer", fmt.Sprintf(`{"threadId":"%s","askId":"%s","answer":{"answers":{"q1":["b"]}}}`, id, ask["id"]))
	if st := r["ask"].(map[string]any); st["state"] != "answered" || st["answeredBy"] != "test" {
		t.Errorf("answered ask is %v", st)
	}
	w.find(0, "the answer", func(m msg) bool { return m.Method == "item/completed" && m.field("item", "text") == "chose b" })
	if e := w.refused("thole/ask/answer", fmt.Sprintf(`{"threadId":"%s","askId":"%s","answer":{"answers":{"q1":["a"]}}}`, id, ask["id"])); !strings.Contains(string(e.Data), "conflict") {
		t.Errorf("a second answer got %v %s", e, e.Data)
	}
}

// A rule that the ask did not offer is not what the agent would remember: the answer is
// refused, and the ask stays open.
func TestARuleThatWasNotOffered(t *testing.T) {
	w := join(t, tholetest.New(t), `{}`)
	id := w.thread(`{}`)
	w.turn(id, "sim: run echo yes ;; say done")
	i, m := w.note(0, askApproval)
	w.send(`{"id":` + string(m.ID) + `,"result":{"decision":{"acceptWithExecpolicyAmendment":{"execpolicy_amendment":["echo"]}}}}`)
	if _, why := w.note(i, "warning"); !strings.Contains(fmt.Sprint(why.field("message")), "offered no rule") {
		t.Errorf("the warning is %s", why.Params)
	}
	w.send(`{"id":` + string(m.ID) + `,"result":{"decision":"acceptForSession"}}`)
	w.note(i, "turn/completed")
}

func TestDecisions(t *testing.T) {
	for _, tc := range []struct{ decision, item, turn string }{
		{`"accept"`, "completed", "completed"},
		{`"acceptForSession"`, "completed", "completed"},
		{`"decline"`, "declined", "completed"},
		{`"cancel"`, "", "interrupted"},
	} {
		rig := tholetest.New(t)
		w := join(t, rig, `{}`)
		id := w.thread(`{}`)
		w.turn(id, "sim: run echo yes ;; say done")
		i, m := w.note(0, askApproval)
		w.send(`{"id":` + string(m.ID) + `,"result":{"decision":` + tc.decision + `}}`)
		_, done := w.note(i, "turn/completed")
		if done.field("turn", "status") != tc.turn {
			t.Errorf("%s: the turn ended as %v", tc.decision, done.field("turn", "status"))
		}
		if tc.item == "" {
			continue
		}
		_, item := w.find(i, "the command", func(m msg) bool { return m.Method == "item/completed" })
		if item.field("item", "status") != tc.item {
			t.Errorf("%s: the command ended as %v", tc.decision, item.field("item", "status"))
		}
	}
}
