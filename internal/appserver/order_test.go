package appserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/internal/tholetest"
	"github.com/tholehq/thole/internal/thread"
)

// The notifications of an ordinary turn come in upstream's order, the answers
// before what they cause.
func TestTurnOrder(t *testing.T) {
	rig := tholetest.New(t)
	w := join(t, rig, `{}`)
	at, started := w.call("thread/start", `{}`)
	i, _ := w.note(0, "thread/started")
	if i < at {
		t.Error("thread/started came before the answer to thread/start")
	}
	var view struct{ Thread struct{ ID string } }
	if err := json.Unmarshal(started.Result, &view); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		from := w.len()
		at, _ = w.call("turn/start", input(view.Thread.ID, "sim: usage in=5 out=2 ;; say hello there"))
		end, _ := w.note(from, "turn/completed")
		got := w.methods(from)[:end-from+1]
		want := []string{
			"result", "thread/status/changed", "turn/started", "item/started", "item/completed",
			"item/started", "item/agentMessage/delta", "item/agentMessage/delta", "item/completed",
			"thread/tokenUsage/updated", "thread/status/changed", "turn/completed",
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Fatalf("order is\n%v, want\n%v", got, want)
		}
		if at != from {
			t.Fatal("something came before the answer to turn/start")
		}
	}
}

// A joiner hears of the item in flight as started with its text so far, and then
// of the rest: together exactly the whole text.
func TestJoinerHearsItemInFlight(t *testing.T) {
	rig := tholetest.New(t)
	one := join(t, rig, `{}`)
	id := one.thread(`{}`)
	text := strings.TrimSpace(strings.Repeat("all the words count ", 20))
	one.turn(id, "sim: slow 10ms 4 ;; say "+text)
	from := 0
	var joiners []*wire
	for range 6 {
		from, _ = one.note(from, "item/agentMessage/delta")
		from += 3
		joiner := join(t, rig, `{}`)
		joiner.ok("thread/resume", `{"threadId":"`+id+`","excludeTurns":true}`)
		joiners = append(joiners, joiner)
	}
	for n, joiner := range joiners {
		end, done := joiner.find(0, "the message", func(m msg) bool {
			return m.Method == "item/completed" && m.field("item", "type") == "agentMessage"
		})
		item := done.field("item", "id").(string)
		var heard strings.Builder
		known := false
		joiner.mu.Lock()
		for _, m := range joiner.got[:end] {
			switch m.Method {
			case "item/started":
				known = known || m.field("item", "id") == item
			case "item/agentMessage/delta":
				if !known {
					t.Error("a delta of an item that was not started")
				}
				heard.WriteString(m.field("delta").(string))
			}
		}
		joiner.mu.Unlock()
		if heard.String() != text || done.field("item", "text") != text {
			t.Fatalf("joiner %d heard %q", n, heard.String())
		}
		joiner.close()
	}
}

// Whatever the cut, a client that continues after its cursor has every durable
// event once.
func TestContinueBehindCursor(t *testing.T) {
	rig := tholetest.New(t)
	one := join(t, rig, full)
	id := one.thread(`{}`)
	one.ok("thole/thread/attach", `{"threadId":"`+id+`"}`)
	for n := range 3 {
		from := one.len()
		one.turn(id, fmt.Sprintf("sim: think hm ;; run echo %d ;; say turn %d", n, n))
		i, ask := one.note(from, "item/commandExecution/requestApproval")
		one.send(`{"id":` + string(ask.ID) + `,"result":{"decision":"accept"}}`)
		i, _ = one.note(i, "turn/completed")
		one.find(i, "the end of the pipeline", func(m msg) bool { return m.Method == "thole/turn/phase" && m.field("phase") == "succeeded" })
	}
	whole := one.durable(0)
	for cut := 0; cut < len(whole); cut += 5 {
		after := uint64(0)
		if cut > 0 {
			after = seqOf(whole[cut-1])
		}
		w := join(t, rig, full)
		w.ok("thole/thread/attach", fmt.Sprintf(`{"threadId":"%s","after":%d,"noDeltas":true}`, id, after))
		last := seqOf(whole[len(whole)-1])
		w.find(0, "the newest event", func(m msg) bool { return m.Seq == last })
		var want []string
		for _, e := range whole[cut:] {
			if seqOf(e) > after {
				want = append(want, e)
			}
		}
		if got := w.durable(0); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Fatalf("behind %d:\n%s\nwant\n%s", after, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		w.close()
	}
	if _, err := rig.Threads.Compact(context.Background(), thole.LocalActor, thole.ThreadID(id), 20); err != nil {
		t.Fatal(err)
	}
	w := join(t, rig, full)
	e := w.refused("thole/thread/attach", `{"threadId":"`+id+`","after":3}`)
	if !strings.Contains(e.Message, "cursor too old") || !strings.Contains(string(e.Data), `"gone"`) {
		t.Errorf("an old cursor got %v %s", e, e.Data)
	}
}

// durable is the notifications that carry a cursor, as "seq method".
func (w *wire) durable(from int) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, m := range w.got[from:] {
		if m.Seq > 0 {
			out = append(out, fmt.Sprintf("%d %s", m.Seq, m.Method))
		}
	}
	return out
}

