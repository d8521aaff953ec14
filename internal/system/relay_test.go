package system

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/config"
)

// TestRelayNeedsTLS: tokens of a relay do not travel unencrypted, and a server without a
// file of tokens has no relay.
func TestRelayNeedsTLS(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	here, everywhere := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, &net.TCPAddr{IP: net.IPv4zero}
	for _, c := range []struct {
		file  string
		at    address
		bound net.Addr
		code  thole.Code
		none  bool
	}{
		{file: "", bound: everywhere, none: true},
		{file: file, bound: here},
		{file: file, bound: everywhere, code: thole.CodeForbidden, none: true},
		{file: file, at: address{tls: true}, bound: everywhere},
	} {
		r, err := openRelay(Options{Config: &config.Config{Relay: config.Relay{TokensFile: c.file}}, Log: slog.New(slog.DiscardHandler)}, c.at, c.bound)
		if (r == nil) != c.none || c.code != "" && thole.CodeOf(err) != c.code || c.code == "" && err != nil {
			t.Errorf("%+v: %v, %v", c, r, err)
		}
		if r == nil {
			continue
		}
		api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
		for path, status := range map[string]int{"/": http.StatusTeapot, "/readyz": http.StatusTeapot, "/rendezvous": http.StatusUnauthorized, "/cloud/environment/box/nothing": http.StatusNotFound} {
			rec := httptest.NewRecorder()
			withRelay(api, r).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, nil))
			if rec.Code != status {
				t.Errorf("%s: %d", path, rec.Code)
			}
		}
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the file of tokens: %v, %v", st, err)
	}
}
