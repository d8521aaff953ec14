package team

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/test/e2e/home"
)

var form = regexp.MustCompile(`action="([^"]+)"`)

// visit follows a provider's pages as a person does who logs in as user and agrees to all that
// is asked, and returns the address at which that ends.
func (b *browser) visit(t *testing.T, from, user string) *url.URL {
	t.Helper()
	res, err := b.Get(from)
	for range 5 {
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != 200 {
			t.Fatalf("%s: %d %s", res.Request.URL, res.StatusCode, text)
		}
		at := res.Request.URL
		to := form.FindSubmatch(text)
		if strings.HasPrefix(at.Path, "/auth/oidc/") || to == nil {
			return at
		}
		in := url.Values{"prompt": {"login"}, "login": {user}, "password": {"x"}}
		if strings.Contains(string(text), `value="consent"`) {
			in = url.Values{"prompt": {"consent"}}
		}
		if xsrf := regexp.MustCompile(`name="xsrf" value="([^"]+)"`).FindSubmatch(text); xsrf != nil {
			in = url.Values{"xsrf": {string(xsrf[1])}, "logout": {"yes"}}
		}
		next, err := at.Parse(string(to[1]))
		if err != nil {
			t.Fatal(err)
		}
		res, err = b.PostForm(next.String(), in)
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the provider asks without end")
	return nil
}

// sso logs a browser in at the provider.
func (s *server) sso(b *browser, user string) (status int, answer map[string]any) {
	s.t.Helper()
	back := b.visit(s.t, s.base+"/auth/oidc/start?next=/jobs", user)
	q := back.Query()
	return s.send(b, "/auth/oidc/callback", map[string]any{"code": q.Get("code"), "state": q.Get("state"), "iss": q.Get("iss")})
}

func fresh() *browser {
	jar, _ := cookiejar.New(nil)
	return &browser{Client: http.Client{Jar: jar}}
}

// Users log in at a real provider: an invited one by the verified address, with the departments
// and roles of the groups; nobody else; and out again when the provider says so.
func TestSingleSignOn(t *testing.T) {
	const word = "correct horse battery"
	p := lab.NewOIDCProvider(t)
	h := home.New(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("hush\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, h, "--config", configured(t, h.Dir, lab.Postgres(t), nil, "", fmt.Sprintf("[oidc]\nissuer = %q\nclient_id = \"thole\"\nclient_secret_file = %q\nlabel = \"Example\"\ngroups = [\"eng=department lab\", \"ops=platform_admin\", \"eng=department nowhere\"]\n", p.Issuer, secret)))
	p.Serve(t, s.base, map[string]map[string]any{
		"ada": {"email": "Ada@example.org", "email_verified": true, "groups": []string{"eng", "ops"}, "preferred_username": "root"},
		"eve": {"email": "root@example.org", "email_verified": true, "groups": []string{"ops"}},
		"mal": {"email": "ada@example.org", "email_verified": false, "groups": []string{"ops"}},
	})
	_, code, _ := strings.Cut(s.set, "#code=")
	root := s.enter("/auth/account", map[string]any{"code": code, "login": "root", "password": word})
	ask := func(b *browser, method string, params map[string]any) map[string]any {
		t.Helper()
		status, out := s.send(b, "/methods", map[string]any{"method": method, "params": params})
		if status != 200 {
			t.Fatalf("%s: %d %v", method, status, out)
		}
		return out
	}
	ask(root, "thole/department/add", map[string]any{"name": "lab"})
	ask(root, "thole/user/add", map[string]any{"login": "ada", "email": "ada@example.org"})

	for _, user := range []string{"eve", "mal"} { // nobody invited eve, and mal's address is not proven
		if status, out := s.sso(fresh(), user); status != 403 {
			t.Errorf("%s is let in: %d %v", user, status, out)
		}
	}
	ada := fresh()
	status, in := s.sso(ada, "ada")
	if who, _ := in["user"].(map[string]any); status != 200 || who["login"] != "ada" || in["next"] != "/jobs" {
		t.Fatalf("ada: %d %v", status, in)
	}
	if got := s.status(ada, "/sessions"); got != 200 {
		t.Errorf("ada is not in: %d", got)
	}
	req, _ := http.NewRequestWithContext(t.Context(), "POST", s.base+"/methods", strings.NewReader(`{"method":"thole/department/list"}`))
	req.Header = http.Header{"Thole-Proof": {ada.proof}, "Sec-Fetch-Site": {"same-origin"}, "Content-Type": {"application/json"}}
	var departments []struct{ Members []string } // as an administrator, by group
	if ada.read(t, req, &departments); len(departments) != 1 || len(departments[0].Members) != 1 {
		t.Errorf("ada is in no department: %v", departments)
	}
	// The same answer again, and in another browser.
	back := ada.visit(t, s.base+"/auth/oidc/start", "ada").Query()
	answer := map[string]any{"code": back.Get("code"), "state": back.Get("state"), "iss": back.Get("iss")}
	if status, out := s.send(fresh(), "/auth/oidc/callback", answer); status != 401 {
		t.Errorf("another browser's answer: %d %v", status, out)
	}
	second := *ada // the same browser, its new login
	if status, out := s.send(&second, "/auth/oidc/callback", answer); status != 200 {
		t.Fatalf("ada again: %d %v", status, out)
	}
	if status, out := s.send(&second, "/auth/oidc/callback", answer); status != 401 {
		t.Errorf("the same answer twice: %d %v", status, out)
	}
	// Logged out at the provider, which says so here.
	res, err := http.PostForm(s.base+"/auth/oidc/backchannel-logout", url.Values{"logout_token": {"x.y.z"}})
	if err != nil || res.StatusCode != 401 {
		t.Errorf("a forged message: %v, %v", res, err)
	}
	req, _ = http.NewRequestWithContext(t.Context(), "GET", s.base+"/auth/session", nil)
	req.Header.Set("Thole-Proof", second.proof)
	var session struct {
		LogoutURL string `json:"logout_url"`
	}
	second.read(t, req, &session)
	if at := second.visit(t, session.LogoutURL, ""); at.Path != "/auth/account" {
		t.Errorf("the logout ends at %s", at)
	}
	if got := s.status(&second, "/sessions"); got != 401 {
		t.Errorf("after the logout at the provider: %d", got)
	}
	// Disabled between the provider's page and ours.
	late := fresh()
	back = late.visit(t, s.base+"/auth/oidc/start", "ada").Query()
	ask(root, "thole/user/disable", map[string]any{"login": "ada"})
	if status, out := s.send(late, "/auth/oidc/callback", map[string]any{"code": back.Get("code"), "state": back.Get("state"), "iss": back.Get("iss")}); status != 403 {
		t.Errorf("who is disabled is let in: %d %v", status, out)
	}
	if !strings.Contains(s.errs.String(), "nowhere") {
		t.Errorf("nobody is told of a department that is not there: %s", s.errs)
	}
}

func (b *browser) read(t *testing.T, req *http.Request, into any) {
	t.Helper()
	res, err := b.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(into); err != nil {
		t.Fatal(err)
	}
}
