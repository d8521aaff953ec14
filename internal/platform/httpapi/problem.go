package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/jsonhttp"
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

func statusOf(err error) int {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, errStale):
		return http.StatusPreconditionFailed
	}
	return jsonhttp.Status(thole.CodeOf(err))
}

// problem converts err to a response body. Internal errors are logged and not
// exposed.
func (s *Server) problem(r *http.Request, trace string, err error) *Problem {
	p := &Problem{Type: "about:blank", Status: statusOf(err), Detail: err.Error(), Code: string(thole.CodeOf(err)), Hint: thole.HintOf(err), TraceID: trace}
	p.Title = http.StatusText(p.Status)
	if errors.Is(err, vault.ErrLocked) {
		p.Code = "vault_locked"
	}
	if p.Status == http.StatusInternalServerError {
		path := ""
		if r != nil {
			path = r.URL.Path
		}
		s.cfg.Log.Error("request failed", "path", path, "trace", trace, "err", err)
		p.Detail = "the server could not do this; its log has the reason under the trace id"
		p.Code = string(thole.CodeInternal)
	}
	return p
}

// refuse answers with an error, as text where a person reads it raw.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p := s.problem(r, traceOf(r.Context()), err)
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Thole-Code", p.Code)
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="thole"`)
	}
	if strings.HasPrefix(r.URL.Path, "/api/chat") && !strings.Contains(r.URL.Path, "-history") {
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

func (s *Server) unknown(w http.ResponseWriter, r *http.Request) {
	if methods := s.mux.allowed(r); len(methods) > 0 {
		w.Header().Set("Allow", strings.Join(methods, ", "))
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusMethodNotAllowed)
		_ = json.NewEncoder(w).Encode(&Problem{Type: "about:blank", Title: http.StatusText(http.StatusMethodNotAllowed), Status: http.StatusMethodNotAllowed,
			Detail: r.Method + " is not offered here", Code: string(thole.CodeInvalid), TraceID: traceOf(r.Context())})
		return
	}
	s.refuse(w, r, thole.Errorf(thole.CodeNotFound, "there is nothing at %s", r.URL.Path))
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
	return p
}
