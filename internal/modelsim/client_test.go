package modelsim

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// The three APIs as their clients see them, read by rules of their own and not by
// the code under test.

type answer struct {
	status    int
	header    http.Header
	text      string
	reasoning string
	calls     []toolUse
	stop      string
	output    float64 // output tokens
	input     float64
	failed    string // error type in the stream
	whole     bool   // the stream came to its proper end
	body      string
}

type toolUse struct{ ID, Name, Input string }

// message is one entry of a history in the words of no API.
type message struct {
	role  string // user, assistant, tool
	text  string
	calls []toolUse
}

var allAPIs = []string{apiMessages, apiChat, apiResponses}

var offeredBy = map[string][]string{
	apiMessages:  {"Bash", "Read", "Write", "Edit", "TodoWrite", "AskUserQuestion", "Agent"},
	apiChat:      {"bash", "read", "write", "edit", "todowrite", "question", "task"},
	apiResponses: {"exec_command", "apply_patch", "update_plan", "request_user_input"},
}

func (s *Sim) request(t *testing.T, api string, tools []string, stream bool, history ...message) answer {
	t.Helper()
	path, body := requestBody(api, tools, stream, history)
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Post(s.URL()+path, "application/json", bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, _ := io.ReadAll(resp.Body) // a cut stream ends with an error
	a := answer{status: resp.StatusCode, header: resp.Header, body: string(raw)}
	if resp.StatusCode != http.StatusOK {
		return a
	}
	if !stream {
		a.plain(t, api, raw)
		return a
	}
	a.events(t, api, raw)
	return a
}

func requestBody(api string, tools []string, stream bool, history []message) (string, map[string]any) {
	body := map[string]any{"model": "m", "stream": stream}
	var offered, entries []any
	for _, name := range tools {
		switch api {
		case apiMessages:
			offered = append(offered, map[string]any{"name": name})
		case apiChat:
			offered = append(offered, map[string]any{"type": "function", "function": map[string]any{"name": name}})
		default:
			kind := "function"
			if name == "apply_patch" {
				kind = "custom"
			}
			offered = append(offered, map[string]any{"type": kind, "name": name})
		}
	}
	for _, m := range history {
		entries = append(entries, historyEntry(api, m)...)
	}
	body["tools"] = offered
	switch api {
	case apiMessages:
		body["system"] = []any{map[string]any{"type": "text", "text": "Working directory: /work\nbe good"}}
		body["messages"] = entries
		return "/v1/messages", body
	case apiChat:
		body["messages"] = append([]any{map[string]any{"role": "system", "content": "Working directory: /work"}}, entries...)
		return "/v1/chat/completions", body
	}
	body["instructions"] = "be good"
	body["input"] = entries
	return "/v1/responses", body
}

func historyEntry(api string, m message) []any {
	switch {
	case api == apiMessages && m.role == "tool":
		return []any{map[string]any{"role": "user", "content": []any{map[string]any{"type": "tool_result", "tool_use_id": "x", "content": m.text}}}}
	case api == apiResponses && m.role == "tool":
		return []any{map[string]any{"type": "function_call_output", "call_id": "x", "output": m.text}}
	}
	if len(m.calls) == 0 {
		return []any{map[string]any{"role": m.role, "content": m.text}}
	}
	var blocks []any
	for _, c := range m.calls {
		switch api {
		case apiMessages:
			blocks = append(blocks, map[string]any{"type": "tool_use", "id": c.ID, "name": c.Name, "input": map[string]any{}})
		case apiChat:
			blocks = append(blocks, map[string]any{"id": c.ID, "type": "function", "function": map[string]any{"name": c.Name, "arguments": c.Input}})
		default:
			blocks = append(blocks, map[string]any{"type": "function_call", "call_id": c.ID, "name": c.Name, "arguments": c.Input})
		}
	}
	switch api {
	case apiMessages:
		return []any{map[string]any{"role": "assistant", "content": blocks}}
	case apiChat:
		return []any{map[string]any{"role": "assistant", "content": nil, "tool_calls": blocks}}
	}
	return blocks
}

type obj = map[string]any

// dig walks objects and lists; a missing step gives nil.
func dig(v any, path ...any) any {
	for _, p := range path {
		switch k := p.(type) {
		case string:
			m, _ := v.(obj)
			v = m[k]
		case int:
			l, _ := v.([]any)
			if k >= len(l) {
				return nil
			}
			v = l[k]
		}
	}
	return v
}

func str(v any, path ...any) string { s, _ := dig(v, path...).(string); return s }

func num(v any, path ...any) float64 { n, _ := dig(v, path...).(float64); return n }

func (a *answer) events(t *testing.T, api string, raw []byte) {
	t.Helper()
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, 1<<20)
	named := ""
	for lines.Scan() {
		line := lines.Text()
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			named = name
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			a.whole = true
			continue
		}
		var e obj
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatalf("event %q: %v", data, err)
		}
		if named != "" && named != str(e, "type") {
			t.Fatalf("event %s says it is %s", named, str(e, "type"))
		}
		switch api {
		case apiMessages:
			a.messagesEvent(e)
		case apiChat:
			a.chatEvent(e)
		default:
			a.responsesEvent(e)
		}
	}
}

