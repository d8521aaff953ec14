package contract

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/tholehq/thole/test/e2e/home"
)

// A token that the command made opens the HTTP interface until it is revoked.
func TestTokenCommand(t *testing.T) {
	h := home.New(t)
	h.Up()
	run := func(want int, args ...string) string {
		t.Helper()
		out, errs, code := h.Run(args...)
		if code != want {
			t.Fatalf("%v: %d %s%s", args, code, out, errs)
		}
		return out
	}
	var page struct {
		Base string `json:"base"`
		URL  string `json:"url"`
	}
	if err := json.Unmarshal([]byte(run(0, "login", "--json")), &page); err != nil {
		t.Fatal(err)
	}
	var made struct{ ID, Token string }
	if err := json.Unmarshal([]byte(run(0, "token", "create", "ci", "--expires", "1h", "--json")), &made); err != nil || !strings.HasPrefix(made.Token, "thole_") {
		t.Fatalf("%+v: %v", made, err)
	}
	status := func() int {
		t.Helper()
		r, err := http.NewRequest("GET", page.Base+"/sessions", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+made.Token)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	if got := status(); got != 200 {
		t.Errorf("with a fresh token: %d", got)
	}
	if list := run(0, "token", "list"); !strings.Contains(list, made.ID) || !strings.Contains(list, "ci") || strings.Contains(list, made.Token) {
		t.Errorf("the list is\n%s", list)
	}
	run(0, "token", "revoke", made.ID)
	if got := status(); got != 401 {
		t.Errorf("with a revoked token: %d", got)
	}
	run(3, "token", "revoke", made.ID)
	run(2, "token", "create", "")
	for _, bad := range []string{"-1h", "0d", "d", "1.5s", "x", "-1d", "1dd"} {
		run(2, "token", "create", "x", "--expires", bad)
	}
	run(2, "token", "create", "x", "--scope", "root")
	run(0, "token", "create", "old", "--expires-in", "1h") // as before
	if list := run(0, "token", "list"); strings.Contains(list, "warning") {
		t.Errorf("the list is\n%s", list)
	}
	run(0, "token", "create", "for ever", "--expires", "never", "--scope", "read")
	if list := run(0, "token", "list"); !strings.Contains(list, "warning: 1 never expire") || !strings.Contains(list, "read") {
		t.Errorf("the list is\n%s", list)
	}

	// A browser's login is listed and ended.
	if err := json.Unmarshal([]byte(run(0, "login", "--json")), &page); err != nil {
		t.Fatal(err)
	}
	at, code, _ := strings.Cut(page.URL, "#code=")
	res, err := http.Post(at, "application/json", strings.NewReader(`{"code":"`+code+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var login struct{ ID, Proof string }
	if err := json.NewDecoder(res.Body).Decode(&login); err != nil || login.ID == "" {
		t.Fatalf("%s: %v", res.Status, err)
	}
	session := func() int {
		t.Helper()
		r, err := http.NewRequest("GET", page.Base+"/auth/session", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.AddCookie(res.Cookies()[0])
		r.Header.Set("Thole-Proof", login.Proof)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	if got := session(); got != 200 {
		t.Errorf("a fresh login: %d", got)
	}
	if list := run(0, "login", "list"); !strings.Contains(list, login.ID) || strings.Contains(list, login.Proof) {
		t.Errorf("the list is\n%s", list)
	}
	run(0, "login", "revoke", login.ID)
	if got := session(); got != 401 {
		t.Errorf("a revoked login: %d", got)
	}
	run(3, "login", "revoke", login.ID)
}
