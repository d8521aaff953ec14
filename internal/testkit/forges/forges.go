// Package forges serves the APIs of forges as strictly as their makers describe them: a
// request that a real one would refuse, or a member that it does not know, fails the
// test. GitHub's requests and answers are judged by GitHub's own description.
package forges

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tholehq/thole/internal/testkit/gitremote"
)

// Token is the one that the servers take. Git over HTTP takes it too.
const Token = gitremote.Password

// Pull is a request that was opened.
type Pull struct {
	Number            int
	Title, Body, Head string
	Base              string
	Draft             bool
	Closed            bool
}

// Server is one forge with one repository, owner/name, whose default branch is trunk.
type Server struct {
	*httptest.Server
	t     testing.TB
	judge func(method, path string, query url.Values, body []byte) error

	mu    sync.Mutex // guards what follows
	pulls []Pull
	calls []string
	// fail answers the next call of a method, once, and lose lets it work first.
	fail map[string]int
	lose string
}

func start(t testing.TB, serve func(*Server, http.ResponseWriter, *http.Request, []byte), header, value string) *Server {
	t.Helper()
	s := &Server{t: t, fail: map[string]int{}, judge: func(string, string, url.Values, []byte) error { return nil }}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if err != nil {
			t.Errorf("read a request: %v", err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.calls = append(s.calls, r.Method+" "+r.URL.EscapedPath())
		if code := s.fail[r.Method]; code != 0 {
			delete(s.fail, r.Method)
			say(w, code, map[string]any{"message": "not now"})
			return
		}
		if got := r.Header.Get(header); got != value {
			if strings.HasSuffix(r.URL.Path, "/version") {
				http.NotFound(w, r)
				return
			}
			say(w, http.StatusUnauthorized, map[string]any{"message": "Bad credentials"})
			return
		}
		if len(body) > 0 && !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
			t.Errorf("%s %s came as %q", r.Method, r.URL.Path, r.Header.Get("Content-Type"))
		}
		if r.Header.Get("User-Agent") == "" {
			t.Errorf("%s %s named no program", r.Method, r.URL.Path)
		}
		if err := s.judge(r.Method, r.URL.EscapedPath(), r.URL.Query(), body); err != nil {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		if s.lose == r.Method {
			s.lose = ""
			serve(s, httptest.NewRecorder(), r, body)
			panic(http.ErrAbortHandler)
		}
		serve(s, w, r, body)
	}))
	t.Cleanup(s.Close)
	return s
}

// Host is the server's name, as in an address of git.
func (s *Server) Host() string { return strings.TrimPrefix(s.URL, "http://") }

// Pulls are the requests that were opened.
func (s *Server) Pulls() []Pull {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.pulls)
}

// Calls are the requests that came.
func (s *Server) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Fail answers the next call of a method with a code.
func (s *Server) Fail(method string, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail[method] = code
}

// Lose does what the next call of a method asks and breaks the connection.
func (s *Server) Lose(method string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lose = method
}

func (s *Server) open(p Pull) Pull {
	p.Number = len(s.pulls) + 1
	s.pulls = append(s.pulls, p)
	return p
}

// of is the open request of a branch.
func (s *Server) of(head, base string) (Pull, bool) {
	for _, p := range s.pulls {
		if p.Head == head && p.Base == base && !p.Closed {
			return p, true
		}
	}
	return Pull{}, false
}

func say(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v)
}

// members decodes a body that may have some members only, all of them texts or truths.
func members(body []byte, want map[string]string) (map[string]any, error) {
	var got map[string]any
	if err := json.Unmarshal(body, &got); err != nil {
		return nil, err
	}
	for name, v := range got {
		kind, known := want[name]
		if !known {
			return nil, fmt.Errorf("unknown member %q", name)
		}
		if have := fmt.Sprintf("%T", v); have != kind {
			return nil, fmt.Errorf("%s is a %s, not a %s", name, have, kind)
		}
	}
	return got, nil
}

func text(m map[string]any, name string) string { s, _ := m[name].(string); return s }

// only refuses parameters of a query that an API does not know.
func only(q url.Values, names ...string) error {
	for name := range q {
		if !slices.Contains(names, name) {
			return fmt.Errorf("unknown parameter %q", name)
		}
	}
	return nil
}
