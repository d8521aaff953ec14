package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/tholehq/thole/internal/authz"
)

// maxBody bounds a request: one message with its images.
const maxBody = 24 << 20

// owned are the first path segments that belong to the API. What is below them
// and unknown is an error; every other path is the web UI's.
func owned(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch first {
	case "auth", "contract", "methods", "sessions", "shared", "shares", "sources", "uploads", "runs", "human-loop", "inbox", "search", "jobs", "batches", "ledger", "providers", "usage", "budgets", "vault", "connections", "events", "api", "openapi.json", "healthz", "readyz", "metrics":
		return true
	}
	return false
}

// Route is one registered route.
type Route struct {
	Method string
	Path   string
	// Action is what a request to it wants to do.
	Action authz.Action
	// Public says why the route answers without a login; "": it does not.
	Public string
	// Shared routes answer who has a share link, and nobody else: no login or API token opens
	// them, and a share link opens no other.
	Shared bool
	// Text routes return errors as short plain text, unless JSON is asked for.
	Text bool
	// HTML routes return errors as a page.
	HTML bool
	// Large routes take bodies of up to MaxUpload and bound what they read of them.
	Large bool
}

func (r Route) maxBody() int64 {
	if r.Large {
		return MaxUpload
	}
	return maxBody
}

// router is the standard mux that knows its routes, so that tests can walk them
// all and a new one cannot be forgotten.
type router struct {
	*http.ServeMux
	routes map[string]Route
}

func newRouter() *router { return &router{ServeMux: http.NewServeMux(), routes: map[string]Route{}} }

// HandleFunc registers a route that needs a login. It is also what huma calls.
func (m *router) HandleFunc(pattern string, h func(http.ResponseWriter, *http.Request)) {
	m.add(Route{}, pattern, h)
}

func (m *router) add(rt Route, pattern string, h http.HandlerFunc) {
	rt.Method, rt.Path, _ = strings.Cut(pattern, " ")
	rt.Action = actions()[pattern]
	m.routes[pattern] = rt
	m.ServeMux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		h(w, r.WithContext(authz.Doing(r.Context(), rt.Action)))
	})
}

// find returns the handler of a request, nil when no route matches.
func (m *router) find(r *http.Request) (http.Handler, string) {
	h, pattern := m.Handler(r)
	if _, known := m.routes[pattern]; !known {
		return nil, ""
	}
	return h, pattern
}

// Routes lists what the server answers, besides the web UI.
func (s *Server) Routes() []Route {
	out := make([]Route, 0, len(s.mux.routes))
	for _, r := range s.mux.routes {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b Route) int {
		if c := strings.Compare(a.Path, b.Path); c != 0 {
			return c
		}
		return strings.Compare(a.Method, b.Method)
	})
	return out
}

// allowed lists the methods that a path has.
func (m *router) allowed(r *http.Request) []string {
	var out []string
	for _, method := range []string{"DELETE", "GET", "PATCH", "POST", "PUT"} {
		probe := *r
		probe.Method = method
		if h, _ := m.find(&probe); h != nil {
			out = append(out, method)
		}
	}
	return out
}
