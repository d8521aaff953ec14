package httpapi_test

import (
	"context"
	"errors"
	"testing"

	"github.com/tholehq/thole/internal/platform/httpapi"
)

// TestReady asks the parts of a server: one that it needs makes it unavailable, one that
// only helps does not, and why is nobody's business without a login.
func TestReady(t *testing.T) {
	var dispatcher, logins error
	g := newRig(t, func(c *httpapi.Config) {
		c.Ready = []httpapi.Part{
			{Name: "store", Check: func(context.Context) error { return nil }},
			{Name: "dispatcher", Check: func(context.Context) error { return dispatcher }},
			{Name: "logins", Helps: true, Check: func(context.Context) error { return logins }},
		}
	})
	nobody := &caller{g: g}
	ask := func(want int) (v obj) {
		t.Helper()
		nobody.call(want, "GET", "/readyz", nil, &v)
		return v
	}
	if v := ask(200); v["status"] != "ok" || len(v["parts"].(obj)) != 3 {
		t.Errorf("all is well: %v", v)
	}
	logins = errors.New("the key of alice is gone")
	if v := ask(200); v["status"] != "degraded" || v["parts"].(obj)["logins"] != "failed" || len(v) != 3 {
		t.Errorf("without a login: %v", v)
	}
	dispatcher = errors.New("stuck")
	if v := ask(503); v["code"] != "unavailable" || v["detail"] != "not ready: dispatcher" {
		t.Errorf("without a dispatcher: %v", v)
	}
	dispatcher, logins = nil, nil
	if v := ask(200); v["status"] != "ok" {
		t.Errorf("again: %v", v)
	}
}
