// Package opengate is a model gateway for executors without an owner, in which every
// token counts.
package opengate

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/gateway"
)

// Serve serves a socket in dir that executors take for the model gateway: whatever
// route an agent asks for is the model at a URL, and every token counts.
func Serve(t testing.TB, dir, model string) (socket string) {
	t.Helper()
	to, err := url.Parse(model + "/")
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "gateway")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, "g.sock")
	ln, err := net.Listen("unix", socket)
	if err == nil {
		err = os.Chmod(socket, 0o666) // executors are other users
	}
	if err != nil {
		t.Fatal(err)
	}
	server := gateway.NewServer(&httputil.ReverseProxy{FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(r *httputil.ProxyRequest) {
		_, path, _ := strings.Cut(strings.TrimPrefix(r.In.URL.Path, "/"), "/")
		r.Out.URL = to.JoinPath(path)
		r.Out.URL.RawQuery, r.Out.Host = r.In.URL.RawQuery, ""
	}})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(gateway.ListenProof(ln))
	}()
	t.Cleanup(func() {
		server.Close()
		<-done
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return socket
}
