package acp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/acp"
	"github.com/tholehq/thole/internal/tholetest"
	"github.com/tholehq/thole/internal/transport/stdio"
	"github.com/tholehq/thole/protocol/app"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		mcpServer(os.Stdin, os.Stdout)
		return
	}
	goleak.VerifyTestMain(m)
}

type obj = map[string]any

// editor writes and reads lines.
type editor struct {
	t       *testing.T
	in      io.Writer
	lines   *bufio.Reader
	updates []obj
	n       int
	dials   atomic.Int32
	gate    sync.Mutex // no connection is made while a test holds it
	addr    string
	clients chan *appclient.Client // connections, the newest last
}

// connect serves an editor on a server in this process.
func connect(t *testing.T, change ...func(*acp.Config)) *editor {
	t.Helper()
	kit := tholetest.New(t)
	addr := kit.Listen("unix://"+filepath.Join(t.TempDir(), "s"), "")
	fromEditor, in := io.Pipe()
	out, toEditor := io.Pipe()
	e := &editor{t: t, in: in, lines: bufio.NewReader(out), addr: addr, clients: make(chan *appclient.Client, 64)}
	ended := make(chan error, 1)
	go func() {
		cfg := acp.Config{
			Dial: func(ctx context.Context, o appclient.Options) (*appclient.Client, error) {
				e.gate.Lock()
				e.gate.Unlock() //nolint:staticcheck // it is waited for
				e.dials.Add(1)
				o.Name, o.Extended, o.Experimental = "acp", true, true
				c, err := appclient.Dial(ctx, addr, o)
				if err == nil {
					e.clients <- c
				}
				return c, err
			},
			Keys: func(context.Context, string, string) error { return nil },
			Logins: func(context.Context) ([]acp.Login, error) {
				return []acp.Login{{Provider: "claude", Title: "Claude", Args: []string{"provider", "login", "claude"}}}, nil
			},
			Model:   "test/script",
			Profile: "full",
		}
		for _, f := range change {
			f(&cfg)
		}
		ended <- acp.Serve(context.Background(), stdio.New(fromEditor, toEditor, 0), cfg)
	}()
	t.Cleanup(func() {
		_ = in.Close()
		go func() { _, _ = io.Copy(io.Discard, out) }()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
		_ = toEditor.Close()
	})
	return e
}

