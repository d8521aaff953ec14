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
	}
	if err := json.Unmarshal([]byte(run(0, "login", "--json")), &page); err != nil {
		t.Fatal(err)
	}
	var made struct{ ID, Token string }
	if err := json.Unmarshal([]byte(run(0, "token", "create", "ci", "--expires-in", "1h", "--json")), &made); err != nil || !strings.HasPrefix(made.Token, "thole_") {
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
	run(2, "token", "create", "x", "--expires-in", "-1h")
}
