package egress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/testkit/poll"
)

// serveTCP serves connections on loopback, each by serve, and closes them after it.
func serveTCP(t *testing.T, serve func(*net.TCPConn)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); serve(c.(*net.TCPConn)) }()
		}
	}()
	return l.Addr().String()
}

// tunnels open a tunnel to public.example.com:443.
var tunnels = map[string]func(t *testing.T, proxy string) (*net.TCPConn, *bufio.Reader){
	"connect": func(t *testing.T, proxy string) (*net.TCPConn, *bufio.Reader) {
		c := dialTest(t, proxy)
		fmt.Fprintf(c, "CONNECT public.example.com:443 HTTP/1.1\r\n\r\n")
		r := bufio.NewReader(c)
		if answer, err := http.ReadResponse(r, &http.Request{Method: "CONNECT"}); err != nil || answer.StatusCode != 200 {
			t.Errorf("connect: %v %v", answer, err)
		}
		return c.(*net.TCPConn), r
	},
	"socks": func(t *testing.T, proxy string) (*net.TCPConn, *bufio.Reader) {
		c := dialTest(t, proxy)
		c.Write([]byte{5, 1, 0})
		c.Write(append([]byte{5, 1, 0, 3, 18}, "public.example.com\x01\xbb"...))
		var b [12]byte
		if _, err := io.ReadFull(c, b[:]); err != nil || b[3] != 0 {
			t.Fatalf("socks: % x %v", b, err)
		}
		return c.(*net.TCPConn), bufio.NewReader(c)
	},
}

func dialTo(address string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
}

// A client that has sent everything still reads its answer, which begins only then.
func TestHalfClose(t *testing.T) {
	for protocol, open := range tunnels {
		t.Run(protocol, func(t *testing.T) {
			w := newWorld(t)
			target := serveTCP(t, func(c *net.TCPConn) {
				sum := sha256.New()
				_, _ = io.Copy(sum, c)
				_, _ = c.Write(sum.Sum(nil))
			})
			p, proxy := w.proxy(Config{Policy: Open, Dial: dialTo(target)})
			data := make([]byte, 8<<20)
			_, _ = rand.NewChaCha8([32]byte{1}).Read(data)
			c, r := open(t, proxy)
			if _, err := c.Write(data); err != nil {
				t.Fatal(err)
			}
			if err := c.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(r)
			want := sha256.Sum256(data)
			if err != nil || !bytes.Equal(got, want[:]) {
				t.Fatalf("got % x, %v", got, err)
			}
			poll.Until(t, "the log", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return len(w.log) == 1 })
			_, log := w.took()
			if l := log[0]; l.Sent != int64(len(data)) || l.Received != 32 || l.Verdict != Allowed || l.Host != "public.example.com" || l.Port != 443 || l.Address != "93.184.216.34:443" || l.Duration <= 0 {
				t.Errorf("logged %+v", l)
			}
			if totals := p.Totals(); len(totals) != 1 || totals[0].Sent != int64(len(data)) || totals[0].Received != 32 || totals[0].Connections != 1 {
				t.Errorf("totals %+v", totals)
			}
		})
	}
}

// A target that ends first leaves the client's direction open.
func TestHalfCloseOfTarget(t *testing.T) {
	for protocol, open := range tunnels {
		t.Run(protocol, func(t *testing.T) {
			w := newWorld(t)
			got := make(chan string, 1)
			target := serveTCP(t, func(c *net.TCPConn) {
				_, _ = c.Write([]byte("banner")) // speaks first, as ssh does
				_ = c.CloseWrite()
				text, _ := io.ReadAll(c)
				got <- string(text)
			})
			_, proxy := w.proxy(Config{Policy: Open, Dial: dialTo(target)})
			c, r := open(t, proxy)
			if text, err := io.ReadAll(r); err != nil || string(text) != "banner" {
				t.Fatalf("got %q, %v", text, err)
			}
			_, _ = c.Write([]byte("still here"))
			_ = c.CloseWrite()
			if text := <-got; text != "still here" {
				t.Errorf("target got %q", text)
			}
		})
	}
}

// The copying is interrupted at every tick to count; no byte is lost or doubled by it.
func TestTicksLoseNothing(t *testing.T) {
	w := newWorld(t)
	target := serveTCP(t, func(c *net.TCPConn) { _, _ = io.Copy(c, c); _ = c.CloseWrite() })
	p, proxy := w.proxy(Config{Policy: Open, Dial: dialTo(target)})
	p.tick = 200 * time.Microsecond
	c, r := tunnels["connect"](t, proxy)
	const size = 64 << 20
	go func() {
		_, _ = io.CopyN(c, rand.NewChaCha8([32]byte{2}), size)
		_ = c.CloseWrite()
	}()
	got, want := sha256.New(), sha256.New()
	n, err := io.Copy(got, r)
	_, _ = io.CopyN(want, rand.NewChaCha8([32]byte{2}), size)
	if err != nil || n != size || !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
		t.Fatalf("%d bytes came back, %v", n, err)
	}
}

