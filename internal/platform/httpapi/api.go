package httpapi

import (
	"context"
	"errors"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/thread"
)

func newAPI(mux *router, version string) huma.API {
	ownErrors()
	c := huma.Config{
		OpenAPI: &huma.OpenAPI{
			Info: &huma.Info{Title: "thole", Version: version, Description: "Sessions, runs, questions and background jobs. The schema of a text/event-stream is that of the data of each event; docs/protocol/http.md describes their order."},
			Components: &huma.Components{
				Responses: map[string]*huma.Response{},
				Schemas:   huma.NewMapRegistry("#/components/schemas/", schemaName),
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"token":   {Type: "http", Scheme: "bearer"},
					"session": {Type: "apiKey", In: "cookie", Name: "thole_…"},
					"proof":   {Type: "apiKey", In: "header", Name: ProofHeader, Description: "of the same login as the cookie"},
					"share":   {Type: "apiKey", In: "header", Name: ShareHeader, Description: "token of a share link, for the routes under /shared alone"},
					"ticket":  {Type: "apiKey", In: "query", Name: ticketParam, Description: "of POST /auth/tickets, for one GET"},
				},
			},
			Security: []map[string][]string{{"token": {}}, {"session": {}, "proof": {}}, {"ticket": {}}},
		},
		Formats:       map[string]huma.Format{"application/json": exactJSON, "json": exactJSON},
		DefaultFormat: "application/json",
	}
	return humago.New(mux, c)
}

// exactJSON reads bodies by the exact names of their members.
var exactJSON = huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: strictjson.Unmarshal}

// schemaName keeps types of one name apart: the public shapes have theirs to
// themselves, what they contain carries its package's.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	path := t.PkgPath()
	pkg := path[strings.LastIndexByte(path, '/')+1:]
	if pkg == "" || pkg == "view" || pkg == "httpapi" {
		return name
	}
	return strings.ToUpper(pkg[:1]) + pkg[1:] + name
}

// op registers one operation.
func op[I, O any](s *Server, method, path, summary string, status int, h func(context.Context, *I) (*O, error)) {
	o := operation(method, path, summary)
	o.DefaultStatus, o.MaxBodyBytes = status, maxBody
	_, body := reflect.TypeFor[I]().FieldByName("Body")
	_, match := reflect.TypeFor[I]().FieldByName("MatchIn")
	o.Responses = s.refused(Route{}, body, match)
	huma.Register(s.api, o, func(ctx context.Context, in *I) (*O, error) {
		out, err := h(ctx, in)
		if err == nil {
			return out, nil
		}
		var p *Problem
		if errors.As(err, &p) {
			return nil, p
		}
		return nil, s.problem(ctx, path, body, err)
	})
}

// body is an answer without headers of its own.
type body[T any] struct{ Body T }

func answer[T any](v T, err error) (*body[T], error) {
	if err != nil {
		return nil, err
	}
	return &body[T]{v}, nil
}

// tagged is an answer that can be edited.
type tagged[T any] struct {
	ETag string `header:"ETag"`
	Body T
}

type empty struct{}

func done(err error) (*empty, error) {
	if err != nil {
		return nil, err
	}
	return nil, nil
}

// list is a page.
type list[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty" doc:"cursor of the next page"`
	Back  string `json:"back,omitempty" doc:"cursor of the page before"`
}

// PageIn is how lists are walked.
type PageIn struct {
	Cursor string `query:"cursor" doc:"from a list's next or back"`
	Limit  int    `query:"limit" minimum:"0" maximum:"200" doc:"50 when absent"`
	Order  string `query:"order" enum:"asc,desc" doc:"asc when absent"`
}

func (p PageIn) params() thread.PageParams {
	limit := p.Limit
	if limit == 0 {
		limit = 50
	}
	return thread.PageParams{Cursor: p.Cursor, Limit: limit, Desc: p.Order == "desc"}
}

func paged[A, B any](page thread.Page[A], f func(A) B) list[B] {
	out := list[B]{Items: make([]B, len(page.Items)), Next: page.Next, Back: page.Back}
	for i, v := range page.Items {
		out.Items[i] = f(v)
	}
	return out
}

// KeyIn is the header of creates.
type KeyIn struct {
	Key string `header:"Idempotency-Key" maxLength:"255" doc:"a repeat returns what the first request made"`
}

// MatchIn is the header of edits.
type MatchIn struct {
	Match string `header:"If-Match" doc:"refuse with 412 unless this is the current ETag"`
}

// unless refuses a change of what the caller has not seen: it goes with the
// change, so that comparing and changing are one step.
func unless[T any](m MatchIn, tag func(T) string) thread.Precondition[T] {
	return func(now T) error {
		if m.Match == "" || m.Match == "*" {
			return nil
		}
		etag := tag(now)
		for t := range strings.SplitSeq(m.Match, ",") {
			if strings.TrimSpace(t) == etag {
				return nil
			}
		}
		return thole.Errorf(thole.CodeConflict, "%w", errStale).WithHint("read it again and repeat the edit")
	}
}
