package httpapi

import (
	"maps"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/tholehq/thole/internal/jsonhttp"
)

// page is a route whose handler writes its answer itself, with what the document
// says about it.
type page struct {
	Route   // without its method and path
	summary string
	query   []string
	header  []string
	body    any      // of the request; nil: none
	takes   []string // media types of a body that is no JSON
	status  int
	media   string // of the answer; "": it has no body
	shapes  []any  // of the answer, one of them
	also    string // another media type of the answer, of any shape
	nothing bool   // it may also answer 204
}

// serve registers a page in the router and in the document.
func (s *Server) serve(pattern string, p page, h http.HandlerFunc) {
	s.mux.add(p.Route, pattern, h)
	method, path, _ := strings.Cut(pattern, " ")
	op := operation(method, path, p.summary)
	if p.Public != "" {
		op.Security = []map[string][]string{{}}
	}
	if p.Shared {
		op.Security = []map[string][]string{{"share": {}}}
	}
	for part := range strings.SplitSeq(path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			op.Parameters = append(op.Parameters, &huma.Param{In: "path", Name: strings.TrimSuffix(name, "}"), Required: true, Schema: &huma.Schema{Type: "string"}})
		}
	}
	for _, name := range p.query {
		op.Parameters = append(op.Parameters, &huma.Param{In: "query", Name: name, Schema: &huma.Schema{Type: "string"}})
	}
	for _, name := range p.header {
		op.Parameters = append(op.Parameters, &huma.Param{In: "header", Name: name, Schema: &huma.Schema{Type: "string"}})
	}
	if p.body != nil {
		op.RequestBody = &huma.RequestBody{Content: s.content("application/json", p.body)}
	}
	for _, media := range p.takes {
		if op.RequestBody == nil {
			op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{}}
		}
		op.RequestBody.Content[media] = &huma.MediaType{Schema: &huma.Schema{Type: "string", Format: "binary"}}
	}
	op.Responses = map[string]*huma.Response{strconv.Itoa(p.status): {Description: http.StatusText(p.status), Content: s.content(p.media, p.shapes...)}}
	if p.also != "" {
		maps.Copy(op.Responses[strconv.Itoa(p.status)].Content, s.content(p.also))
	}
	if p.nothing {
		op.Responses[strconv.Itoa(http.StatusNoContent)] = &huma.Response{Description: "Nothing runs"}
	}
	maps.Copy(op.Responses, s.refused(p.Route, p.body != nil || p.takes != nil, false))
	s.api.OpenAPI().AddOperation(&op)
}

// content describes a body that has one of the shapes; none: any.
func (s *Server) content(media string, shapes ...any) map[string]*huma.MediaType {
	if media == "" {
		return nil
	}
	schema := &huma.Schema{}
	for _, shape := range shapes {
		schema.OneOf = append(schema.OneOf, s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeOf(shape), true, ""))
	}
	if len(shapes) == 1 {
		schema = schema.OneOf[0]
	}
	return map[string]*huma.MediaType{media: {Schema: schema}}
}

func operation(method, path, summary string) huma.Operation {
	id := strings.ToLower(method) + strings.NewReplacer("/", "-", "{", "", "}", "", "_", "-").Replace(path)
	tag, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return huma.Operation{OperationID: id, Method: method, Path: path, Summary: summary, Tags: []string{tag}}
}

// refused are the answers of errors: any that a machine may give, and those of what
// the request has.
func (s *Server) refused(rt Route, body, match bool) map[string]*huma.Response {
	statuses := append(jsonhttp.Statuses(), http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge)
	if body {
		statuses = append(statuses, http.StatusRequestTimeout, http.StatusUnsupportedMediaType)
	}
	if match {
		statuses = append(statuses, http.StatusPreconditionFailed)
	}
	kind, content := "Problem", s.content("application/problem+json", Problem{})
	if rt.Text {
		kind = "Text"
		maps.Copy(content, s.content("text/plain", ""))
	}
	if rt.HTML { // what is refused before the handler is still JSON
		kind = "Page"
		maps.Copy(content, s.content("text/html", ""))
	}
	known, out := s.api.OpenAPI().Components.Responses, map[string]*huma.Response{}
	for _, status := range statuses {
		name := kind + strconv.Itoa(status)
		known[name] = &huma.Response{Description: http.StatusText(status), Content: content}
		out[strconv.Itoa(status)] = &huma.Response{Ref: "#/components/responses/" + name}
	}
	return out
}
