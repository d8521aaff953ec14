package contract

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/protocol/app"
	"github.com/tholehq/thole/test/e2e/home"
)

// realAgent is a CLI: how a client calls its scripted model, and how that model calls a
// tool of the thread's client.
type realAgent struct{ model, prefix, between, variable, path string }

func realAgents(t *testing.T) map[string]realAgent {
	return map[string]realAgent{
		"codex":    {"codex/default", "", "", "THOLE_PROVIDERS_CODEX", lab.Codex(t)},
		"claude":   {"claude/default", "mcp__thole_client__", "shop__", "THOLE_PROVIDERS_CLAUDE", lab.Claude(t)},
		"opencode": {"opencode/default", "thole_client_", "shop__", "THOLE_PROVIDERS_OPENCODE", lab.Opencode(t)},
	}
}

// peer is a client on the pipes of `thole app-server`, as SDKs are.
type peer struct {
	t *testing.T
	*appclient.Client
	calls chan *appclient.Request

	mu    sync.Mutex // guards notes
	notes []appclient.Notification
}

func connect(t *testing.T, h *home.Home, name string) *peer {
	t.Helper()
	cmd := h.Command("app-server")
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
	t.Cleanup(func() { in.Close(); waitFor(cmd) })
	p := &peer{t: t, calls: make(chan *appclient.Request, 16)}
	p.Client, err = appclient.Pipe(t.Context(), out, in, appclient.Options{Name: name, Version: "1", Experimental: true, Extended: true,
		OnNotification: func(n appclient.Notification) { p.mu.Lock(); p.notes = append(p.notes, n); p.mu.Unlock() },
		OnRequest:      func(q *appclient.Request) { p.calls <- q },
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func waitFor(cmd *exec.Cmd) {
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		_ = cmd.Process.Kill()
		<-done
	}
}

// heard is the params of the newest notification that fits.
func (p *peer) heard(method string, fits func(json.RawMessage) bool) (params json.RawMessage) {
	p.t.Helper()
	poll.Until(p.t, method, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, n := range slices.Backward(p.notes) {
			if n.Method == method && fits(n.Params) {
				params = n.Params
				return true
			}
		}
		return false
	})
	return params
}

// ended waits for the end of a turn and returns it with the last message of its agent.
func (p *peer) ended(turn string) (app.Turn, string) {
	p.t.Helper()
	var done app.TurnNotification
	p.heard("turn/completed", func(raw json.RawMessage) bool {
		return json.Unmarshal(raw, &done) == nil && done.Turn.ID == turn
	})
	last := ""
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.notes {
		var d app.ItemDone
		if n.Method == "item/completed" && json.Unmarshal(n.Params, &d) == nil && d.TurnID == turn && d.Item.Type == app.ItemAgentMessage && d.Item.Thole == nil {
			last = *d.Item.Text
		}
	}
	return done.Turn, last
}

func (p *peer) start(params app.ThreadStartParams) string {
	p.t.Helper()
	v, err := p.StartThread(p.t.Context(), params)
	if err != nil {
		p.t.Fatal(err)
	}
	return v.Thread.ID
}

func (p *peer) turn(params app.TurnStartParams) string {
	p.t.Helper()
	r, err := p.StartTurn(p.t.Context(), params)
	if err != nil {
		p.t.Fatal(err)
	}
	return r.ID
}

func (p *peer) call() *appclient.Request {
	p.t.Helper()
	select {
	case q := <-p.calls:
		return q
	case <-time.After(2 * time.Minute):
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, n := range p.notes {
			p.t.Logf("%s %.400s", n.Method, n.Params)
		}
		p.t.Fatal("no tool was called")
		return nil
	}
}

var shop = []app.DynamicTool{
	{Type: app.DynamicToolFunction, Name: "lookup", Description: "look something up", InputSchema: json.RawMessage(`{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}`)},
	{Type: app.DynamicToolNamespace, Name: "shop", Description: "the shop", Tools: []app.DynamicTool{
		{Type: app.DynamicToolFunction, Name: "price", Description: "what it costs", InputSchema: json.RawMessage(`{"type":"object","properties":{"of":{"type":"string"}}}`)},
	}},
}

// Every real agent calls the tools of the client that started its thread, and reads what
// that client returned; another client on the thread is not asked.
func TestClientToolsOfEachAgent(t *testing.T) {
	for name, a := range realAgents(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := home.New(t)
			h.Vars = []string{a.variable + "=" + a.path}
			h.Up()
			p := connect(t, h, "an-sdk")
			model := a.model
			thread := p.start(app.ThreadStartParams{Settings: app.Settings{Model: &model}, DynamicTools: shop})
			other := connect(t, h, "an-observer")
			if _, err := other.Resume(t.Context(), app.ThreadResumeParams{ThreadID: thread}); err != nil {
				t.Fatal(err)
			}
			script := "sim: call " + a.prefix + `lookup {"id":7} ;; say told: %tool%`
			if a.between != "" {
				script = "sim: call " + a.prefix + `lookup {"id":7} ;; call ` + a.prefix + a.between + `price {"of":"tea"} ;; say told: %tool%`
			}
			turn := p.turn(app.TurnStartParams{ThreadID: thread, Input: appclient.Text(script)})
			q := p.call()
			var call app.ToolCall
			if err := json.Unmarshal(q.Params, &call); err != nil || q.Method != "item/tool/call" {
				t.Fatalf("%s %s: %v", q.Method, q.Params, err)
			}
			if call.Tool != "lookup" || call.Namespace != nil || call.ThreadID != thread || call.TurnID != turn || string(call.Arguments) != `{"id":7}` {
				t.Errorf("call %s", q.Params)
			}
			p.heard("item/started", func(raw json.RawMessage) bool {
				var s app.ItemStarted
				return json.Unmarshal(raw, &s) == nil && s.Item.ID == call.CallID && s.Item.Type == app.ItemDynamicToolCall && s.Item.Tool == "lookup"
			})
			if err := q.Reply(app.ToolCallAnswer{Success: true, ContentItems: []app.ToolContent{{Type: app.ToolText, Text: "it is number seven"}}}); err != nil {
				t.Fatal(err)
			}
			said := "it is number seven"
			if a.between != "" {
				q = p.call()
				if err := json.Unmarshal(q.Params, &call); err != nil || call.Tool != "price" || call.Namespace == nil || *call.Namespace != "shop" {
					t.Errorf("call %s: %v", q.Params, err)
				}
				said = "two coins"
				if err := q.Reply(app.ToolCallAnswer{Success: false, ContentItems: []app.ToolContent{{Type: app.ToolText, Text: said}}}); err != nil {
					t.Fatal(err)
				}
			}
			done, last := p.ended(turn)
			if done.Status != app.TurnCompleted || !strings.Contains(last, "told: ") || !strings.Contains(last, said) {
				t.Errorf("the turn is %s and says %q: %+v", done.Status, last, done.Error)
			}
			var item app.ItemDone
			p.heard("item/completed", func(raw json.RawMessage) bool {
				return json.Unmarshal(raw, &item) == nil && item.Item.Type == app.ItemDynamicToolCall && item.Item.Tool == "lookup"
			})
			if it := item.Item; it.Status != app.ItemCompleted || it.Success == nil || !*it.Success || len(it.ContentItems) != 1 || it.ContentItems[0].Text != "it is number seven" {
				t.Errorf("item %+v", it)
			}
			if a.between != "" {
				p.heard("item/completed", func(raw json.RawMessage) bool {
					return json.Unmarshal(raw, &item) == nil && item.Item.Tool == "price"
				})
				if it := item.Item; it.Namespace == nil || *it.Namespace != "shop" || it.Status != app.ItemFailed || it.Success == nil || *it.Success {
					t.Errorf("item %+v", it)
				}
			}
			select {
			case q := <-other.calls:
				t.Errorf("another client was asked: %s %s", q.Method, q.Params)
			default:
			}
			answersBySchema(t, p, thread)
		})
	}
}

