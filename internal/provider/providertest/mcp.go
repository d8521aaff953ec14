package providertest

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
)

// mcpVar makes this test binary an MCP server whose one tool, size, asks the user
// and returns the answer; see Main.
const mcpVar = "THOLE_TEST_MCP"

const (
	mcpServer    = "shop"
	mcpResource  = "ui://shop/hours"
	mcpQuestion  = "Which size would you like?"
	mcpNoAnswers = "this client takes no questions"
)

// serveMCP serves standard input and output to its end.
func serveMCP() {
	type message struct {
		ID     json.RawMessage `json:"id,omitempty"`
		Method string          `json:"method"`
		Params struct {
			Name         string                     `json:"name"`
			Arguments    json.RawMessage            `json:"arguments"`
			Version      string                     `json:"protocolVersion"`
			Capabilities map[string]json.RawMessage `json:"capabilities"`
		} `json:"params"`
		Result json.RawMessage `json:"result"`
	}
	out := json.NewEncoder(os.Stdout)
	reply := func(id json.RawMessage, result any) {
		_ = out.Encode(map[string]any{"jsonrpc": "2.0", "id": id, "result": result})
	}
	said := func(text string) any {
		return map[string]any{"content": []any{map[string]string{"type": "text", "text": text}}}
	}
	var call json.RawMessage // the tool call that waits for an answer
	asks := false
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var m message
		if json.Unmarshal(in.Bytes(), &m) != nil {
			continue
		}
		switch {
		case m.Method == "initialize":
			_, asks = m.Params.Capabilities["elicitation"]
			reply(m.ID, map[string]any{"protocolVersion": m.Params.Version, "capabilities": map[string]any{"tools": map[string]any{}, "resources": map[string]any{}},
				"serverInfo": map[string]string{"name": mcpServer, "version": "1"}})
		case m.Method == "tools/list":
			reply(m.ID, map[string]any{"tools": []any{map[string]any{"name": "size", "description": "asks the user for a size",
				"inputSchema": map[string]any{"type": "object", "properties": map[string]any{}},
				"annotations": map[string]any{"readOnlyHint": true, "destructiveHint": false, "openWorldHint": false}},
				map[string]any{"name": "echo", "description": "says what it hears", "inputSchema": map[string]any{"type": "object", "properties": map[string]any{}}}}})
		case m.Method == "resources/list":
			reply(m.ID, map[string]any{"resources": []any{map[string]string{"uri": mcpResource, "name": "hours"}}})
		case m.Method == "resources/templates/list":
			reply(m.ID, map[string]any{"resourceTemplates": []any{}})
		case m.Method == "resources/read":
			reply(m.ID, map[string]any{"contents": []any{map[string]string{"uri": mcpResource, "mimeType": "text/html", "text": "open at nine"}}})
		case m.Method == "tools/call" && m.Params.Name == "echo":
			reply(m.ID, said("heard "+string(m.Params.Arguments)))
		case m.Method == "tools/call" && m.Params.Name != "size":
			reply(m.ID, map[string]any{"isError": true, "content": []any{map[string]string{"type": "text", "text": "no such tool"}}})
		case m.Method == "tools/call" && !asks:
			reply(m.ID, said(mcpNoAnswers))
		case m.Method == "tools/call":
			call = m.ID
			_ = out.Encode(map[string]any{"jsonrpc": "2.0", "id": "ask", "method": "elicitation/create", "params": map[string]any{
				"message":         mcpQuestion,
				"requestedSchema": map[string]any{"type": "object", "properties": map[string]any{"size": map[string]any{"type": "string"}}, "required": []string{"size"}},
			}})
		case m.Method == "" && string(m.ID) == `"ask"`:
			reply(call, said("the user said "+string(m.Result)))
		case m.Method != "" && m.ID != nil:
			reply(m.ID, map[string]any{})
		}
	}
}

// serves calls an MCP server of the agent for its user, between turns and next to one.
func serves(b *Bench) {
	if b.Harness.MCP == nil {
		b.Skip("no MCP servers of this provider")
	}
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	b.Harness.MCP(b, &b.Config, mcpServer, self, map[string]string{mcpVar: "1"})
	s := b.Open(Profile(thole.ProfileAsk))
	served, ok := s.(provider.Served)
	if !ok {
		b.Skip("the CLI calls its servers itself, and nobody else can")
	}
	ask := func(call provider.ServerCall) (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		call.Server = mcpServer
		raw, err := served.CallServer(ctx, call)
		return string(raw), err
	}
	b.outcome(b.Play(s, "sim: say ready"), thole.OutcomeCompleted)
	for _, between := range []bool{true, false} {
		var t *Turn
		if !between {
			t = b.Start(s, "sim: slow 50ms 5 ;; say "+strings.Repeat("again and ", 2000))
			t.UntilText("again and again")
		}
		got, err := ask(provider.ServerCall{Tool: "echo", Arguments: json.RawMessage(`{"of":"tea"}`)})
		var result struct {
			Content []struct{ Type, Text string }
		}
		if err != nil || json.Unmarshal([]byte(got), &result) != nil || len(result.Content) != 1 || result.Content[0].Text != `heard {"of":"tea"}` {
			b.Errorf("between turns %t: the tool answers %s, %v", between, got, err)
		}
		if got, err := ask(provider.ServerCall{URI: mcpResource}); err != nil || !strings.Contains(got, "open at nine") || !strings.Contains(got, `"contents":[`) {
			b.Errorf("between turns %t: the resource is %s, %v", between, got, err)
		}
		if got, err := ask(provider.ServerCall{Tool: "none"}); err == nil && !strings.Contains(got, `"isError":true`) {
			b.Errorf("between turns %t: a tool that is not there answers %s", between, got)
		}
		if t != nil {
			t.Stop()
			b.outcome(t.Wait(), thole.OutcomeInterrupted)
		}
	}
}

// elicits has an MCP server ask the user in the middle of a tool call.
func elicits(b *Bench) {
	if b.Harness.MCP == nil {
		b.Skip("no MCP servers behind this provider")
	}
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	tool := b.Harness.MCP(b, &b.Config, mcpServer, self, map[string]string{mcpVar: "1"})
	t := b.Start(b.Open(Profile(thole.ProfileEdit)), "sim: call "+tool+" {} ;; say told: %tool%")
	if b.Harness.NoElicitation {
		if r := t.allowAll(); !strings.Contains(r.Text(), mcpNoAnswers) {
			b.Errorf("the server could ask; events:\n%s", r)
		}
		return
	}
	e := t.Until("ask", isAsk)
	if e.Ask.Kind != event.AskElicitation { // whether the tool may be called at all
		t.Answer(*e.Ask, event.Answer{Decision: event.DecisionAllow})
	}
	ask := t.UntilAsk(event.AskElicitation)
	if !strings.Contains(ask.Reason, mcpQuestion) || !strings.Contains(string(ask.Schema), `"size"`) || !strings.Contains(ask.Title, mcpServer) {
		b.Errorf("ask %+v", ask)
	}
	t.Answer(ask, event.Answer{Decision: event.DecisionAllow, Result: json.RawMessage(`{"size":"vast"}`)})
	r := t.Wait()
	b.outcome(r, thole.OutcomeCompleted)
	if !strings.Contains(r.Text(), "vast") {
		b.Errorf("the server was told %q; events:\n%s", r.Text(), r)
	}
	b.resolved(r, ask, event.DecisionAllow)
}
