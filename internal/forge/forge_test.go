package forge_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/forge"
	"github.com/tholehq/thole/internal/testkit/forges"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a forge and an address of its repository.
type site struct {
	*forges.Server
	kind   forge.Kind
	remote string
	client *forge.Client
}

func sites(t *testing.T) map[string]site {
	t.Helper()
	out := map[string]site{}
	for kind, one := range map[forge.Kind]struct {
		start func(testing.TB) *forges.Server
		api   string
		path  string
	}{
		forge.GitHub: {forges.GitHub, "", "/owner/name.git"},
		forge.GitLab: {forges.GitLab, "/api/v4", "/group/sub/name.git"},
		forge.Gitea:  {forges.Gitea, "/api/v1", "/owner/name"},
	} {
		s := one.start(t)
		transport := &http.Transport{DisableKeepAlives: true}
		out[string(kind)] = site{s, kind, s.URL + one.path, &forge.Client{Hosts: map[string]forge.Host{s.Host(): {Kind: kind, API: s.URL + one.api}}, Transport: transport}}
	}
	return out
}

func (s site) open(t *testing.T, token string, r forge.Request) (forge.Opened, error) {
	t.Helper()
	at, err := s.client.Find(t.Context(), s.remote)
	if err != nil {
		t.Fatal(err)
	}
	return s.client.Open(t.Context(), at, token, r)
}

// One branch has one request, however often it is asked for and whatever is lost on the way.
func TestOpen(t *testing.T) {
	for name, s := range sites(t) {
		t.Run(name, func(t *testing.T) {
			r := forge.Request{Title: "Say  hello\n", Body: "It *says* hello.", Head: "thole/say-hello", Draft: true}
			got, err := s.open(t, forges.Token, r)
			if err != nil || got.Number != 1 || got.Existing || got.Base != "trunk" || !strings.HasPrefix(got.URL, s.URL) {
				t.Fatalf("%+v, %v", got, err)
			}
			want := forges.Pull{Number: 1, Title: "Say hello", Body: r.Body, Head: r.Head, Base: "trunk", Draft: true}
			if all := s.Pulls(); len(all) != 1 || all[0] != want {
				t.Fatalf("%+v", all)
			}
			if again, err := s.open(t, forges.Token, r); err != nil || !again.Existing || again.Number != 1 || again.URL != got.URL {
				t.Errorf("again: %+v, %v", again, err)
			}
			other := r
			other.Head, other.Base, other.Draft = "thole/other", "stable", false
			s.Lose("POST")
			if lost, err := s.open(t, forges.Token, other); err != nil || lost.Number != 2 || lost.Base != "stable" {
				t.Errorf("after a lost answer: %+v, %v", lost, err)
			}
			if all := s.Pulls(); len(all) != 2 || all[1].Draft {
				t.Errorf("%+v", all)
			}
		})
	}
}

// What a forge refuses is reported as what it is, and nothing is opened.
func TestRefusals(t *testing.T) {
	for name, s := range sites(t) {
		t.Run(name, func(t *testing.T) {
			r := forge.Request{Title: "x", Head: "b", Base: "trunk"}
			if _, err := s.open(t, "", r); thole.CodeOf(err) != thole.CodeUnauthorized || !strings.Contains(thole.HintOf(err), "--provider "+s.Host()) {
				t.Errorf("without a token: %v", err)
			}
			if _, err := s.open(t, "wrong", r); thole.CodeOf(err) != thole.CodeUnauthorized {
				t.Errorf("with a wrong one: %v", err)
			}
			if _, err := s.open(t, "a\nb", r); thole.CodeOf(err) != thole.CodeUnauthorized {
				t.Errorf("with two lines: %v", err)
			}
			for code, want := range map[int]thole.Code{403: thole.CodeForbidden, 404: thole.CodeNotFound, 500: thole.CodeUnavailable, 429: thole.CodeUnavailable, 422: thole.CodeInvalid, 302: thole.CodeUnavailable} {
				s.Fail("POST", code)
				if _, err := s.open(t, forges.Token, r); thole.CodeOf(err) != want || strings.Contains(err.Error(), forges.Token) {
					t.Errorf("%d: %v", code, err)
				}
			}
			if _, err := s.open(t, forges.Token, forge.Request{Title: "x", Head: "trunk"}); thole.CodeOf(err) != thole.CodeInvalid {
				t.Errorf("into itself: %v", err)
			}
			if len(s.Pulls()) != 0 {
				t.Errorf("%+v", s.Pulls())
			}
		})
	}
}

