package guard_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/platform/guard"
)

func TestCookie(t *testing.T) {
	for _, secure := range []bool{false, true} {
		c := guard.NewCookies("/home/a", secure)
		if c.Name() == guard.NewCookies("/home/b", secure).Name() {
			t.Error("two homes share a cookie")
		}
		w := httptest.NewRecorder()
		c.Set(w, "v", time.Hour)
		got := w.Result().Cookies()[0]
		if !got.HttpOnly || got.SameSite != http.SameSiteStrictMode || got.Path != "/" || got.Domain != "" ||
			got.Secure != secure || strings.HasPrefix(got.Name, "__Host-") != secure {
			t.Errorf("cookie = %+v", got)
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.AddCookie(got)
		if c.Value(r) != "v" {
			t.Error("the cookie does not come back")
		}
		r.AddCookie(&http.Cookie{Name: c.Name(), Value: "planted"})
		if c.Value(r) != "" {
			t.Error("a planted second cookie counted")
		}
	}
}