func TestIdleConnectionsEnd(t *testing.T) {
	for protocol, open := range tunnels {
		t.Run(protocol, func(t *testing.T) {
			w := newWorld(t)
			ended := make(chan struct{})
			target := serveTCP(t, func(c *net.TCPConn) { _, _ = io.Copy(io.Discard, c); close(ended) })
			_, proxy := w.proxy(Config{Policy: Open, Dial: dialTo(target), Idle: 20 * time.Millisecond})
			_, r := open(t, proxy)
			_, _ = io.ReadAll(r) // ends, with whatever error
			<-ended
		})
	}
}

// What a client sends along with its CONNECT, before the answer, is not lost.
func TestEarlyBytes(t *testing.T) {
	w := newWorld(t)
	target := serveTCP(t, func(c *net.TCPConn) { _, _ = io.Copy(c, c); _ = c.CloseWrite() })
	_, proxy := w.proxy(Config{Policy: Open, Dial: dialTo(target)})
	c := dialTest(t, proxy)
	fmt.Fprintf(c, "CONNECT public.example.com:443 HTTP/1.1\r\n\r\nearly")
	_ = c.(*net.TCPConn).CloseWrite()
	got, err := io.ReadAll(c)
	if err != nil || string(got) != "HTTP/1.1 200 Connection established\r\n\r\nearly" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestLimits(t *testing.T) {
	t.Run("head", func(t *testing.T) {
		w := newWorld(t)
		_, proxy := w.proxy(Config{Policy: Open})
		c := dialTest(t, proxy)
		go fmt.Fprintf(c, "CONNECT public.example.com:443 HTTP/1.1\r\nX: %s\r\n\r\n", strings.Repeat("x", 4*maxHead))
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("got %v, %v", answer, err)
		}
	})
	for what, text := range map[string]string{"nothing": "", "half a head": "CONNECT public.exa", "half a second head": "GET http://0x7f.1/ HTTP/1.1\r\nHost: x\r\n\r\nGET http://pub", "half a greeting": "\x05\x02", "half a request": "\x05\x01\x00\x05\x01"} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			_, proxy := w.proxy(Config{Policy: Open, Handshake: 20 * time.Millisecond})
			c := dialTest(t, proxy)
			_, _ = io.WriteString(c, text)
			if _, err := io.ReadAll(c); err != nil && !strings.Contains(err.Error(), "reset") {
				t.Errorf("the connection did not end: %v", err)
			}
		})
	}
	t.Run("connections", func(t *testing.T) {
		w := newWorld(t)
		var now, most atomic.Int64
		target := serveTCP(t, func(c *net.TCPConn) {
			n := now.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			_, _ = c.Write([]byte("in"))
			_, _ = io.ReadAll(c)
			now.Add(-1) // before the client hears of the end and leaves its place
		})
		_, proxy := w.proxy(Config{Policy: Open, Dial: dialTo(target), MaxConnections: 3})
		var all sync.WaitGroup
		for range 60 {
			all.Go(func() {
				c, r := tunnels["connect"](t, proxy)
				_, _ = r.Peek(2)
				_ = c.CloseWrite()
				if text, err := io.ReadAll(r); string(text) != "in" || err != nil {
					t.Errorf("got %q, %v", text, err)
				}
				_ = c.Close()
			})
		}
		all.Wait()
		if most.Load() > 3 {
			t.Errorf("%d connections at a time", most.Load())
		}
	})
}

// Close ends running connections, and nothing is logged after it.
func TestClose(t *testing.T) {
	w := newWorld(t)
	target := serveTCP(t, func(c *net.TCPConn) { _, _ = io.Copy(c, c) })
	p, proxy := w.proxy(Config{Policy: Open, Dial: dialTo(target)})
	_, a := tunnels["connect"](t, proxy)
	_, b := tunnels["socks"](t, proxy)
	idle := dialTest(t, proxy)
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, log := w.took(); len(log) != 2 {
		t.Errorf("logged %+v", log)
	}
	for _, r := range []io.Reader{a, b, idle} {
		_, _ = io.ReadAll(r)
	}
	if c, err := net.Dial("tcp", proxy); err == nil {
		_ = c.Close()
		t.Error("the listener is open")
	}
}

// A plain HTTP request is passed on whole, body, query and answer, on a connection that the client keeps.
func TestPlainHTTP(t *testing.T) {
	w := newWorld(t)
	_, proxy := w.proxy(Config{Policy: Open})
	c := dialTest(t, proxy)
	r := bufio.NewReader(c)
	for range 2 {
		fmt.Fprintf(c, "POST http://user:pw@public.example.com/p?a;b=%%zz HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic eA==\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\nbody")
		for {
			answer, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			if answer.StatusCode == http.StatusContinue {
				continue
			}
			text, _ := io.ReadAll(answer.Body)
			if string(text) != "hello public.example.com body" {
				t.Fatalf("%s %q", answer.Status, text)
			}
			break
		}
	}
	if dialled, log := w.took(); len(dialled) != 2 || len(log) < 1 || log[0].Sent == 0 || log[0].Received == 0 || log[0].Protocol != "http" {
		t.Errorf("dialled %v, logged %+v", dialled, log)
	}
}
