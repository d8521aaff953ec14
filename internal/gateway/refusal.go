package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// refusal is an answer of the gateway itself, in the words of the client's dialect.
type refusal struct {
	kind  kind
	text  string
	after time.Duration // Retry-After
}

// kind is a class of refusals. The numbers are those that real clients act well upon: one
// retries every 4xx but 400, another reads 403 as a lost login, a third 413 as a context
// that is too long.
type kind struct {
	status, messagesStatus int    // messagesStatus: in the Anthropic dialect, where it differs
	messages               string // error type of the Anthropic dialect
	openai                 string // error type of the two OpenAI dialects
	code                   string // their error code
	retry                  bool   // by the client
}

var (
	unauthorized = kind{401, 0, "authentication_error", "invalid_request_error", "invalid_api_key", false}
	notFound     = kind{404, 0, "not_found_error", "invalid_request_error", "not_found", false}
	noSocket     = kind{426, 0, "invalid_request_error", "invalid_request_error", "upgrade_required", false}
	invalid      = kind{400, 0, "invalid_request_error", "invalid_request_error", "invalid_request", false}
	wrongModel   = kind{400, 404, "not_found_error", "invalid_request_error", "model_not_found", false}
	tooLarge     = kind{413, 0, "request_too_large", "invalid_request_error", "request_too_large", false}
	overBudget   = kind{400, 0, "billing_error", "insufficient_quota", "budget_exceeded", false}
	overloaded   = kind{429, 0, "rate_limit_error", "rate_limit_error", "rate_limit_exceeded", true}
	unavailable  = kind{503, 0, "api_error", "server_error", "unavailable", true}
	badUpstream  = kind{502, 0, "api_error", "server_error", "bad_upstream", true}
	lateUpstream = kind{504, 0, "timeout_error", "server_error", "upstream_timeout", true}
)

func refuse(k kind, format string, args ...any) *refusal {
	return &refusal{kind: k, text: fmt.Sprintf(format, args...)}
}

func (f *refusal) Error() string { return f.text }

func (f *refusal) status(d Dialect) int {
	if d == Anthropic && f.kind.messagesStatus != 0 {
		return f.kind.messagesStatus
	}
	return f.kind.status
}

// write answers a request. The body of a HEAD is left out by the server.
func (f *refusal) write(w http.ResponseWriter, d Dialect) {
	var body any
	if d == Anthropic {
		body = map[string]any{"type": "error", "error": map[string]any{"type": f.kind.messages, "message": f.text}}
	} else {
		body = map[string]any{"error": map[string]any{"message": f.text, "type": f.kind.openai, "param": nil, "code": f.kind.code}}
	}
	text, _ := json.Marshal(body) // strings and nil
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	h.Set("X-Should-Retry", strconv.FormatBool(f.kind.retry))
	if f.after > 0 {
		h.Set("Retry-After", strconv.Itoa(int((f.after+time.Second-1)/time.Second)))
	}
	w.WriteHeader(f.status(d))
	_, _ = w.Write(text)
}
