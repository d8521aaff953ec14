package upstream_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/gateway/upstream"
)

// A service is asked once, for its models, and only its own word makes a credential good or
// bad: one that is not reached, or that answers anything else, says nothing.
func TestCheck(t *testing.T) {
	status, asked := 200, []string{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.String()+" "+r.Header.Get("X-Api-Key")+r.Header.Get("Authorization"))
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
	}))
	defer srv.Close()
	m := newMachine(t)
	m.env = map[string]string{"ANTHROPIC_API_KEY": "sk-secret", "ANTHROPIC_BASE_URL": srv.URL}
	r := m.routes()
	for code, want := range map[int]upstream.Taken{200: upstream.TakenYes, 401: upstream.TakenNo, 403: upstream.TakenUnknown, 404: upstream.TakenUnknown, 307: upstream.TakenUnknown, 500: upstream.TakenUnknown} {
		status, asked = code, nil
		got, err := r.Check(t.Context(), claim("claude", thole.LocalUser))
		if err != nil || len(got) != 1 || got[0].Taken != want || strings.Contains(got[0].Note+got[0].Origin, "sk-secret") {
			t.Errorf("%d: %+v, %v", code, got, err)
		}
		if len(asked) != 1 || asked[0] != "GET /v1/models sk-secret" {
			t.Errorf("%d: asked %q", code, asked)
		}
	}
	srv.Close()
	if got, err := r.Check(t.Context(), claim("claude", thole.LocalUser)); err != nil || got[0].Taken != upstream.TakenUnknown || !strings.Contains(got[0].Note, "not reached") {
		t.Errorf("offline: %+v, %v", got, err)
	}
	m.env = map[string]string{}
	if _, err := m.routes().Check(t.Context(), claim("claude", thole.LocalUser)); thole.CodeOf(err) != thole.CodeNotFound {
		t.Errorf("without a credential: %v", err)
	}
}
