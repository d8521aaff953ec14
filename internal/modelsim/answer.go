package modelsim

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

func (s *Sim) answer(w http.ResponseWriter, r *http.Request, api string, body []byte) {
	c, err := decode(api, body)
	if err != nil {
		s.record(Request{API: api, Kind: KindOther}, r, body)
		writeError(w, api, &Fault{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: err.Error()})
		return
	}
	if id := r.Header.Get("X-Session-Id"); id != "" {
		c.key = id
	}
	ch := s.pick(c)
	s.record(Request{API: api, Kind: ch.kind, Model: c.model, Conversation: c.key, Prompt: ch.prompt, Step: ch.n, Tools: c.toolNames(), Stream: c.stream}, r, body)
	rep := &reply{nonce: nonce(), conv: c, step: ch.step, calls: resolve(&ch.step, c)}
	rep.step.Text = ch.step.Text
	rep.usage = rep.defaultUsage(body)
	rep.fault = s.arm(c, ch)
	if ch.step.WaitMS > 0 && sleep(r.Context(), time.Duration(ch.step.WaitMS)*time.Millisecond) != nil {
		return
	}
	if rep.fault != nil && rep.fault.Kind == FaultHTTP {
		writeError(w, api, rep.fault)
		return
	}
	s.send(w, r, rep)
}

// arm returns the step's fault unless it has happened often enough. Attempts are
// counted per conversation, prompt and step, so that a retry finds its count.
func (s *Sim) arm(c *conversation, ch choice) *Fault {
	f := ch.step.Fault
	if f == nil {
		return nil
	}
	if f.Times > 0 {
		key := fmt.Sprintf("%s\x00%d\x00%d\x00%s", c.key, ch.origin, ch.n, ch.prompt)
		s.mu.Lock()
		s.attempts[key]++
		n := s.attempts[key]
		s.mu.Unlock()
		if n > f.Times {
			return nil
		}
	}
	armed := *f
	return &armed
}

func (s *Sim) send(w http.ResponseWriter, r *http.Request, rep *reply) {
	plain := map[string]func() any{apiMessages: rep.messagesPlain, apiChat: rep.chatPlain, apiResponses: rep.responsePlain}
	streamed := map[string]func(*stream) error{apiMessages: rep.messagesStream, apiChat: rep.chatStream, apiResponses: rep.responseStream}
	if !rep.conv.stream {
		if rep.fault != nil && rep.fault.Kind == FaultSSE {
			rep.fault.Status = http.StatusInternalServerError
			writeError(w, rep.conv.api, rep.fault)
			return
		}
		writeJSON(w, http.StatusOK, plain[rep.conv.api]())
		return
	}
	if err := streamed[rep.conv.api](openStream(r.Context(), w, rep, s.opts.Pace)); err != nil {
		// The stream ends without its last event: by the script, because the
		// client went away, or because the server closes. Only an aborted handler
		// breaks the connection instead of ending the body properly.
		panic(http.ErrAbortHandler)
	}
}

func (r *reply) defaultUsage(body []byte) Usage {
	if r.step.Usage != nil {
		return *r.step.Usage
	}
	out := tokens(r.step.Text)
	for _, k := range r.calls {
		out += tokens(k.arguments())
	}
	return Usage{Input: tokens(string(body)), Output: max(1, out), Reasoning: tokens(r.step.Reasoning)}
}

func nonce() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a client that went away needs no answer
}

func writeError(w http.ResponseWriter, api string, f *Fault) {
	kind := f.Type
	if kind == "" {
		kind = errorTypes(f.Status)
	}
	if f.RetryAfter != "" {
		w.Header().Set("Retry-After", f.RetryAfter)
	}
	if api == apiMessages {
		writeJSON(w, f.Status, map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": f.Message}})
		return
	}
	writeJSON(w, f.Status, map[string]any{"error": map[string]any{"type": kind, "message": f.Message, "code": nil, "param": nil}})
}

func errorTypes(status int) string {
	switch status {
	case 401:
		return "authentication_error"
	case 403:
		return "permission_error"
	case 404:
		return "not_found_error"
	case 429:
		return "rate_limit_error"
	case 529:
		return "overloaded_error"
	}
	if status < 500 {
		return "invalid_request_error"
	}
	return "api_error"
}