func (a *answer) messagesEvent(e obj) {
	switch str(e, "type") {
	case "message_start":
		a.input = num(e, "message", "usage", "input_tokens")
	case "content_block_start":
		if str(e, "content_block", "type") == "tool_use" {
			a.calls = append(a.calls, toolUse{ID: str(e, "content_block", "id"), Name: str(e, "content_block", "name")})
		}
	case "content_block_delta":
		a.text += str(e, "delta", "text")
		a.reasoning += str(e, "delta", "thinking")
		if n := len(a.calls); n > 0 {
			a.calls[n-1].Input += str(e, "delta", "partial_json")
		}
	case "message_delta":
		a.stop, a.output = str(e, "delta", "stop_reason"), num(e, "usage", "output_tokens")
	case "message_stop":
		a.whole = true
	case "error":
		a.failed = str(e, "error", "type")
	}
}

func (a *answer) chatEvent(e obj) {
	if e["error"] != nil {
		a.failed = str(e, "error", "type")
	}
	if u := dig(e, "usage"); u != nil {
		a.input, a.output = num(u, "prompt_tokens"), num(u, "completion_tokens")
	}
	choice := dig(e, "choices", 0)
	a.text += str(choice, "delta", "content")
	a.reasoning += str(choice, "delta", "reasoning_content")
	if call := dig(choice, "delta", "tool_calls", 0); call != nil {
		i := int(num(call, "index"))
		for len(a.calls) <= i {
			a.calls = append(a.calls, toolUse{})
		}
		a.calls[i].ID += str(call, "id")
		a.calls[i].Name += str(call, "function", "name")
		a.calls[i].Input += str(call, "function", "arguments")
	}
	if stop := str(choice, "finish_reason"); stop != "" {
		a.stop = stop
	}
}

func (a *answer) responsesEvent(e obj) {
	switch kind := str(e, "type"); kind {
	case "response.output_text.delta":
		a.text += str(e, "delta")
	case "response.reasoning_summary_text.delta":
		a.reasoning += str(e, "delta")
	case "response.output_item.done":
		switch item := dig(e, "item"); str(item, "type") {
		case "function_call":
			a.calls = append(a.calls, toolUse{str(item, "call_id"), str(item, "name"), str(item, "arguments")})
		case "custom_tool_call":
			a.calls = append(a.calls, toolUse{str(item, "call_id"), str(item, "name"), str(item, "input")})
		}
	case "response.completed", "response.incomplete":
		a.whole = true
		a.stop = str(e, "response", "incomplete_details", "reason")
		a.input, a.output = num(e, "response", "usage", "input_tokens"), num(e, "response", "usage", "output_tokens")
	case "response.failed":
		a.failed = str(e, "response", "error", "code")
	}
}

func (a *answer) plain(t *testing.T, api string, raw []byte) {
	t.Helper()
	var body obj
	if err := json.Unmarshal(raw, &body); err != nil {
		t.Fatal(err)
	}
	a.whole = true
	inputOf := func(v any) string { data, _ := json.Marshal(v); return string(data) }
	switch api {
	case apiMessages:
		a.stop, a.output = str(body, "stop_reason"), num(body, "usage", "output_tokens")
		blocks, _ := body["content"].([]any)
		for _, b := range blocks {
			a.text += str(b, "text")
			a.reasoning += str(b, "thinking")
			if str(b, "type") == "tool_use" {
				a.calls = append(a.calls, toolUse{str(b, "id"), str(b, "name"), inputOf(dig(b, "input"))})
			}
		}
	case apiChat:
		choice := dig(body, "choices", 0)
		a.stop, a.text, a.reasoning = str(choice, "finish_reason"), str(choice, "message", "content"), str(choice, "message", "reasoning_content")
		calls, _ := dig(choice, "message", "tool_calls").([]any)
		for _, c := range calls {
			a.calls = append(a.calls, toolUse{str(c, "id"), str(c, "function", "name"), str(c, "function", "arguments")})
		}
	default:
		items, _ := body["output"].([]any)
		for i, it := range items {
			a.text += str(it, "content", 0, "text")
			a.reasoning += str(it, "summary", 0, "text")
			a.responsesEvent(obj{"type": "response.output_item.done", "item": items[i]})
		}
	}
}
