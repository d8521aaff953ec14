package mcpclient_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tholehq/thole/internal/mcp/mcpclient"
)

// Only http addresses of the loopback are taken, and a server cannot send its caller on.
func TestStaysOnTheLoopback(t *testing.T) {
	for _, bad := range []string{"", "http://", "https://127.0.0.1:1", "http://10.0.0.1", "http://169.254.169.254/", "http://localhost.example.com", "http://u:p@127.0.0.1:1", "unix:///x", "http://0.0.0.0:1"} {
		if _, err := mcpclient.New(bad, nil, "1"); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	var reached atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	defer other.Close()
	srv := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer srv.Close()
	c, err := mcpclient.New(srv.URL, nil, "1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Tools(t.Context()); err == nil || !strings.Contains(err.Error(), "307") || reached.Load() {
		t.Errorf("%v; the other was reached: %t", err, reached.Load())
	}
}
