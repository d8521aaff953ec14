package ws_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/transport"
	"github.com/tholehq/thole/internal/transport/unix"
	"github.com/tholehq/thole/internal/transport/ws"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo sends every message back until the stream ends; the end goes to ended.
func echo(ended chan<- error) func(context.Context, jsonrpc.Stream) {
	return func(ctx context.Context, s jsonrpc.Stream) {
		stop := context.AfterFunc(ctx, func() { _ = s.Close("server stops") })
		defer stop()
		for {
			m, err := s.Read(ctx)
			if err == nil {
				err = s.Write(ctx, m)
			}
			if err != nil {
				if ended != nil {
					ended <- err
				}
				return
			}
		}
	}
}

func start(t *testing.T, l net.Listener, o ws.Options, f func(context.Context, jsonrpc.Stream)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- ws.NewServer(o, f).Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func tcp(t *testing.T, o ws.Options, f func(context.Context, jsonrpc.Stream)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	start(t, l, o, f)
	return l.Addr().String()
}

func dial(t *testing.T, addr string, o ws.DialOptions) jsonrpc.Stream {
	t.Helper()
	s, err := ws.Dial(t.Context(), addr, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close("") })
	return s
}

func roundTrip(t *testing.T, s jsonrpc.Stream, msg string) {
	t.Helper()
	if err := s.Write(t.Context(), []byte(msg)); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Read(t.Context()); err != nil || string(got) != msg {
		t.Fatalf("%d bytes, %v; want %d", len(got), err, len(msg))
	}
}

func TestEchoTCPAndUnix(t *testing.T) {
	dir, err := os.MkdirTemp("", "ws")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s.sock")
	l, err := unix.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	start(t, l, ws.Options{}, echo(nil))
	for _, addr := range []string{"ws://" + tcp(t, ws.Options{}, echo(nil)) + "/any?x=1", "unix://" + path} {
		s := dial(t, addr, ws.DialOptions{})
		for _, n := range []int{1, 100, 5000, 9 << 20} { // the last goes in fragments
			roundTrip(t, s, strings.Repeat("x", n))
		}
	}
}

func TestLimit(t *testing.T) {
	ended := make(chan error, 1)
	addr := tcp(t, ws.Options{Limit: 1000}, echo(ended))
	s := dial(t, "ws://"+addr, ws.DialOptions{})
	roundTrip(t, s, strings.Repeat("x", 1000))
	if err := s.Write(t.Context(), []byte(strings.Repeat("x", 1002))); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, websocket.ErrMessageTooBig) {
		t.Fatal(err)
	}
	if _, err := s.Read(t.Context()); err == nil || errors.Is(err, io.EOF) {
		t.Fatalf("got %v", err)
	}
}

func TestFragmentsCountTogether(t *testing.T) {
	ended := make(chan error, 1)
	addr := tcp(t, ws.Options{Limit: 1000}, echo(ended))
	c, _, err := websocket.Dial(t.Context(), "ws://"+addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.CloseNow() }()
	w, err := c.Writer(t.Context(), websocket.MessageText)
	if err != nil {
		t.Fatal(err)
	}
	for range 11 {
		if _, err := w.Write(make([]byte, 100)); err != nil {
			break // the server may already have hung up
		}
	}
	_ = w.Close()
	if err := <-ended; !errors.Is(err, websocket.ErrMessageTooBig) {
		t.Fatal(err)
	}
}

