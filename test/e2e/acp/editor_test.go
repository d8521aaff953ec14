package acp

import (
	"bufio"
	"encoding/json"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/testkit/lab"
)

type obj = map[string]any

// patience bounds how long an editor waits for anything.
const patience = 60 * time.Second

// editor is the protocol's own library on an agent.
type editor struct {
	t      testing.TB
	schema *schema
	in     io.WriteCloser
	done   chan struct{}
	seen   int // asks that the test has taken

	mu      sync.Mutex // guards what follows
	changed chan struct{}
	next    int
	answers map[int]message
	updates []obj // of all sessions, in order
	asks    []message
	closed  map[int]bool
	lines   []string
	sent    int         // updates that the agent sent
	before  map[int]int // of them, those before an answer
}

// message is a line of editor.mjs.
type message struct {
	ID        *int            `json:"id"`
	Result    json.RawMessage `json:"result"`
	Error     *failure        `json:"error"`
	Update    obj             `json:"update"`
	Ask       int             `json:"ask"`
	Method    string          `json:"method"`
	Params    obj             `json:"params"`
	Withdrawn int             `json:"withdrawn"`
	Wire      string          `json:"wire"`
	Line      string          `json:"line"`
}

type failure struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

// open starts an agent under an editor.
func open(t testing.TB, agent *exec.Cmd) *editor {
	t.Helper()
	node, dir := lab.ACP(t)
	script, err := filepath.Abs("editor.mjs")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, append([]string{script, filepath.Join(dir, "node_modules/@agentclientprotocol/sdk/dist/v1/stable/acp.js"), agent.Path}, agent.Args[1:]...)...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = agent.Dir, agent.Env, agent.SysProcAttr
	var errs strings.Builder
	cmd.Stderr = &errs
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	e := &editor{t: t, schema: protocol(t), in: in, done: make(chan struct{}), changed: make(chan struct{}), answers: map[int]message{}, closed: map[int]bool{}, before: map[int]int{}}
	go func() {
		defer close(e.done)
		lines := bufio.NewReaderSize(out, 1<<20)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			e.take(line)
		}
	}()
	t.Cleanup(func() {
		e.leave()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("standard error of the agent and its editor:\n%s", errs.String())
			for _, l := range e.lines {
				t.Logf("%.400s", l)
			}
		}
	})
	return e
}

// leave closes the agent's input and waits until both are gone.
func (e *editor) leave() {
	_ = e.in.Close()
	<-e.done
}

func (e *editor) take(line string) {
	var m message
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		e.t.Errorf("editor.mjs: %v: %s", err, line)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case m.Wire != "":
		e.lines = append(e.lines, m.Wire+": "+m.Line)
		if m.Wire == "agent" && strings.Contains(m.Line, `"method":"session/update"`) {
			e.sent++
		}
		if err := e.schema.check(m.Wire, m.Line); err != nil {
			e.t.Errorf("the %s sent %s\n%v", m.Wire, m.Line, err)
		}
	case m.ID != nil:
		e.answers[*m.ID], e.before[*m.ID] = m, e.sent
	case m.Ask > 0:
		e.asks = append(e.asks, m)
	case m.Withdrawn > 0:
		e.closed[m.Withdrawn] = true
	case m.Update != nil:
		e.updates = append(e.updates, m.Update)
	}
	close(e.changed)
	e.changed = make(chan struct{})
}

// until waits for a condition of what the editor has.
func (e *editor) until(what string, ok func() bool) {
	e.t.Helper()
	deadline := time.After(patience)
	for {
		e.mu.Lock()
		yes, changed := ok(), e.changed
		e.mu.Unlock()
		if yes {
			return
		}
		select {
		case <-changed:
		case <-e.done:
			e.t.Fatalf("the editor ended before %s", what)
		case <-deadline:
			e.t.Fatalf("waited in vain for %s", what)
		}
	}
}

func (e *editor) send(m any) {
	e.t.Helper()
	raw, err := json.Marshal(m)
	if err != nil {
		e.t.Fatal(err)
	}
	if _, err := e.in.Write(append(raw, '\n')); err != nil {
		e.t.Fatal(err)
	}
}

// request is one that was sent.
type request struct {
	*editor
	id     int
	method string
}

// begin sends a request.
func (e *editor) begin(method string, params obj) request {
	e.t.Helper()
	e.mu.Lock()
	e.next++
	r := request{e, e.next, method}
	e.mu.Unlock()
	e.send(obj{"id": r.id, "method": method, "params": params})
	return r
}