// A token does not follow a redirect, and does not travel in the open.
func TestATokenGoesNowhereElse(t *testing.T) {
	seen := make(chan http.Header, 10)
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header }))
	defer thief.Close()
	trap := httptest.NewServer(http.RedirectHandler(thief.URL, http.StatusTemporaryRedirect))
	defer trap.Close()
	for _, kind := range []forge.Kind{forge.GitHub, forge.GitLab, forge.Gitea} {
		host := strings.TrimPrefix(trap.URL, "http://")
		c := &forge.Client{Hosts: map[string]forge.Host{host: {Kind: kind, API: trap.URL}}, Transport: &http.Transport{DisableKeepAlives: true}}
		at, err := c.Find(t.Context(), trap.URL+"/owner/name")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Open(t.Context(), at, forges.Token, forge.Request{Title: "x", Head: "b"}); thole.CodeOf(err) != thole.CodeUnavailable {
			t.Errorf("%s: %v", kind, err)
		}
		at.API.Host, at.API.Scheme = "git.example.com", "http"
		if _, err := c.Open(t.Context(), at, forges.Token, forge.Request{Title: "x", Head: "b"}); thole.CodeOf(err) != thole.CodeInvalid {
			t.Errorf("%s in the open: %v", kind, err)
		}
	}
	if len(seen) != 0 {
		t.Errorf("somebody else got %v", <-seen)
	}
}

func TestFind(t *testing.T) {
	c := &forge.Client{Hosts: map[string]forge.Host{"git.example.com": {Kind: forge.Gitea}, "code.example.com:8443": {Kind: forge.GitLab, API: "https://api.example.com/v4"}}}
	for remote, want := range map[string]string{
		"https://github.com/owner/name.git":       "github https://api.github.com owner/name",
		"git@github.com:owner/name.git":           "github https://api.github.com owner/name",
		"ssh://git@github.com:22/owner/name":      "github https://api.github.com owner/name",
		"https://gitlab.com/a/b/c.git":            "gitlab https://gitlab.com/api/v4 a/b/c",
		"git@git.example.com:owner/name.git":      "gitea https://git.example.com/api/v1 owner/name",
		"https://code.example.com:8443/owner/one": "gitlab https://api.example.com/v4 owner/one",
		"https://codeberg.org/owner/name/":        "gitea https://codeberg.org/api/v1 owner/name",
		"https://github.com/owner":                "",
		"https://github.com/a/b/c":                "",
		"https://github.com/../x":                 "",
		"/srv/git/name.git":                       "",
		"file:///srv/owner/name.git":              "",
		"ext::sh -c x":                            "",
		"":                                        "",
	} {
		at, err := c.Find(t.Context(), remote)
		got := ""
		if err == nil {
			got = string(at.Kind) + " " + at.API.String() + " " + at.Path
		}
		if got != want {
			t.Errorf("%q: %q, %v; want %q", remote, got, err, want)
		}
	}
}

func TestParseHost(t *testing.T) {
	for text, ok := range map[string]bool{"gitea": true, "github https://git.example.com/api/v3": true, "forge": false, "": false, "gitea example.com": false, "gitea https://u:p@example.com": false} {
		if _, err := forge.ParseHost(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}
