package gateway

import (
	"context"
	"io"
	"net"
	"testing"
)

// GoodToken is what Forwarded takes.
const GoodToken = goodToken

// Forwarded is a gateway before a loopback port, as a box sees it. It is exported for the
// tests with real clients, which cannot be in this package: what finds those imports it.
func Forwarded(t *testing.T, d Dialect, ledger Ledger) (base string) {
	t.Helper()
	r := newRig(t, d)
	r.route.Upstreams = []Upstream{at(t, "none", "http://127.0.0.1:1/v1")}
	r.c.Ledger = ledger
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer near.Close()
				far, err := r.dial(context.Background())
				if err != nil {
					return
				}
				defer far.Close()
				go func() {
					_, _ = io.Copy(far, near)
					_ = far.Close()
				}()
				_, _ = io.Copy(near, far)
			}()
		}
	}()
	return "http://" + l.Addr().String()
}
