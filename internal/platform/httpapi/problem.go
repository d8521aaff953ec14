package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/identity"
	"github.com/tholehq/thole/internal/jsonhttp"
	"github.com/tholehq/thole/internal/upload"
	"github.com/tholehq/thole/internal/vault"
)

// Problem is an error on the wire (RFC 9457).
type Problem struct {
	Type    string              `json:"type" doc:"about:blank: the code says what kind of problem it is"`
	Title   string              `json:"title"`
	Status  int                 `json:"status"`
	Detail  string              `json:"detail"`
	Code    string              `json:"code"`
	Hint    string              `json:"hint,omitempty" doc:"what to do about it"`
	TraceID string              `json:"trace_id"`
	Errors  []*huma.ErrorDetail `json:"errors,omitempty" doc:"what is wrong with which field"`
}

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType implements huma.ContentTypeFilter.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// errStale is an If-Match that does not match any more.
var errStale = errors.New("it was changed meanwhile")

// What is wrong with a request before anybody looks at what it says.
var (
	errMethod    = errors.New("is not offered here")
	errMedia     = errors.New("the Content-Type is not one that is taken here")
	errMalformed = errors.New("the body is not JSON")
)

const jsonHint = "send Content-Type: application/json"

// statusOf is the status of an error: 400 for a request that cannot be read, 422
// where a body could be read and what it says cannot be done.
func statusOf(err error, body bool) int {
	status := jsonhttp.Status(thole.CodeOf(err))
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, errMethod):
		return http.StatusMethodNotAllowed
	case errors.Is(err, errMedia), errors.Is(err, upload.ErrMedia):
		return http.StatusUnsupportedMediaType
	case errors.Is(err, errMalformed):
		return http.StatusBadRequest
	case errors.Is(err, errStale):
		return http.StatusPreconditionFailed
	case keyReused(err), status == http.StatusBadRequest && body:
		return http.StatusUnprocessableEntity
	}
	return status
}

// problem converts err to a response body; body says that the request has one.
// Internal errors are logged and not exposed. What failed because its client left is no
// error of the server.
func (s *Server) problem(ctx context.Context, path string, body bool, err error) *Problem {
	s.denied(ctx, path, err)
	trace := traceOf(ctx)
	p := &Problem{Type: "about:blank", Status: statusOf(err, body), Detail: err.Error(), Code: string(thole.CodeOf(err)), Hint: thole.HintOf(err), TraceID: trace}
	p.Title = http.StatusText(p.Status)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		p.tooLarge(large.Limit)
	case errors.Is(err, vault.ErrLocked):
		p.Code = "vault_locked"
	case keyReused(err):
		p.Code, p.Hint = "idempotency_key_reused", "take a new key for each request; a repeat has the same body"
	}
	if p.Status == http.StatusInternalServerError {
		level, what := slog.LevelError, "request failed"
		if ctx.Err() != nil {
			level, what = slog.LevelInfo, "request given up by its client"
		}
		s.cfg.Log.Log(context.WithoutCancel(ctx), level, what, "path", path, "trace", trace, "err", err)
		p.Detail = "the server could not do this; its log has the reason under the trace id"
		p.Code = string(thole.CodeInternal)
	}
	return p
}

// tooLarge names the limit that a body is beyond.
func (p *Problem) tooLarge(limit int64) {
	p.Detail = fmt.Sprintf("the body is too large: at most %d bytes are taken here", limit)
	if p.Hint == "" {
		p.Hint = "send less, or upload large files with POST /uploads"
	}
}

// refuse answers with an error: the one place where errors are written, besides
// those that huma writes in the same shape.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	body := r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch
	p := s.problem(r.Context(), r.URL.Path, body, err)
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Thole-Code", p.Code)
	if many := (*identity.TooMany)(nil); errors.As(err, &many) {
		h.Set("Retry-After", strconv.Itoa(many.Seconds()))
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="thole"`)
	}
	if readsText(r) {
		h.Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(p.Status)
		text := p.Detail
		if p.Hint != "" {
			text += " (" + p.Hint + ")"
		}
		_, _ = w.Write([]byte(text))
		return
	}
	h.Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}

// readsText says that a client shows the body of an error as it is: the AI SDK's do,
// so the chat endpoint answers with a sentence unless JSON is asked for.
func readsText(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/api/chat") && !strings.Contains(r.URL.Path, "-history") && !strings.Contains(r.Header.Get("Accept"), "json")
}

func (s *Server) unknown(w http.ResponseWriter, r *http.Request) {
	if methods := s.mux.allowed(r); len(methods) > 0 {
		s.refuseMethod(w, r, methods...)
		return
	}
	s.refuse(w, r, thole.Errorf(thole.CodeNotFound, "there is nothing at %.200s", r.URL.Path).WithHint("GET /openapi.json lists what there is"))
}

func (s *Server) refuseMethod(w http.ResponseWriter, r *http.Request, methods ...string) {
	allow := strings.Join(methods, ", ")
	w.Header().Set("Allow", allow)
	s.refuse(w, r, thole.Errorf(thole.CodeInvalid, "%.20s %w", r.Method, errMethod).WithHint("use %s", allow))
}

var claimErrors sync.Once

// ownErrors makes huma's own refusals (a wrong field, a bad body) ours. The hooks
// are globals of that package and are set once.
func ownErrors() {
	claimErrors.Do(func() {
		huma.ValidateStrictCasing = true
		huma.DefaultArrayNullable = false // an empty list is [], never null
		huma.NewErrorWithContext = func(ctx huma.Context, status int, msg string, errs ...error) huma.StatusError {
			trace := ""
			if ctx != nil {
				trace = traceOf(ctx.Context())
			}
			return refusal(trace, status, msg, errs)
		}
		huma.NewError = func(status int, msg string, errs ...error) huma.StatusError { return refusal("", status, msg, errs) }
	})
}

func refusal(trace string, status int, msg string, errs []error) *Problem {
	if status == http.StatusInternalServerError && msg == "cannot read request body" { // the client broke off
		status = http.StatusBadRequest
	}
	p := &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: msg, Code: string(thole.CodeInvalid), TraceID: trace}
	if status >= 500 {
		p.Code = string(thole.CodeInternal)
	}
	for _, err := range errs {
		var d huma.ErrorDetailer
		switch {
		case err == nil:
		case errors.As(err, &d):
			detail := *d.ErrorDetail()
			detail.Value = nil // what was sent may be a secret
			p.Errors = append(p.Errors, &detail)
		default:
			p.Errors = append(p.Errors, &huma.ErrorDetail{Message: err.Error()})
		}
	}
	switch {
	case status == http.StatusRequestEntityTooLarge:
		p.tooLarge(maxBody)
	case status == http.StatusUnsupportedMediaType:
		p.Detail, p.Hint = errMedia.Error(), jsonHint
	case status == http.StatusBadRequest && msg == "validation failed":
		p.Detail = errMalformed.Error()
	}
	return p
}
