package team

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"

	"slices"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/test/e2e/home"
)

// send posts JSON as a browser, or as nobody yet, and returns the status and the answer.
func (s *server) send(b *browser, path string, body any) (int, map[string]any) {
	s.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), "POST", s.base+path, bytes.NewReader(text))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	if b.proof != "" {
		req.Header.Set("Thole-Proof", b.proof)
	}
	res, err := b.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	out := map[string]any{}
	_ = json.NewDecoder(res.Body).Decode(&out) // some answers have no body
	if proof, ok := out["proof"].(string); ok {
		b.proof = proof
	}
	return res.StatusCode, out
}

func (s *server) enter(path string, body map[string]any) *browser {
	s.t.Helper()
	jar, _ := cookiejar.New(nil)
	b := &browser{Client: http.Client{Jar: jar}}
	if status, out := s.send(b, path, body); status != 200 {
		s.t.Fatalf("%s: %d %v", path, status, out)
	}
	return b
}

// From nothing to a second user's first thread, and out again; a kill of the server between.
func TestSecondUser(t *testing.T) {
	const word = "correct horse battery"
	h := home.New(t)
	s := serve(t, h, "--config", configured(t, h.Dir, lab.Postgres(t), nil, "", ""))
	_, code, _ := strings.Cut(s.set, "#code=")
	root := s.enter("/auth/account", map[string]any{"code": code, "login": "root", "password": word})
	status, ada := s.send(root, "/methods", map[string]any{"method": "thole/user/add", "params": map[string]any{"login": "ada"}})
	link, _ := ada["url"].(string)
	if status != 200 || !strings.HasPrefix(link, s.base+"/auth/account#code=") {
		t.Fatalf("invite: %d %v", status, ada)
	}
	s.kill()
	s = serve(t, h)
	if s.set != "" {
		t.Error("a server that was set up prints a set-up link")
	}
	_, code, _ = strings.Cut(link, "#code=")
	s.enter("/auth/account", map[string]any{"code": code, "password": word})
	second := s.enter("/auth/login", map[string]any{"login": "ada", "password": word})
	status, made := s.send(second, "/sessions", map[string]any{"provider": "test"})
	id, _ := made["id"].(string)
	if status != 201 || id == "" {
		t.Fatalf("a thread: %d %v", status, made)
	}
	if status, run := s.send(second, "/sessions/"+id+"/runs", map[string]any{"text": "sim: say hello"}); status != 201 {
		t.Errorf("a turn: %d %v", status, run)
	}
	root = s.enter("/auth/login", map[string]any{"login": "root", "password": word})
	local := s.login()
	if got := s.status(root, "/sessions/"+id); got != 200 {
		t.Errorf("the administrator does not see another's thread: %d", got)
	}
	if got := s.status(local, "/sessions/"+id); got != 404 {
		t.Errorf("the user of the machine sees another's thread: %d", got)
	}
	status, grant := s.send(root, "/methods", map[string]any{"method": "thole/grant/add", "params": map[string]any{"user": "local", "role": "viewer", "on": "user", "name": "ada"}})
	if status != 200 {
		t.Errorf("grant: %d %v", status, grant)
	}
	if got := s.status(local, "/sessions/"+id); got != 200 {
		t.Errorf("a viewer does not see the thread: %d", got)
	}
	if got, _ := s.send(local, "/sessions/"+id+"/runs", map[string]any{"text": "sim: say hello"}); got != 403 {
		t.Errorf("a viewer starts a turn: %d", got)
	}
	if out, _ := run(t, h, 0, "thread", "show", id); !strings.Contains(out, id) {
		t.Errorf("thread show of a shared thread: %s", out)
	}
	if status, out := s.send(root, "/methods", map[string]any{"method": "thole/grant/revoke", "params": map[string]any{"id": grant["id"]}}); status != 200 {
		t.Errorf("revoke: %d %v", status, out)
	}
	if got := s.status(local, "/sessions/"+id); got != 404 {
		t.Errorf("the thread stays open after the grant: %d", got)
	}
	// The same by commands: with a token of the administrator's, and not as the user of the machine.
	status, cli := s.send(root, "/auth/tokens", map[string]any{"name": "cli", "scope": "admin"})
	if status != 201 {
		t.Fatalf("a token: %d %v", status, cli)
	}
	admin := *h
	admin.Vars = append(slices.Clone(h.Vars), fmt.Sprint("THOLE_TOKEN=", cli["token"]))
	manage := func(args ...string) string {
		t.Helper()
		out, _ := run(t, &admin, 0, append(args, "--server", s.base)...)
		return out
	}
	manage("department", "add", "readers")
	manage("department", "join", "readers", "ada")
	if out := manage("department", "list"); !strings.Contains(out, "readers") || !strings.Contains(out, "ada") {
		t.Errorf("department list: %s", out)
	}
	given := manage("grant", "add", "viewer", "--user", "local", "--on", "department:readers", "-q")
	if got := s.status(local, "/sessions/"+id); got != 200 {
		t.Errorf("a viewer of the department does not see the thread: %d", got)
	}
	if out := manage("grant", "list"); !strings.Contains(out, "user:local") || !strings.Contains(out, "department:readers") {
		t.Errorf("grant list: %s", out)
	}
	manage("department", "leave", "readers", "ada")
	if got := s.status(local, "/sessions/"+id); got != 404 {
		t.Errorf("the thread of who left the department is seen: %d", got)
	}
	manage("grant", "revoke", given)
	if out := manage("user", "list"); !strings.Contains(out, "ada") || !strings.Contains(out, "active") {
		t.Errorf("user list: %s", out)
	}
	if out := manage("user", "add", "eve", "--json"); !strings.Contains(out, s.base+"/auth/account#code=") {
		t.Errorf("user add: %s", out)
	}
	if _, errs := run(t, h, 6, "user", "add", "mallory"); !strings.Contains(errs, "right to manage_users") {
		t.Errorf("the user of the machine adds a user: %s", errs)
	}
	if out, _ := run(t, h, 0, "role", "list"); !strings.Contains(out, "viewer") {
		t.Errorf("role list: %s", out)
	}
	if status, out := s.send(local, "/methods", map[string]any{"method": "thole/user/list"}); status != 403 {
		t.Errorf("the user of the machine manages users: %d %v", status, out)
	}
	// A service has nobody who logs in for it: who manages users makes its tokens.
	manage("user", "add", "ci", "--service")
	token := strings.TrimSpace(manage("token", "create", "nightly", "--user", "ci", "-q"))
	if got := s.with(token, "/sessions"); got != 200 {
		t.Errorf("a service with its token: %d", got)
	}
	if got := s.with(token, "/sessions/"+id); got != 404 {
		t.Errorf("a service sees another's thread: %d", got)
	}
	for _, of := range []string{"ada", "root", "nobody"} {
		if status, out := s.send(root, "/methods", map[string]any{"method": "thole/token/service", "params": map[string]any{"user": of, "name": "x"}}); status != 403 && status != 404 {
			t.Errorf("a token for %s: %d %v", of, status, out)
		}
	}
	if status, out := s.send(local, "/methods", map[string]any{"method": "thole/token/service", "params": map[string]any{"user": "ci", "name": "x"}}); status != 403 {
		t.Errorf("a token by who does not manage users: %d %v", status, out)
	}
	if out := manage("token", "list", "--user", "ci"); !strings.Contains(out, "nightly") {
		t.Errorf("token list of a service: %s", out)
	}
	manage("token", "revoke", "nightly", "--user", "ci")
	if got := s.with(token, "/sessions"); got != 401 {
		t.Errorf("a revoked token of a service: %d", got)
	}

	manage("user", "disable", "ada")
	if got := s.status(second, "/sessions/"+id); got != 401 {
		t.Errorf("a disabled user's old cookie: %d", got)
	}
	// The chain: who administers the platform reads it from anywhere, the home's socket does not.
	if out, _ := run(t, h, 0, "audit", "verify"); !strings.Contains(out, "links") {
		t.Errorf("audit verify: %s", out)
	}
	if _, errs := run(t, h, 6, "audit", "list", "--chain"); !strings.Contains(errs, "right to read_audit") {
		t.Errorf("the user of the machine reads the chain: %s", errs)
	}
	if out := manage("audit", "verify"); !strings.Contains(out, "whole") {
		t.Errorf("audit verify from elsewhere: %s", out)
	}
	refused := manage("audit", "list", "--chain", "--outcome", "denied")
	for _, want := range []string{"thread.view_thread", "socket.request", "http.request", id} {
		if !strings.Contains(refused, want) {
			t.Errorf("what was refused, without %s: %s", want, refused)
		}
	}
}