// send writes a request and returns its id.
func (e *editor) send(method string, params any) int {
	e.t.Helper()
	e.n++
	raw, err := json.Marshal(obj{"jsonrpc": "2.0", "id": e.n, "method": method, "params": params})
	if err != nil {
		e.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(e.in, "%s\n", raw); err != nil {
		e.t.Fatal(err)
	}
	return e.n
}

type reply struct {
	JSONRPC string
	ID      int
	Method  string
	Result  obj
	Error   *struct {
		Code    int
		Message string
	}
	Params struct{ Update obj }
	// Of a request to the editor.
	AskID json.RawMessage        `json:"-"`
	Ask   struct{ ToolCall obj } `json:"-"`
}

// read returns the next line, and keeps it when it is an update.
func (e *editor) read() (m reply) {
	e.t.Helper()
	line, err := e.lines.ReadBytes('\n')
	if err != nil {
		e.t.Fatal(err)
	}
	var asks struct {
		ID     json.RawMessage
		Method string
		Params struct{ ToolCall obj }
	}
	if json.Unmarshal(line, &asks) == nil && asks.Method == "session/request_permission" {
		m.Method, m.AskID, m.Ask.ToolCall = asks.Method, asks.ID, asks.Params.ToolCall
		return m
	}
	if err := json.Unmarshal(line, &m); err != nil || m.JSONRPC != "2.0" {
		e.t.Fatalf("%v: %s", err, line)
	}
	if m.Method == "session/update" {
		e.updates = append(e.updates, m.Params.Update)
	}
	return m
}

// answer reads until a request is answered.
func (e *editor) answer(id int) reply {
	e.t.Helper()
	for {
		if m := e.read(); m.Method == "" && m.ID == id {
			return m
		}
	}
}

func (e *editor) session() string {
	e.t.Helper()
	hello := e.answer(e.send("initialize", obj{"protocolVersion": 1}))
	if methods, _ := json.Marshal(hello.Result["authMethods"]); !strings.Contains(string(methods), "Run: thole provider login claude") {
		e.t.Errorf("agents without a login: %s", methods)
	}
	m := e.answer(e.send("session/new", obj{"cwd": e.t.TempDir(), "mcpServers": []any{}}))
	if m.Error != nil {
		e.t.Fatal(m.Error.Message)
	}
	return m.Result["sessionId"].(string)
}

func prompt(session, text string) obj {
	return obj{"sessionId": session, "prompt": []any{obj{"type": "text", "text": text}}}
}

// done counts the tool calls that completed.
func (e *editor) done() (n int) {
	for _, u := range e.updates {
		if u["sessionUpdate"] == "tool_call_update" && u["status"] == "completed" {
			n++
		}
	}
	return n
}

func (e *editor) text() (out string) {
	for _, u := range e.updates {
		if u["sessionUpdate"] == "agent_message_chunk" {
			out += u["content"].(obj)["text"].(string)
		}
	}
	return out
}

// An editor reads nothing until the owner has given its connection up. Then it reads, the
// session goes on after its cursor, and not one tool call or word is missing or repeated.
func TestEditorThatDoesNotReadIsReattached(t *testing.T) {
	e := connect(t)
	s := e.session()
	before := e.dials.Load()
	over := make(chan struct{})
	o, err := appclient.Dial(t.Context(), e.addr, appclient.Options{Name: "observer", OptOut: []string{"item/commandExecution/outputDelta"}, OnNotification: func(n appclient.Notification) {
		if n.Method == "turn/completed" {
			close(over)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if _, err := o.Resume(t.Context(), app.ThreadResumeParams{ThreadID: s}); err != nil {
		t.Fatal(err)
	}
	const n = 40
	id := e.send("session/prompt", prompt(s, "sim: say begun"+strings.Repeat(" ;; run head -c 50000 /dev/zero | tr '\\0' x", n)+" ;; say ended"))
	<-over
	if m := e.answer(id); m.Error != nil || m.Result["stopReason"] != "end_turn" {
		t.Errorf("the prompt ended with %+v", m)
	}
	if e.dials.Load() == before {
		t.Error("the owner did not give up the connection: the test shows nothing")
	}
	if e.done() != n || e.text() != "begunended" {
		t.Errorf("%d of %d tool calls, and the agent said %q", e.done(), n, e.text())
	}
}

// Connections to the owner end in the middle of a message and cannot be made for a while,
// again and again: every word arrives once.
func TestConnectionsEndInMidMessage(t *testing.T) {
	e := connect(t)
	s := e.session()
	heard := make(chan int, 4096)
	o, err := appclient.Dial(t.Context(), e.addr, appclient.Options{Name: "observer", OnNotification: func(n appclient.Notification) {
		var d app.Delta
		if n.Method == "item/agentMessage/delta" && json.Unmarshal(n.Params, &d) == nil {
			heard <- len(d.Delta)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if _, err := o.Resume(t.Context(), app.ThreadResumeParams{ThreadID: s}); err != nil {
		t.Fatal(err)
	}
	var words []string
	for i := range 120 {
		words = append(words, fmt.Sprintf("word%d", i))
	}
	want := strings.Join(words, " ")
	id := e.send("session/prompt", prompt(s, "sim: slow 5ms 7 ;; say "+want))
	said := 0
	for cut := range 3 {
		for len(e.text()) < (cut+1)*150 {
			e.read()
		}
		e.gate.Lock()
		for len(e.clients) > 0 {
			c := <-e.clients
			go c.Close()
		}
		for said < (cut+1)*150+80 { // meanwhile the agent goes on
			said += <-heard
		}
		e.gate.Unlock()
	}
	if m := e.answer(id); m.Error != nil || m.Result["stopReason"] != "end_turn" {
		t.Errorf("the prompt ended with %+v", m)
	}
	if e.text() != want {
		t.Errorf("the agent said\n%q, not\n%q", e.text(), want)
	}
	if n := e.dials.Load(); n < 5 {
		t.Errorf("%d connections were made", n)
	}
}

// What is no message is answered, and the editor goes on.
func TestMalformed(t *testing.T) {
	e := connect(t)
	if _, err := io.WriteString(e.in, "{nonsense\n"); err != nil {
		t.Fatal(err)
	}
	if m := e.read(); m.Error == nil || m.Error.Code != -32700 {
		t.Errorf("%+v", m)
	}
	s := e.session()
	for method, code := range map[string]int{"session/fork": -32601, "initialize": -32600} {
		if m := e.answer(e.send(method, obj{"sessionId": s})); m.Error == nil || m.Error.Code != code {
			t.Errorf("%s: %+v", method, m)
		}
	}
	if m := e.answer(e.send("session/prompt", obj{"sessionId": s, "prompt": "text"})); m.Error == nil || m.Error.Code != -32602 {
		t.Errorf("%+v", m)
	}
	if m := e.answer(e.send("authenticate", obj{"methodId": "claude"})); m.Error == nil || m.Error.Code != -32000 {
		t.Errorf("%+v", m)
	}
}

// A terminal that stays open does not keep the program from ending when it is asked to.
func TestStopDoesNotWaitForInput(t *testing.T) {
	in, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- acp.Serve(ctx, stdio.New(struct{ io.Reader }{in}, io.Discard, 0), acp.Config{})
	}()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
