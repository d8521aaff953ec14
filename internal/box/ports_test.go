//go:build linux

package box_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/testkit/lab"
)

// Ports: what listens inside is reached from outside and the other way round, and
// neither sees the ports of the host.
func TestPorts(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		b := start(t)
		ln, err := b.Listen(0)
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		port := uint16(ln.Addr().(*net.TCPAddr).Port)
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "from outside") })}
		go srv.Serve(ln)
		defer srv.Close()
		if got := script(t, b, fmt.Sprintf("curl -s http://127.0.0.1:%d/", port)); got != "from outside" {
			t.Errorf("inside: %q", got)
		}
		if c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second); err == nil {
			c.Close()
			t.Error("the port of the box is one of the host")
		}
		conn, err := b.Dial(t.Context(), port)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "GET / HTTP/1.0\r\n\r\n")
		if got, _ := io.ReadAll(conn); !bytes.HasSuffix(got, []byte("from outside")) {
			t.Errorf("dialled: %q", got)
		}
		host, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer host.Close()
		if _, err := b.Dial(t.Context(), uint16(host.Addr().(*net.TCPAddr).Port)); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a port of the host: %v", err)
		}
		if _, err := b.Listen(port); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("a port that is taken: %v", err)
		}
	})
}