// answer waits for it, and for the updates before it: the library hands them over next to
// answers.
func (r request) answer() (obj, *failure) {
	r.t.Helper()
	var m message
	r.until("the answer to "+r.method, func() (ok bool) {
		m, ok = r.answers[r.id]
		return ok && len(r.updates) >= r.before[r.id]
	})
	var out obj
	if m.Error == nil && m.Result != nil {
		if err := json.Unmarshal(m.Result, &out); err != nil {
			r.t.Fatal(err)
		}
	}
	return out, m.Error
}

// ends wants a prompt to stop for a reason, or to fail with a message.
func (r request) ends(want string) {
	r.t.Helper()
	out, err := r.answer()
	got, _ := out["stopReason"].(string)
	if err != nil {
		got = err.Message
	}
	if got != want {
		r.t.Fatalf("the prompt ended with %q, want %q", got, want)
	}
}

// allowing answers all asks of a prompt with yes and returns them.
func (r request) allowing() (asks []message) {
	r.t.Helper()
	r.answering(func(m message) {
		r.choose(m, "allow")
		asks = append(asks, m)
	})
	return asks
}

// answering takes all asks of a prompt until its end.
func (r request) answering(answer func(message)) {
	r.t.Helper()
	for {
		var m message
		r.until("an ask, or the end of the prompt", func() bool {
			if len(r.asks) > r.seen {
				m = r.asks[r.seen]
			}
			_, over := r.answers[r.id]
			return m.Ask > 0 || over
		})
		if m.Ask == 0 {
			return
		}
		r.seen++
		answer(m)
	}
}

// try is a request and its answer, call one that must succeed.
func (e *editor) try(method string, params obj) (obj, *failure) {
	e.t.Helper()
	return e.begin(method, params).answer()
}

func (e *editor) call(method string, params obj) obj {
	e.t.Helper()
	out, err := e.try(method, params)
	if err != nil {
		e.t.Fatalf("%s: %d %s", method, err.Code, err.Message)
	}
	return out
}

// greet initializes with what the editor can do.
func (e *editor) greet(capabilities obj) obj {
	e.t.Helper()
	return e.call("initialize", obj{"protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": obj{"name": "editor", "version": "1"}})
}

// create is a new session in a directory.
func (e *editor) create(dir string) string {
	e.t.Helper()
	return e.call("session/new", obj{"cwd": dir, "mcpServers": []any{}})["sessionId"].(string)
}

// say begins a prompt.
func (e *editor) say(session, text string) request {
	e.t.Helper()
	return e.begin("session/prompt", obj{"sessionId": session, "prompt": []any{obj{"type": "text", "text": text}}})
}

// asked waits for the next ask.
func (e *editor) asked() (m message) {
	e.t.Helper()
	e.until("an ask", func() bool {
		if len(e.asks) > e.seen {
			m = e.asks[e.seen]
		}
		return m.Ask > 0
	})
	e.seen++
	return m
}

// choose answers a request for a permission.
func (e *editor) choose(m message, option string) {
	e.t.Helper()
	e.send(obj{"answer": m.Ask, "result": obj{"outcome": obj{"outcome": "selected", "optionId": option}}})
}

// of is the updates of one session so far, of one kind if that is not "".
func (e *editor) of(session, kind string) (out []obj) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ofLocked(session, kind)
}

func (e *editor) ofLocked(session, kind string) (out []obj) {
	for _, u := range e.updates {
		if up := u["update"].(obj); u["sessionId"] == session && (kind == "" || up["sessionUpdate"] == kind) {
			out = append(out, up)
		}
	}
	return out
}

// text is what chunks of a kind say in a session.
func (e *editor) text(session, kind string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.textLocked(session, kind)
}

func (e *editor) textLocked(session, kind string) (out string) {
	for _, u := range e.ofLocked(session, kind) {
		text, _ := u["content"].(obj)["text"].(string)
		out += text
	}
	return out
}

// tool is a tool call with all that its updates changed.
type tool = obj

// tools are the tool calls of a session as the editor shows them now, in order.
func (e *editor) tools(session string) (out []tool) {
	byID := map[any]tool{}
	for _, u := range e.of(session, "") {
		switch u["sessionUpdate"] {
		case "tool_call":
			t := tool{}
			byID[u["toolCallId"]] = t
			out = append(out, t)
			fallthrough
		case "tool_call_update":
			t := byID[u["toolCallId"]]
			if t == nil {
				e.t.Errorf("an update of the unknown tool call %v", u["toolCallId"])
				continue
			}
			for k, v := range u {
				if k != "sessionUpdate" {
					t[k] = v
				}
			}
		}
	}
	return out
}