func seqOf(line string) (n uint64) {
	_, _ = fmt.Sscan(line, &n)
	return n
}

func TestStartIfIdle(t *testing.T) {
	rig := tholetest.New(t)
	w := join(t, rig, full)
	id := w.thread(`{}`)
	turn := w.ok("thole/turn/startIfIdle", input(id, "sim: hang"))["turn"].(map[string]any)["id"].(string)
	if e := w.refused("thole/turn/startIfIdle", input(id, "again")); !strings.Contains(string(e.Data), `"busy"`) {
		t.Errorf("a busy thread answered %v %s", e, e.Data)
	}
	if steered := w.turn(id, "sim: say steered"); steered != turn {
		t.Errorf("turn/start on a busy thread answered with turn %s, not %s", steered, turn)
	}
	w.ok("turn/interrupt", `{"threadId":"`+id+`","turnId":"`+turn+`"}`)
	_, done := w.note(0, "turn/completed")
	if done.field("turn", "status") != "interrupted" {
		t.Errorf("the turn ended as %v", done.field("turn", "status"))
	}
	// What the agent never took in is not lost.
	queue := w.ok("thread/queue/list", `{"threadId":"`+id+`"}`)["data"].([]any)
	if len(queue) != 1 {
		t.Errorf("the queue has %d messages, want the steer that was not taken", len(queue))
	}
}

func TestQueueMethods(t *testing.T) {
	rig := tholetest.New(t)
	w := join(t, rig, full)
	id := w.thread(`{}`)
	turn := w.turn(id, "sim: hang")
	add := func(text string) string {
		raw := strings.TrimSuffix(input(id, text), "}") + `,"clientUserMessageId":"c-` + text + `"}`
		return w.ok("thread/queue/add", raw)["queuedSubmission"].(map[string]any)["id"].(string)
	}
	a, b, c := add("sim: say a"), add("sim: say b"), add("sim: say c")
	w.ok("thread/queue/reorder", fmt.Sprintf(`{"threadId":"%s","queuedSubmissionIds":["%s","%s","%s"]}`, id, c, b, a))
	w.ok("thread/queue/update", fmt.Sprintf(`{"threadId":"%s","queuedSubmissionId":"%s","input":[{"type":"text","text":"sim: say edited"}]}`, id, c))
	if r := w.ok("thread/queue/delete", fmt.Sprintf(`{"threadId":"%s","queuedSubmissionId":"%s"}`, id, b)); r["deleted"] != true {
		t.Errorf("delete answered %v", r)
	}
	if e := w.refused("thread/queue/start", `{"threadId":"`+id+`"}`); !strings.Contains(e.Message, "thread already has an active") {
		t.Error(e)
	}
	w.ok("turn/interrupt", `{"threadId":"`+id+`","turnId":"`+turn+`"}`)
	w.note(0, "turn/completed")
	from := w.len()
	w.ok("thread/queue/start", `{"threadId":"`+id+`"}`)
	_, said := w.find(from, "the edited message", func(m msg) bool {
		return m.Method == "item/completed" && m.field("item", "text") == "edited"
	})
	_ = said
	w.find(from, "the message behind it", func(m msg) bool { return m.Method == "item/completed" && m.field("item", "text") == "a" })
	if e := w.refused("thread/queue/start", `{"threadId":"`+id+`","queuedSubmissionId":"`+b+`"}`); e.Code != -32600 {
		t.Error(e)
	}
}

// A shutdown delivers what was published, the last turn/completed included.
func TestLastWordBeforeShutdown(t *testing.T) {
	rig := tholetest.New(t)
	w := join(t, rig, `{}`)
	id := w.thread(`{}`)
	turn := w.turn(id, "sim: say on it")
	poll.Until(t, "the turn's end", func() bool {
		got, err := rig.Threads.Turn(context.Background(), thole.LocalActor, thole.ThreadID(id), thole.TurnID(turn))
		return err == nil && got.Outcome != ""
	})
	rig.Stop()
	w.gone()
	if got := w.methods(0); !slices.Contains(got, "turn/completed") {
		t.Fatalf("told were %v", got)
	}
}

// A turn goes on in its executor while the server is away, and is the next one's.
func TestTurnOutlivesTheServer(t *testing.T) {
	rig := tholetest.New(t)
	w := join(t, rig, full)
	id := w.thread(`{}`)
	turn := w.turn(id, "sim: say begun ;; hang")
	w.find(0, "the message", func(m msg) bool { return m.Method == "item/completed" && m.field("item", "text") == "begun" })
	rig.Restart()
	w = join(t, rig, full)
	w.ok("thole/thread/attach", `{"threadId":"`+id+`"}`)
	w.ok("turn/interrupt", `{"threadId":"`+id+`","turnId":"`+turn+`"}`)
	if _, m := w.note(0, "turn/completed"); m.field("turn", "id") != turn || m.field("turn", "status") != "interrupted" {
		t.Fatalf("it ended %s", m.Params)
	}
}

func TestListsAndLifecycle(t *testing.T) {
	rig := tholetest.New(t)
	w := join(t, rig, full)
	watcher := join(t, rig, `{}`)
	id := w.thread(`{"cwd":"/srv/one"}`)
	other := w.thread(`{"cwd":"/srv/two"}`)
	watcher.note(0, "thread/started")
	w.turn(id, "sim: say the needle is here")
	w.note(0, "turn/completed")
	w.ok("thread/name/set", `{"threadId":"`+id+`","name":"A name"}`)
	if _, m := watcher.note(0, "thread/name/updated"); m.field("threadName") != "A name" {
		t.Errorf("watcher heard %s", m.Params)
	}
	ids := func(params string) string {
		var out []string
		for _, th := range w.ok("thread/list", params)["data"].([]any) {
			out = append(out, th.(map[string]any)["id"].(string))
		}
		return strings.Join(out, " ")
	}
	if got := ids(`{"cwd":"/srv/one"}`); got != id {
		t.Errorf("filter by directory: %s", got)
	}
	if got := ids(`{"searchTerm":"needle"}`); got != id {
		t.Errorf("search: %s", got)
	}
	if got := ids(`{"sourceKinds":["exec"]}`); got != "" {
		t.Errorf("threads of another kind: %s", got)
	}
	r := w.ok("thread/list", `{"limit":1}`)
	if next, _ := r["nextCursor"].(string); ids(`{"limit":1,"cursor":"`+next+`"}`) != id {
		t.Errorf("the second page is not the older thread")
	}
	fork := w.ok("thread/fork", `{"threadId":"`+id+`"}`)["thread"].(map[string]any)
	if fork["forkedFromId"] != id || len(fork["turns"].([]any)) != 1 {
		t.Errorf("fork is %v", fork)
	}
	w.ok("thread/archive", `{"threadId":"`+other+`"}`)
	watcher.note(0, "thread/archived")
	if e := w.refused("thread/resume", `{"threadId":"`+other+`"}`); !strings.Contains(e.Message, "archived") {
		t.Error(e)
	}
	if got := ids(`{"archived":true}`); got != other {
		t.Errorf("archived: %s", got)
	}
	w.ok("thread/unarchive", `{"threadId":"`+other+`"}`)
	w.ok("thread/delete", `{"threadId":"`+other+`"}`)
	watcher.note(0, "thread/deleted")
	if st := w.ok("thread/unsubscribe", `{"threadId":"`+id+`"}`)["status"]; st != "unsubscribed" {
		t.Errorf("unsubscribe: %v", st)
	}
	if st := w.ok("thread/unsubscribe", `{"threadId":"`+id+`"}`)["status"]; st != "notSubscribed" {
		t.Errorf("unsubscribe again: %v", st)
	}
	from := w.len()
	w.turn(id, "sim: say unheard")
	watcher.find(0, "idle again", func(m msg) bool {
		return m.Method == "thread/status/changed" && m.field("status", "type") == "idle" && m.field("threadId") == id
	})
	for _, m := range w.methods(from) {
		if strings.HasPrefix(m, "item/") || m == "turn/completed" {
			t.Errorf("an unsubscribed connection got %s", m)
		}
	}
}

func TestSettings(t *testing.T) {
	rig := tholetest.New(t)
	w := join(t, rig, full)
	v := w.ok("thread/start", `{"approvalPolicy":"never","sandbox":"danger-full-access","model":"test/script"}`)
	if v["approvalPolicy"] != "never" || v["modelProvider"] != "test" || v["model"] != "test/script" {
		t.Errorf("start answered %v", v)
	}
	id := v["thread"].(map[string]any)["id"].(string)
	from := w.len()
	w.ok("thread/settings/update", `{"threadId":"`+id+`","permissions":":read-only","approvalPolicy":"on-request"}`)
	w.note(from, "thread/settings/updated")
	now, err := rig.Threads.Get(context.Background(), thole.LocalActor, thole.ThreadID(id))
	if err != nil || now.Settings.Profile != thole.ProfileAsk {
		t.Errorf("the profile is %q: %v", now.Settings.Profile, err)
	}
	if e := w.refused("turn/start", strings.TrimSuffix(input(id, "x"), "}")+`,"permissions":":nope"}`); !strings.Contains(e.Message, "unknown permission profile") {
		t.Error(e)
	}
	// Plan mode belongs to the turn, not to the thread.
	w.ok("turn/start", strings.TrimSuffix(input(id, "sim: run echo x ;; say done"), "}")+`,"collaborationMode":{"mode":"plan","settings":{"model":"test/script"}}}`)
	_, m := w.find(0, "the command", func(m msg) bool { return m.Method == "item/completed" && m.field("item", "type") == "commandExecution" })
	if m.field("item", "status") != "declined" {
		t.Errorf("plan mode let a command through: %s", m.Params)
	}
	var page thread.Page[fold.Turn]
	if page, err = rig.Threads.Turns(context.Background(), thole.LocalActor, thole.ThreadID(id), thread.PageParams{}); err != nil || page.Items[0].Settings.Profile != thole.ProfilePlan {
		t.Errorf("the turn ran as %v: %v", page.Items, err)
	}
}
