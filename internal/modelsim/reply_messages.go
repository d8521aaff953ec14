package modelsim

import "errors"

// Anthropic Messages.

func (r *reply) messageID() string { return "msg_sim" + r.nonce }

func (r *reply) messagesStop() string {
	switch {
	case r.step.Stop != "":
		return r.step.Stop
	case len(r.calls) > 0:
		return "tool_use"
	}
	return "end_turn"
}

func (r *reply) messagesUsage(output int) map[string]any {
	return map[string]any{
		"input_tokens": r.usage.Input, "cache_creation_input_tokens": r.usage.CacheWrite,
		"cache_read_input_tokens": r.usage.Cached, "output_tokens": output, "service_tier": "standard",
	}
}

func (r *reply) messagesEnvelope(content []any, stop any, output int) map[string]any {
	return map[string]any{
		"id": r.messageID(), "type": "message", "role": "assistant", "model": r.conv.model,
		"content": content, "stop_reason": stop, "stop_sequence": nil, "usage": r.messagesUsage(output),
	}
}

func (r *reply) messagesPlain() any {
	content := []any{}
	if r.step.Reasoning != "" {
		content = append(content, map[string]any{"type": "thinking", "thinking": r.step.Reasoning, "signature": "c2lt"})
	}
	if r.step.Text != "" {
		content = append(content, map[string]any{"type": "text", "text": r.step.Text})
	}
	for i, k := range r.calls {
		content = append(content, map[string]any{"type": "tool_use", "id": callID("toolu_sim", r.nonce, i), "name": k.name, "input": k.object()})
	}
	return r.messagesEnvelope(content, r.messagesStop(), r.usage.Output+r.usage.Reasoning)
}

func (r *reply) messagesStream(s *stream) error {
	s.named = true
	if err := s.event("message_start", map[string]any{"message": r.messagesEnvelope([]any{}, nil, 1)}); err != nil {
		return err
	}
	err := r.messagesBlocks(s)
	if errors.Is(err, errFail) {
		f := r.step.Fault
		return s.event("error", map[string]any{"error": map[string]any{"type": f.Type, "message": f.Message}})
	}
	if err != nil {
		return err
	}
	if err := s.event("message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": r.messagesStop(), "stop_sequence": nil},
		"usage": r.messagesUsage(r.usage.Output + r.usage.Reasoning),
	}); err != nil {
		return err
	}
	return s.event("message_stop", map[string]any{})
}

func (r *reply) messagesBlocks(s *stream) error {
	index := 0
	block := func(start map[string]any, text, delta, field string, after map[string]any) error {
		i := index
		index++
		if err := s.event("content_block_start", map[string]any{"index": i, "content_block": start}); err != nil {
			return err
		}
		if err := s.pieces(text, func(part string) error {
			return s.event("content_block_delta", map[string]any{"index": i, "delta": map[string]any{"type": delta, field: part}})
		}); err != nil {
			return err
		}
		if after != nil {
			if err := s.event("content_block_delta", map[string]any{"index": i, "delta": after}); err != nil {
				return err
			}
		}
		return s.event("content_block_stop", map[string]any{"index": i})
	}
	if r.step.Reasoning != "" {
		if err := block(map[string]any{"type": "thinking", "thinking": "", "signature": ""}, r.step.Reasoning,
			"thinking_delta", "thinking", map[string]any{"type": "signature_delta", "signature": "c2lt"}); err != nil {
			return err
		}
	}
	if r.step.Text != "" {
		if err := block(map[string]any{"type": "text", "text": ""}, r.step.Text, "text_delta", "text", nil); err != nil {
			return err
		}
	}
	for i, k := range r.calls {
		start := map[string]any{"type": "tool_use", "id": callID("toolu_sim", r.nonce, i), "name": k.name, "input": map[string]any{}}
		if err := block(start, k.arguments(), "input_json_delta", "partial_json", nil); err != nil {
			return err
		}
	}
	return s.spring()
}
