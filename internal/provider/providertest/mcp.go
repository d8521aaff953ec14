package providertest

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
)

// mcpVar makes this test binary an MCP server whose one tool, size, asks the user
// and returns the answer; see Main.
const mcpVar = "THOLE_TEST_MCP"

const (
	mcpServer    = "shop"
	mcpQuestion  = "Which size would you like?"
	mcpNoAnswers = "this client takes no questions"
)

// serveMCP serves standard input and output to its end.
func serveMCP() {
	type message struct {
		ID     json.RawMessage `json:"id,omitempty"`
		Method string          `json:"method"`
		Params struct {
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
			reply(m.ID, map[string]any{"protocolVersion": m.Params.Version, "capabilities": map[string]any{"tools": map[string]any{}},
				"serverInfo": map[string]string{"name": mcpServer, "version": "1"}})
		case m.Method == "tools/list":
			reply(m.ID, map[string]any{"tools": []any{map[string]any{"name": "size", "description": "asks the user for a size",
				"inputSchema": map[string]any{"type": "object", "properties": map[string]any{}},
				"annotations": map[string]any{"readOnlyHint": true, "destructiveHint": false, "openWorldHint": false}}}})
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
