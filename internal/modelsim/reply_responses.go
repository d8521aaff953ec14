package modelsim

import (
	"encoding/json"
	"errors"
	"strings"
)

// OpenAI Responses.

// created is the time every answer says it was made, so that answers are equal.
const created = 1767225600

// mcpPrefix begins the name of a tool of an MCP server, mcp__SERVER__TOOL.
const mcpPrefix = "mcp__"

func (r *reply) responseEnvelope(status string, output []any) map[string]any {
	return map[string]any{
		"id": "resp_sim" + r.nonce, "object": "response", "created_at": created,
		"model": r.conv.model, "status": status, "output": output,
	}
}

func (r *reply) responseUsage() map[string]any {
	in := r.usage.Input + r.usage.Cached + r.usage.CacheWrite
	out := r.usage.Output + r.usage.Reasoning
	return map[string]any{
		"input_tokens": in, "input_tokens_details": map[string]any{"cached_tokens": r.usage.Cached},
		"output_tokens": out, "output_tokens_details": map[string]any{"reasoning_tokens": r.usage.Reasoning},
		"total_tokens": in + out,
	}
}

// final is the last event of a stream and the body of a plain answer.
func (r *reply) responseFinal(output []any) (event string, response map[string]any) {
	event, response = "response.completed", r.responseEnvelope("completed", output)
	if r.step.Stop != "" {
		reason := r.step.Stop
		switch reason {
		case "max_tokens":
			reason = "max_output_tokens"
		case "refusal":
			reason = "content_filter"
		}
		event, response = "response.incomplete", r.responseEnvelope("incomplete", output)
		response["incomplete_details"] = map[string]any{"reason": reason}
	}
	response["usage"] = r.responseUsage()
	return event, response
}

func (r *reply) responsePlain() any {
	_, response := r.responseFinal(r.responseItems())
	return response
}

func (r *reply) responseItems() []any {
	items := []any{}
	if r.step.Reasoning != "" {
		items = append(items, map[string]any{
			"type": "reasoning", "id": "rs_sim" + r.nonce,
			"summary": []any{map[string]any{"type": "summary_text", "text": r.step.Reasoning}},
		})
	}
	if r.step.Text != "" {
		items = append(items, map[string]any{
			"type": "message", "id": r.messageID(), "role": "assistant", "status": "completed",
			"content": []any{map[string]any{"type": "output_text", "text": r.step.Text, "annotations": []any{}}},
		})
	}
	for i, k := range r.calls {
		item := map[string]any{"call_id": callID("call_sim", r.nonce, i), "name": k.name, "status": "completed"}
		if k.isText {
			item["type"], item["id"], item["input"] = "custom_tool_call", callID("ctc_sim", r.nonce, i), k.custom
		} else {
			item["type"], item["id"], item["arguments"] = "function_call", callID("fc_sim", r.nonce, i), k.arguments()
			// Tools of MCP servers are offered in namespaces, and called so.
			if server, name, ok := strings.Cut(strings.TrimPrefix(k.name, mcpPrefix), "__"); ok && strings.HasPrefix(k.name, mcpPrefix) {
				item["namespace"], item["name"] = mcpPrefix+server, name
			}
		}
		items = append(items, item)
	}
	return items
}

func (r *reply) responseStream(s *stream) error {
	s.named = true
	for _, name := range []string{"response.created", "response.in_progress"} {
		if err := s.numbered(name, map[string]any{"response": r.responseEnvelope("in_progress", []any{})}); err != nil {
			return err
		}
	}
	items := r.responseItems()
	err := r.responseDeltas(s, items)
	if errors.Is(err, errFail) {
		response := r.responseEnvelope("failed", []any{})
		response["error"] = map[string]any{"code": r.step.Fault.Type, "message": r.step.Fault.Message}
		return s.numbered("response.failed", map[string]any{"response": response})
	}
	if err != nil {
		return err
	}
	event, response := r.responseFinal(items)
	return s.numbered(event, map[string]any{"response": response})
}

func (r *reply) responseDeltas(s *stream, items []any) error {
	for i, it := range items {
		item := it.(map[string]any)
		if err := s.numbered("response.output_item.added", map[string]any{"output_index": i, "item": opening(item)}); err != nil {
			return err
		}
		if err := r.responseItem(s, i, item); err != nil {
			return err
		}
		if err := s.numbered("response.output_item.done", map[string]any{"output_index": i, "item": item}); err != nil {
			return err
		}
	}
	return s.spring()
}

// opening is an item as it looks before its content has come.
func opening(item map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range item {
		switch k {
		case "content", "summary":
			out[k] = []any{}
		case "arguments", "input":
			out[k] = ""
		case "status":
			out[k] = "in_progress"
		default:
			out[k] = v
		}
	}
	return out
}

func (r *reply) responseItem(s *stream, i int, item map[string]any) error {
	at := func(more map[string]any) map[string]any {
		more["item_id"], more["output_index"] = item["id"], i
		return more
	}
	deltas := func(event, text string, more map[string]any) error {
		return s.pieces(text, func(part string) error {
			data := at(map[string]any{"delta": part})
			for k, v := range more {
				data[k] = v
			}
			return s.numbered(event, data)
		})
	}
	switch item["type"] {
	case "message":
		part := map[string]any{"type": "output_text", "text": "", "annotations": []any{}}
		if err := s.numbered("response.content_part.added", at(map[string]any{"content_index": 0, "part": part})); err != nil {
			return err
		}
		if err := deltas("response.output_text.delta", r.step.Text, map[string]any{"content_index": 0}); err != nil {
			return err
		}
		return s.numbered("response.output_text.done", at(map[string]any{"content_index": 0, "text": r.step.Text}))
	case "reasoning":
		part := map[string]any{"type": "summary_text", "text": ""}
		if err := s.numbered("response.reasoning_summary_part.added", at(map[string]any{"summary_index": 0, "part": part})); err != nil {
			return err
		}
		if err := deltas("response.reasoning_summary_text.delta", r.step.Reasoning, map[string]any{"summary_index": 0}); err != nil {
			return err
		}
		return s.numbered("response.reasoning_summary_text.done", at(map[string]any{"summary_index": 0, "text": r.step.Reasoning}))
	case "custom_tool_call":
		return deltas("response.custom_tool_call_input.delta", item["input"].(string), nil)
	}
	args := item["arguments"].(string)
	if err := deltas("response.function_call_arguments.delta", args, nil); err != nil {
		return err
	}
	return s.numbered("response.function_call_arguments.done", at(map[string]any{"arguments": args}))
}

// arguments is a call's input as the OpenAI APIs carry it.
func (k toolCall) arguments() string {
	if k.isText {
		return string(encode(map[string]any{"input": k.custom}))
	}
	return string(k.input)
}

func (k toolCall) object() json.RawMessage { return json.RawMessage(k.arguments()) }
