//go:build linux

package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/egress"
)

// TestEgressThroughput: a tunnel through the proxy against the same copy over loopback without it.
func TestEgressThroughput(t *testing.T) {
	size := int64(256 << 20)
	if Long() {
		size = 2 << 30
	}
	listen := func(serve func(net.Listener)) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go serve(l)
		return l.Addr().String()
	}
	block := make([]byte, 256<<10)
	source := listen(func(l net.Listener) {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = bufio.NewReader(c).ReadString('\n')
				for n := int64(0); n < size; n += int64(len(block)) {
					if _, err := c.Write(block); err != nil {
						return
					}
				}
			}()
		}
	})
	proxy, err := egress.New(egress.Config{Policy: egress.List, Private: []string{source}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	at := listen(func(l net.Listener) { _ = proxy.Serve(l) })
	dial := func(address string) (net.Conn, *bufio.Reader) {
		c, err := new(net.Dialer).DialContext(context.Background(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		return c, bufio.NewReaderSize(c, 16)
	}
	read := func(c net.Conn, r *bufio.Reader) float64 {
		defer c.Close()
		began := time.Now()
		fmt.Fprintln(c, "go")
		buf := make([]byte, 256<<10)
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{r}, buf)
		if err != nil || n != size {
			t.Fatalf("%d bytes, %v", n, err)
		}
		return float64(size) / 1e6 / time.Since(began).Seconds()
	}
	Case{
		Name: "egress: one stream through the proxy", Unit: "MB/s", Peer: "the same stream over loopback, direct",
		Promise: 0.4, Loose: 0.2, AtLeast: true,
		Ours: func() float64 {
			c, r := dial(at)
			fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\n\r\n", source)
			if answer, err := http.ReadResponse(r, &http.Request{Method: "CONNECT"}); err != nil || answer.StatusCode != 200 {
				t.Fatalf("%v, %v", answer, err)
			}
			return read(c, r)
		},
		Theirs: func() float64 { return read(dial(source)) },
		Note:   "A CONNECT tunnel; client, proxy and server are one process. The proxy moves bytes inside the kernel.",
	}.Run(t)
}
