package forges

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// Gitea serves the API of Gitea and Forgejo with the members that its description names
// for these calls, and no others.
func Gitea(t testing.TB) *Server {
	t.Helper()
	return start(t, serveGitea, "Authorization", "token "+Token)
}

func serveGitea(s *Server, w http.ResponseWriter, r *http.Request, body []byte) {
	shown := func(p Pull) map[string]any {
		return map[string]any{
			"number": p.Number, "html_url": fmt.Sprintf("%s/owner/name/pulls/%d", s.URL, p.Number), "draft": p.Draft,
			"base": map[string]any{"ref": p.Base, "label": p.Base}, "head": map[string]any{"ref": p.Head, "label": p.Head},
		}
	}
	q := r.URL.Query()
	switch r.Method + " " + r.URL.EscapedPath() {
	case "GET /api/v1/repos/owner/name":
		say(w, 200, map[string]any{"default_branch": "trunk"})
	case "GET /api/v1/repos/owner/name/pulls":
		if err := only(q, "state", "sort", "limit", "page", "base_branch", "poster", "labels", "milestone"); err != nil {
			s.t.Errorf("%s: %v", r.URL, err)
		}
		list := []any{}
		if q.Get("page") == "1" {
			for _, p := range s.pulls {
				if !p.Closed {
					list = append(list, shown(p))
				}
			}
		}
		say(w, 200, list)
	case "POST /api/v1/repos/owner/name/pulls":
		got, err := members(body, map[string]string{"head": "string", "base": "string", "title": "string", "body": "string"})
		if err != nil {
			s.t.Errorf("%s: %v", r.URL, err)
		}
		if _, open := s.of(text(got, "head"), text(got, "base")); open {
			say(w, 409, map[string]any{"message": "pull request already exists for these targets"})
			return
		}
		title, draft := strings.CutPrefix(text(got, "title"), "WIP: ")
		say(w, 201, shown(s.open(Pull{Title: title, Body: text(got, "body"), Head: text(got, "head"), Base: text(got, "base"), Draft: draft})))
	default:
		say(w, 404, map[string]any{"message": "not found"})
	}
}