func TestHTTPFace(t *testing.T) {
	sum := "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b" // "secret"
	auth, err := transport.NewAuth(transport.AuthOptions{Mode: transport.ModeCapability, TokenSHA256: sum})
	if err != nil {
		t.Fatal(err)
	}
	others := http.NewServeMux()
	others.HandleFunc("GET /others/{name}", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.PathValue("name")) })
	addr := tcp(t, ws.Options{Auth: auth, Path: "/", OtherPaths: others}, echo(nil))
	up := "Connection: keep-alive, Upgrade|Upgrade: websocket|Sec-WebSocket-Version: 13|Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
	for _, tc := range []struct {
		method, path, headers string
		status                int
		body                  string
	}{
		{"GET", "/readyz", "", 200, ""},
		{"HEAD", "/healthz", "", 200, ""},
		{"POST", "/readyz", "", 405, ""},
		{"GET", "/readyz", "Origin: http://127.0.0.1", 403, ""},
		{"GET", "/readyz", "Host: evil.example", 403, ""},
		{"GET", "/readyz", "Host: localhost:99", 200, ""},
		{"GET", "/other", "", 404, ""},
		{"GET", "/", "", 400, "Connection header did not include 'upgrade'\n"},
		{"GET", "/", up, 401, "missing websocket bearer token"},
		{"GET", "/", up + "|Authorization: Basic secret", 401, "invalid authorization header"},
		{"GET", "/", up + "|Authorization: Bearer", 401, "invalid authorization header"},
		{"GET", "/", up + "|Authorization: Bearer secreT", 401, "invalid websocket bearer token"},
		{"GET", "/", up + "|Authorization: bEARER secret|Origin: null", 403, ""},
		{"GET", "/", up + "|Authorization: bEARER secret|Host: evil.example", 403, ""},
		{"GET", "/others/x", "Authorization: Bearer secret", 200, "x"},
		{"GET", "/others/x", "", 401, "missing websocket bearer token\n"},
		{"GET", "/others/x", "Authorization: Bearer secret|Origin: null", 403, ""},
		{"GET", "/others/", "Authorization: Bearer secret", 404, ""},
		{"GET", "/?q=1", up + "|Authorization: bEARER secret", 101, ""},
	} {
		req, err := http.NewRequestWithContext(t.Context(), tc.method, "http://"+addr+tc.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for h := range strings.SplitSeq(tc.headers, "|") {
			if k, v, ok := strings.Cut(h, ": "); ok {
				req.Header.Set(k, v)
				if k == "Host" {
					req.Host = v
				}
			}
		}
		tr := &http.Transport{DisableKeepAlives: true}
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		var body []byte
		if resp.StatusCode != 101 {
			body, _ = io.ReadAll(resp.Body)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != tc.status || string(body) != tc.body {
			t.Errorf("%s %s %q: %d %q, want %d %q", tc.method, tc.path, tc.headers, resp.StatusCode, body, tc.status, tc.body)
		}
	}
	_, err = ws.Dial(t.Context(), "ws://"+addr, ws.DialOptions{Token: "wrong"})
	if thole.CodeOf(err) != thole.CodeUnauthorized || !strings.Contains(err.Error(), "invalid websocket bearer token") {
		t.Error(err)
	}
	roundTrip(t, dial(t, "ws://"+addr, ws.DialOptions{Token: "secret"}), "hi")
}

// A handler of OtherPaths that took a connection over ends with the server, which waits for it.
func TestBesideEndsWithTheServer(t *testing.T) {
	taken, left := make(chan struct{}), make(chan struct{})
	others := http.NewServeMux()
	others.HandleFunc("GET /take", func(w http.ResponseWriter, r *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		close(taken)
		<-r.Context().Done()
		close(left)
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- ws.NewServer(ws.Options{OtherPaths: others}, echo(nil)).Serve(ctx, l) }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "GET /take HTTP/1.1\r\nHost: localhost\r\n\r\n")
	<-taken
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
	select {
	case <-left:
	default:
		t.Error("the server did not wait")
	}
}

func TestTokenNeverGoesInTheClear(t *testing.T) {
	_, err := ws.Dial(t.Context(), "ws://192.0.2.1:1", ws.DialOptions{Token: "x"})
	if thole.CodeOf(err) != thole.CodeForbidden {
		t.Fatal(err)
	}
}

func TestBinary(t *testing.T) {
	for _, ignore := range []bool{false, true} {
		addr := tcp(t, ws.Options{IgnoreBinary: ignore}, echo(nil))
		c, _, err := websocket.Dial(t.Context(), "ws://"+addr, nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Write(t.Context(), websocket.MessageBinary, []byte("b"))
		_ = c.Write(t.Context(), websocket.MessageText, []byte("t"))
		typ, got, err := c.Read(t.Context())
		if want := map[bool]string{false: "b", true: "t"}[ignore]; err != nil || string(got) != want || typ != websocket.MessageText {
			t.Errorf("ignore=%v: %v %q %v", ignore, typ, got, err)
		}
		_ = c.CloseNow()
	}
}

func TestCloseReasonReachesThePeer(t *testing.T) {
	addr := tcp(t, ws.Options{}, func(_ context.Context, s jsonrpc.Stream) {
		_ = s.Close("too slow " + strings.Repeat("é", 100))
	})
	s := dial(t, "ws://"+addr, ws.DialOptions{})
	_, err := s.Read(t.Context())
	if !errors.Is(err, io.EOF) || !strings.HasPrefix(err.Error(), "too slow é") {
		t.Fatal(err)
	}
}

func TestCloseUnblocksAgainstADeadPeer(t *testing.T) {
	read, wrote := make(chan error, 1), make(chan error, 1)
	addr := tcp(t, ws.Options{}, func(_ context.Context, s jsonrpc.Stream) {
		go func() { _, err := s.Read(context.Background()); read <- err }()
		first := make(chan struct{})
		go func() {
			var err error
			for i := 0; err == nil; i++ { // far more than the socket buffers take
				err = s.Write(context.Background(), make([]byte, 1<<20))
				if i == 0 {
					close(first)
				}
			}
			wrote <- err
		}()
		<-first
		_ = s.Close("enough")
	})
	c, _, err := websocket.Dial(t.Context(), "ws://"+addr, nil) // and never read
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.CloseNow() }()
	if <-read == nil || <-wrote == nil {
		t.Fatal("the stream went on")
	}
}

func TestPing(t *testing.T) {
	addr := tcp(t, ws.Options{PingEvery: time.Millisecond}, echo(nil))
	pings := make(chan struct{}, 100)
	c, _, err := websocket.Dial(t.Context(), "ws://"+addr, &websocket.DialOptions{OnPingReceived: func(context.Context, []byte) bool {
		select {
		case pings <- struct{}{}:
		default:
		}
		return true
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx := c.CloseRead(t.Context())
	for range 3 {
		select {
		case <-pings:
		case <-ctx.Done():
			t.Fatal("the server hung up")
		}
	}
	_ = c.CloseNow()
}

// FuzzFrames throws bytes at an upgraded connection: the server must end it or
// read messages, and stay able to serve the next.
func FuzzFrames(f *testing.F) {
	for _, s := range []string{"\x81\x85\x00\x00\x00\x00hello", "\x01\x81\x00\x00\x00\x00a\x80\x81\x00\x00\x00\x00b", "\x88\x80\x00\x00\x00\x00", "\x89\xff\xff", "\x81\x05hello", "\xff\xff\xff\xff", "\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00"} {
		f.Add([]byte(s))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	srv := ws.NewServer(ws.Options{Limit: 1 << 16}, echo(nil))
	go func() { done <- srv.Serve(ctx, l) }()
	f.Cleanup(func() { cancel(); <-done })
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		_, _ = fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
		_, _ = c.Write(data)
		_ = c.(*net.TCPConn).CloseWrite()
		if _, err := io.Copy(io.Discard, io.LimitReader(c, 1<<20)); err != nil && !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
			t.Fatal(err)
		}
	})
}
