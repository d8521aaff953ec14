package acp

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/protocol/app"
)

// scripted is thole acp with the agent that needs no model.
var scripted = []string{"--provider", "test", "--profile", "ask"}

// Two editors and a client of the contract are on one session. Each sees what the others
// do, an ask that one of them answers is withdrawn from the others, and messages to a busy
// session wait.
func TestSeveralClients(t *testing.T) {
	r := newRig(t)
	a, b := open(t, r.acp(scripted...)), open(t, r.acp())
	a.greet(obj{})
	b.greet(obj{})
	s := a.create(r.dir)
	b.call("session/resume", obj{"sessionId": s, "cwd": r.dir})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := appclient.Dial(ctx, "unix://"+daemon.Socket(r.Dir), appclient.Options{Name: "third", Extended: true, Experimental: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()

	// Both are asked; b answers.
	wait := a.say(s, "sim: run echo both ;; say ran %tool%")
	first, second := a.asked(), b.asked()
	b.choose(second, "allow")
	wait.ends("end_turn")
	a.until("the ask to be withdrawn", func() bool { return a.closed[first.Ask] })
	b.until("the end of the turn", func() bool { return strings.Contains(b.textLocked(s, "agent_message_chunk"), "ran both") })
	if got := b.text(s, "user_message_chunk"); got != "sim: run echo both ;; say ran %tool%" {
		t.Errorf("b was told of the message %q", got)
	}
	if was, is := a.tools(s), b.tools(s); len(was) != 1 || string(encoded(was)) != string(encoded(is)) {
		t.Errorf("b saw the tool calls %s, a %s", encoded(is), encoded(was))
	}

	// The third answers, and says something itself.
	wait = a.say(s, "sim: run echo third ;; say ok")
	first, second = a.asked(), b.asked()
	var pending []app.Ask
	if pending, err = c.Asks(ctx, s, true); err != nil || len(pending) != 1 {
		t.Fatalf("%v %v", pending, err)
	}
	if _, err := c.Answer(ctx, s, pending[0].ID, app.Answer{Decision: "deny"}); err != nil {
		t.Fatal(err)
	}
	wait.ends("end_turn")
	for e, ask := range map[*editor]int{a: first.Ask, b: second.Ask} {
		e.until("the ask to be withdrawn", func() bool { return e.closed[ask] })
	}
	if _, err := c.StartTurn(ctx, app.TurnStartParams{ThreadID: s, Input: appclient.Text("sim: say from the third ;; hang")}); err != nil {
		t.Fatal(err)
	}
	for _, e := range []*editor{a, b} {
		e.until("the third's turn", func() bool {
			return strings.Contains(e.textLocked(s, "user_message_chunk"), "from the third ;;") && strings.Contains(e.textLocked(s, "agent_message_chunk"), "from the third")
		})
	}

	// The session is busy: messages wait. One that its editor takes back has no turn; the
	// other has its turn although the one before was stopped.
	kept, taken := a.say(s, "sim: say after the stop"), b.say(s, "sim: say never")
	for {
		queue, err := c.Queue(ctx, s)
		if err != nil {
			t.Fatal(err)
		}
		if len(queue) == 2 {
			break
		}
		time.Sleep(20 * time.Millisecond) // the queue is polled, as a list does
	}
	b.send(obj{"method": "session/cancel", "params": obj{"sessionId": s}})
	taken.ends("cancelled")
	if err := c.Interrupt(ctx, s, ""); err != nil {
		t.Fatal(err)
	}
	kept.ends("end_turn")
	b.until("the turn that waited", func() bool { return strings.Contains(b.textLocked(s, "agent_message_chunk"), "after the stop") })
	if strings.Contains(b.text(s, "agent_message_chunk"), "never") {
		t.Error("a message that was taken back had a turn")
	}

	// Settings that one chooses are everybody's.
	b.call("session/set_mode", obj{"sessionId": s, "modeId": "full"})
	a.until("the other's mode", func() bool {
		got := a.ofLocked(s, "current_mode_update")
		return len(got) > 0 && got[len(got)-1]["currentModeId"] == "full"
	})
	a.say(s, "sim: run echo unasked ;; say done").ends("end_turn")
	if len(a.asks) != 2 {
		t.Errorf("%d asks", len(a.asks))
	}
}

// The owner is killed in mid-prompt. The bridge starts another one, goes on after its
// cursor, and the prompt ends as if nothing had been.
func TestOwnerIsKilled(t *testing.T) {
	r := newRig(t)
	e := open(t, r.acp("--provider", "test", "--profile", "full"))
	e.greet(obj{})
	s := e.create(r.dir)
	wait := e.say(s, "sim: say begun ;; run echo one ;; run while [ ! -e go ]; do sleep 0.1; done ;; run echo two ;; say ended")
	e.until("the second command", func() bool { return len(e.ofLocked(s, "tool_call")) == 2 })
	r.kill()
	if err := os.WriteFile(filepath.Join(r.dir, "go"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	wait.ends("end_turn")
	if got := e.text(s, "agent_message_chunk"); got != "begunended" {
		t.Errorf("the agent said %q", got)
	}
	tools := e.tools(s)
	if len(tools) != 3 || len(e.of(s, "tool_call")) != 3 {
		t.Fatalf("there were %d tool calls", len(tools))
	}
	for _, one := range tools {
		if one["status"] != "completed" {
			t.Errorf("a tool call became %v", one)
		}
	}
	e.say(s, "sim: say still here").ends("end_turn")
}

// An editor that does not read loses nothing: no tool call, no end of a turn.
func TestEditorThatDoesNotRead(t *testing.T) {
	r := newRig(t)
	e := open(t, r.acp("--provider", "test", "--profile", "full"))
	e.greet(obj{})
	s := e.create(r.dir)
	e.say(s, "sim: say warm").ends("end_turn")
	const n = 40
	script := "sim: say begun"
	for range n {
		script += " ;; run head -c 60000 /dev/zero | tr '\\0' x"
	}
	e.send(obj{"pause": true})
	wait := e.say(s, script+" ;; say ended")
	r.idle(t, s, 2)
	e.send(obj{"pause": false})
	wait.ends("end_turn")
	tools := e.tools(s)
	if len(tools) != n {
		t.Fatalf("there were %d tool calls of %d", len(tools), n)
	}
	for _, one := range tools {
		if raw := string(encoded(one["rawOutput"])); one["status"] != "completed" || len(raw) < 60000 {
			t.Errorf("a tool call became %.200s", encoded(one))
		}
	}
	if got := e.text(s, "agent_message_chunk"); got != "warmbegunended" {
		t.Errorf("the agent said %q", got)
	}
}

// idle waits, by a client of its own, until a thread has had turns and runs none.
func (r *rig) idle(t *testing.T, thread string, turns int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := appclient.Dial(ctx, "unix://"+daemon.Socket(r.Dir), appclient.Options{Name: "watcher"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for {
		page, err := c.Turns(ctx, app.TurnsListParams{ThreadID: thread})
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Data) == turns && page.Data[0].Status != app.TurnInProgress {
			return
		}
		time.Sleep(50 * time.Millisecond) // polled, as a reader without a subscription does
	}
}

// What else an editor does with sessions, and what it is refused.
func TestSessions(t *testing.T) {
	r := newRig(t)
	e := open(t, r.acp(scripted...))
	if out, err := e.try("session/new", obj{"cwd": r.dir, "mcpServers": []any{}}); err == nil || err.Code != -32600 {
		t.Errorf("before initialize: %v %v", out, err)
	}
	hello := e.greet(obj{"session": obj{"notices": obj{}, "compaction": obj{}}, "_meta": obj{"terminal_output": true}})
	if hello["protocolVersion"] != 1.0 || len(hello["authMethods"].([]any)) != 0 {
		t.Errorf("the agent says of itself %v", hello)
	}
	for name, c := range map[string]struct {
		params obj
		says   string
	}{
		"MCP servers":       {obj{"cwd": r.dir, "mcpServers": []any{obj{"type": "http", "name": "x", "url": "http://127.0.0.1:1", "headers": []any{}}}}, "--without-mcp"},
		"another directory": {obj{"cwd": r.dir, "mcpServers": []any{}, "additionalDirectories": []any{"/usr"}}, "/usr is another directory"},
		"a relative cwd":    {obj{"cwd": "here", "mcpServers": []any{}}, "not an absolute path"},
		"no such directory": {obj{"cwd": r.dir + "/none", "mcpServers": []any{}}, "none"},
	} {
		if out, err := e.try("session/new", c.params); err == nil || !strings.Contains(err.Message, c.says) {
			t.Errorf("%s: %v %+v", name, out, err)
		}
	}
	if got := e.call("session/list", obj{})["sessions"].([]any); len(got) != 0 {
		t.Errorf("what was refused left %v", got)
	}
	opened := e.call("session/new", obj{"cwd": r.dir, "mcpServers": []any{}, "additionalDirectories": []any{r.dir}})
	s := opened["sessionId"].(string)
	if got := opened["modes"].(obj); got["currentModeId"] != "ask" || len(got["availableModes"].([]any)) != 4 {
		t.Errorf("the modes are %v", got)
	}
	if got := string(encoded(opened["configOptions"])); !strings.Contains(got, `"test/script"`) || !strings.Contains(got, `"thought_level"`) {
		t.Errorf("the options are %s", got)
	}

	// A question, without forms; and a terminal of the editor's.
	wait := e.say(s, "sim: ask Which colour? | red | green ;; run echo shown ;; say chosen: %tool%")
	m := e.asked()
	e.choose(m, "green")
	e.choose(e.asked(), "always")
	wait.ends("end_turn")
	var shown, exit bool
	for _, u := range e.of(s, "") {
		raw := string(encoded(u["_meta"]))
		shown = shown || strings.Contains(raw, "terminal_output") && strings.Contains(raw, "shown")
		exit = exit || strings.Contains(raw, `"exit_code":0`)
	}
	if !shown || !exit {
		t.Errorf("the terminal's output was shown: %v, its end: %v", shown, exit)
	}
	if got := e.of(s, "session_info_update"); len(got) == 0 || !strings.HasPrefix(got[0]["title"].(string), "sim: ask") {
		t.Errorf("the session is called %v", got)
	}

	// Content of every kind.
	out := e.call("session/prompt", obj{"sessionId": s, "prompt": []any{
		obj{"type": "text", "text": "sim: say %user%"},
		obj{"type": "resource_link", "name": "a.go", "uri": "file:///src/a.go"},
		obj{"type": "resource", "resource": obj{"uri": "file:///src/b.go", "text": "package b"}},
		obj{"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="},
	}})
	if out["stopReason"] != "end_turn" {
		t.Errorf("%v", out)
	}
	if _, err := e.try("session/prompt", obj{"sessionId": s, "prompt": []any{obj{"type": "audio", "mimeType": "audio/wav", "data": "AAAA"}}}); err == nil || !strings.Contains(err.Message, "audio") {
		t.Errorf("audio: %+v", err)
	}
	if _, err := e.try("session/prompt", obj{"sessionId": s, "prompt": []any{}}); err == nil {
		t.Error("an empty prompt is taken")
	}

	// Ends of turns.
	e.say(s, "sim: stop refusal").ends("refusal")
	if _, err := e.try("session/prompt", obj{"sessionId": s, "prompt": []any{obj{"type": "text", "text": "sim: http 401 bad key"}}}); err == nil || err.Code != -32000 {
		t.Errorf("without a login the prompt ends with %+v", err)
	}
	if got := e.of(s, "notice"); len(got) == 0 {
		t.Error("nothing was said of the refusal")
	}

	// Commands.
	e.say(s, "/compact").ends("end_turn")
	if got := e.of(s, "compaction_update"); len(got) == 0 || got[len(got)-1]["status"] != "completed" {
		t.Errorf("the compaction is %v", got)
	}
	e.say(s, "/shell echo by hand").ends("end_turn")
	if last := e.tools(s)[len(e.tools(s))-1]; !strings.Contains(string(encoded(last["rawOutput"])), "by hand") {
		t.Errorf("the command became %v", last)
	}

	// Options.
	got := e.call("session/set_config_option", obj{"sessionId": s, "configId": "mode", "value": "plan"})
	if !strings.Contains(string(encoded(got)), `"currentValue":"plan"`) {
		t.Errorf("the options are %s", encoded(got))
	}
	for _, bad := range []obj{{"sessionId": s, "configId": "mode", "value": "none"}, {"sessionId": s, "configId": "colour", "value": "red"}} {
		if _, err := e.try("session/set_config_option", bad); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}

	// Another window sees the same, and the session can be closed, joined and removed.
	before := r.history(t, s)
	o := open(t, r.acp())
	o.greet(obj{})
	o.call("session/load", obj{"sessionId": s, "cwd": r.dir, "mcpServers": []any{}})
	for _, it := range before {
		if text := str(it.Text); it.Type == app.ItemAgentMessage && !strings.Contains(o.text(s, "agent_message_chunk"), text) {
			t.Errorf("the history lacks %q", text)
		}
	}
	if _, err := o.try("session/load", obj{"sessionId": s, "cwd": "/usr", "mcpServers": []any{}}); err == nil || !strings.Contains(err.Message, r.dir) {
		t.Errorf("in another directory: %+v", err)
	}
	e.call("session/close", obj{"sessionId": s})
	if _, err := e.try("session/prompt", obj{"sessionId": s, "prompt": []any{obj{"type": "text", "text": "x"}}}); err == nil || err.Code != -32002 {
		t.Errorf("a session that was closed: %+v", err)
	}
	seen := len(e.of(s, ""))
	e.call("session/resume", obj{"sessionId": s, "cwd": r.dir})
	for _, u := range e.of(s, "")[seen:] {
		if kind := u["sessionUpdate"].(string); strings.HasSuffix(kind, "chunk") || strings.HasPrefix(kind, "tool") {
			t.Errorf("a session that was resumed repeats %v", u)
		}
	}
	e.call("session/delete", obj{"sessionId": s})
	if got := o.call("session/list", obj{})["sessions"].([]any); len(got) != 0 {
		t.Errorf("what was removed is listed: %v", got)
	}
	if _, err := o.try("session/load", obj{"sessionId": s, "cwd": r.dir, "mcpServers": []any{}}); err == nil || err.Code != -32002 {
		t.Errorf("a session that was removed: %+v", err)
	}
}

// history is a thread's items as the contract has them.
func (r *rig) history(t *testing.T, thread string) (out []app.Item) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := appclient.Dial(ctx, "unix://"+daemon.Socket(r.Dir), appclient.Options{Name: "reader"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	page, err := c.Items(ctx, app.ItemsListParams{ThreadID: thread})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range page.Data {
		out = append(out, i.Item)
	}
	return out
}

func str(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}