// answersBySchema has the agent of a thread answer by a schema.
func answersBySchema(t *testing.T, p *peer, thread string) {
	t.Helper()
	turn := p.turn(app.TurnStartParams{ThreadID: thread, Input: appclient.Text(`sim: give {"answer":"forty-two"}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"],"additionalProperties":false}`)})
	done, last := p.ended(turn)
	var got struct{ Answer string }
	if err := json.Unmarshal([]byte(last), &got); err != nil || got.Answer != "forty-two" || done.Status != app.TurnCompleted {
		t.Errorf("the turn is %s and says %q: %v %+v", done.Status, last, err, done.Error)
	}
	turn = p.turn(app.TurnStartParams{ThreadID: thread, Input: appclient.Text("sim: say in plain words")})
	if _, last := p.ended(turn); last != "in plain words" {
		t.Errorf("the next turn says %q", last)
	}
}

// A call that waits when the server is killed: codex waits on, and the client that came back
// is asked; for claude, which hears no more of it, the call is withdrawn.
func TestClientToolsOverARestart(t *testing.T) {
	for _, name := range []string{"codex", "claude"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := realAgents(t)[name]
			h := home.New(t)
			h.Vars = []string{a.variable + "=" + a.path}
			kill := h.Up()
			p := connect(t, h, "an-sdk")
			model := a.model
			thread := p.start(app.ThreadStartParams{Settings: app.Settings{Model: &model}, DynamicTools: shop})
			turn := p.turn(app.TurnStartParams{ThreadID: thread, Input: appclient.Text("sim: call " + a.prefix + `lookup {"id":7} ;; say told: %tool%`)})
			p.call()
			kill()
			h.Up()
			p = connect(t, h, "an-sdk")
			if _, err := p.Resume(t.Context(), app.ThreadResumeParams{ThreadID: thread}); err != nil {
				t.Fatal(err)
			}
			if name == "claude" {
				poll.Until(t, "the call withdrawn", func() bool {
					asks, err := p.Asks(t.Context(), thread, true)
					return err == nil && len(asks) == 0
				})
				if err := p.Interrupt(t.Context(), thread, turn); err != nil {
					t.Fatal(err)
				}
				if done, _ := p.ended(turn); done.Status != app.TurnInterrupted {
					t.Errorf("the turn is %s", done.Status)
				}
				return
			}
			if err := p.call().Reply(app.ToolCallAnswer{Success: true, ContentItems: []app.ToolContent{{Type: app.ToolText, Text: "it is number seven"}}}); err != nil {
				t.Fatal(err)
			}
			if done, last := p.ended(turn); done.Status != app.TurnCompleted || last != "told: it is number seven" {
				t.Errorf("the turn is %s and says %q", done.Status, last)
			}
		})
	}
}
