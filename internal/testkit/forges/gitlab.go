package forges

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// GitLab serves GitLab's API with the members that its documentation names for these
// calls, and no others.
func GitLab(t testing.TB) *Server {
	t.Helper()
	return start(t, serveGitLab, "Private-Token", Token)
}

// project is the repository with its groups, as GitLab wants it in a path.
const project = "/api/v4/projects/group%2Fsub%2Fname"

func serveGitLab(s *Server, w http.ResponseWriter, r *http.Request, body []byte) {
	shown := func(p Pull) map[string]any {
		return map[string]any{"iid": p.Number, "id": 1000 + p.Number, "web_url": fmt.Sprintf("%s/group/sub/name/-/merge_requests/%d", s.URL, p.Number), "target_branch": p.Base, "source_branch": p.Head, "draft": p.Draft}
	}
	q := r.URL.Query()
	switch r.Method + " " + r.URL.EscapedPath() {
	case "GET " + project:
		say(w, 200, map[string]any{"id": 7, "default_branch": "trunk"})
	case "GET " + project + "/merge_requests":
		if err := only(q, "state", "source_branch", "target_branch"); err != nil || q.Get("state") != "opened" {
			s.t.Errorf("%s: %v", r.URL, err)
		}
		list := []any{}
		if p, open := s.of(q.Get("source_branch"), q.Get("target_branch")); open {
			list = append(list, shown(p))
		}
		say(w, 200, list)
	case "POST " + project + "/merge_requests":
		got, err := members(body, map[string]string{"source_branch": "string", "target_branch": "string", "title": "string", "description": "string", "remove_source_branch": "bool", "squash": "bool"})
		if err != nil {
			s.t.Errorf("%s: %v", r.URL, err)
		}
		if _, open := s.of(text(got, "source_branch"), text(got, "target_branch")); open {
			say(w, 409, map[string]any{"message": []string{"Another open merge request already exists for this source branch: !1"}})
			return
		}
		title, draft := strings.CutPrefix(text(got, "title"), "Draft: ")
		say(w, 201, shown(s.open(Pull{Title: title, Body: text(got, "description"), Head: text(got, "source_branch"), Base: text(got, "target_branch"), Draft: draft})))
	default:
		say(w, 404, map[string]any{"message": "404 Project Not Found"})
	}
}
