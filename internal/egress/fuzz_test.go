package egress

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
)

// FuzzTarget: a target that parses is in the one form that rules compare, and parses to itself.
func FuzzTarget(f *testing.F) {
	for _, hosts := range forbidden {
		for _, h := range hosts {
			f.Add(net.JoinHostPort(h, "80"))
		}
	}
	f.Add("Example.COM.:443")
	f.Fuzz(func(t *testing.T, s string) {
		got, err := parseTarget(s)
		if err != nil {
			return
		}
		again, err := parseTarget(got.String())
		if err != nil || again != got {
			t.Fatalf("%q parses to %+v, which parses to %+v, %v", s, got, again, err)
		}
		for _, c := range []byte(got.String()) {
			if c <= ' ' || c >= 0x7f || c == '%' || c == '@' || c == '/' {
				t.Fatalf("%q parses to %q", s, got.String())
			}
		}
		if a, err := netip.ParseAddr(got.host); (err == nil) != got.addr.IsValid() || err == nil && a != got.addr {
			t.Fatalf("%q parses to %+v", s, got)
		}
	})
}

type duplex struct {
	io.Reader
	io.Writer
}

// FuzzSOCKS: the greeting and request never panic, and no byte behind the request is read.
func FuzzSOCKS(f *testing.F) {
	f.Add([]byte("\x01\x00\x05\x01\x00\x03\x0bexample.com\x01\xbbrest"))
	f.Add([]byte("\x02\x00\x02\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50"))
	f.Add([]byte("\x01\x00\x05\x01\x00\x04" + strings.Repeat("\x00", 15) + "\x01\x00\x50"))
	f.Add([]byte("\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		in := bytes.NewReader(b)
		var out bytes.Buffer
		got, code, err := readSOCKS(duplex{in, &out})
		if err == nil {
			if code != socksOK || got.host == "" || got.port == 0 {
				t.Fatalf("%q: %+v, %d", b, got, code)
			}
			used := len(b) - in.Len()
			if more, _, err := readSOCKS(duplex{bytes.NewReader(b[:used]), &out}); err != nil || more != got {
				t.Fatalf("%q: %d bytes were read, but they are %+v, %v", b, used, more, err)
			}
		}
		if out.Len() > 4 {
			t.Fatalf("%q: answered %q", b, out.Bytes())
		}
	})
}

// FuzzRequest: whatever a client sends, nothing but public addresses is dialled.
func FuzzRequest(f *testing.F) {
	f.Add([]byte("CONNECT 127.0.0.1:80 HTTP/1.1\r\n\r\n"))
	f.Add([]byte("GET http://[::1]:80/ HTTP/1.1\r\nHost: a.com\r\n\r\n"))
	f.Add([]byte("POST http://a.com/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET http://b.com/ HTTP/1.1\r\n\r\n"))
	f.Add([]byte("\x05\x01\x00\x05\x01\x00\x01\x0a\x00\x00\x01\x00\x50"))
	var bad []string
	p, err := New(Config{Policy: Open,
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
		},
		Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			if a, err := netip.ParseAddrPort(address); err != nil {
				bad = append(bad, address)
			} else if _, special := classify(a.Addr()); special {
				bad = append(bad, address)
			}
			return nil, errors.New("no network")
		}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = p.Close() })
	f.Fuzz(func(t *testing.T, b []byte) {
		a, c := net.Pipe()
		l := &oneConn{conn: c}
		served := make(chan struct{})
		go func() { _ = p.Serve(l); close(served) }()
		go func() { _, _ = a.Write(b); _ = a.Close() }()
		_, _ = io.Copy(io.Discard, a)
		<-served
		if len(bad) > 0 {
			t.Fatalf("%q: dialled %v", b, bad)
		}
	})
}

type oneConn struct{ conn net.Conn }

func (l *oneConn) Accept() (net.Conn, error) {
	if l.conn == nil {
		return nil, net.ErrClosed
	}
	c := l.conn
	l.conn = nil
	return c, nil
}

func (l *oneConn) Close() error   { return nil }
func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }
