package modelsim

import "errors"

// OpenAI chat completions.

func (r *reply) chatStop() string {
	switch r.step.Stop {
	case "max_tokens":
		return "length"
	case "refusal":
		return "content_filter"
	case "":
		if len(r.calls) > 0 {
			return "tool_calls"
		}
		return "stop"
	}
	return r.step.Stop
}

func (r *reply) chatUsage() map[string]any {
	in := r.usage.Input + r.usage.Cached + r.usage.CacheWrite
	out := r.usage.Output + r.usage.Reasoning
	return map[string]any{
		"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out,
		"prompt_tokens_details":     map[string]any{"cached_tokens": r.usage.Cached},
		"completion_tokens_details": map[string]any{"reasoning_tokens": r.usage.Reasoning},
	}
}

func (r *reply) chatEnvelope(object string, choices []any) map[string]any {
	return map[string]any{"id": "chatcmpl-sim" + r.nonce, "object": object, "created": created, "model": r.conv.model, "choices": choices}
}

func (r *reply) chatPlain() any {
	message := map[string]any{"role": "assistant", "content": r.step.Text}
	if r.step.Reasoning != "" {
		message["reasoning_content"] = r.step.Reasoning
	}
	var calls []any
	for i, k := range r.calls {
		calls = append(calls, map[string]any{
			"id": callID("call_sim", r.nonce, i), "type": "function",
			"function": map[string]any{"name": k.name, "arguments": k.arguments()},
		})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	out := r.chatEnvelope("chat.completion", []any{map[string]any{"index": 0, "message": message, "finish_reason": r.chatStop()}})
	out["usage"] = r.chatUsage()
	return out
}

func (r *reply) chatStream(s *stream) error {
	delta := func(d map[string]any, finish any) error {
		return s.event("", r.chatEnvelope("chat.completion.chunk", []any{map[string]any{"index": 0, "delta": d, "finish_reason": finish}}))
	}
	err := r.chatDeltas(s, func(d map[string]any) error { return delta(d, nil) })
	if errors.Is(err, errFail) {
		f := r.step.Fault
		return s.event("", map[string]any{"error": map[string]any{"type": f.Type, "message": f.Message, "code": nil, "param": nil}})
	}
	if err != nil {
		return err
	}
	if err := delta(map[string]any{}, r.chatStop()); err != nil {
		return err
	}
	last := r.chatEnvelope("chat.completion.chunk", []any{})
	last["usage"] = r.chatUsage()
	if err := s.event("", last); err != nil {
		return err
	}
	_, err = s.w.Write([]byte("data: [DONE]\n\n"))
	return err
}

func (r *reply) chatDeltas(s *stream, delta func(map[string]any) error) error {
	if err := delta(map[string]any{"role": "assistant", "content": ""}); err != nil {
		return err
	}
	field := func(name string) func(string) error {
		return func(part string) error { return delta(map[string]any{name: part}) }
	}
	if err := s.pieces(r.step.Reasoning, field("reasoning_content")); err != nil {
		return err
	}
	if err := s.pieces(r.step.Text, field("content")); err != nil {
		return err
	}
	for i, k := range r.calls {
		if err := delta(map[string]any{"tool_calls": []any{map[string]any{
			"index": i, "id": callID("call_sim", r.nonce, i), "type": "function",
			"function": map[string]any{"name": k.name, "arguments": ""},
		}}}); err != nil {
			return err
		}
		if err := s.pieces(k.arguments(), func(part string) error {
			return delta(map[string]any{"tool_calls": []any{map[string]any{"index": i, "function": map[string]any{"arguments": part}}}})
		}); err != nil {
			return err
		}
	}
	return s.spring()
}
