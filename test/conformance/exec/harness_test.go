//go:build linux

// Package exec_test proves that our exec-server and client behave like the real
// ones: recorded traffic of Codex exec-server is replayed against our server, and
// one suite runs our client against both servers.
package exec_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/tholehq/thole/internal/execserver"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/transport/stdio"
	"github.com/tholehq/thole/internal/transport/ws"
	"github.com/tholehq/thole/internal/version"
)

// serve starts our server on loopback and returns its URL.
func serve(t testing.TB, cfg execserver.Config) (string, *execserver.Server) {
	t.Helper()
	return servePinging(t, cfg, recordedPing)
}

// recordedPing is how often the real server pings.
const recordedPing = 30 * time.Second

func servePinging(t testing.TB, cfg execserver.Config, every time.Duration) (string, *execserver.Server) {
	t.Helper()
	if cfg.Version == "" {
		cfg.Version = version.Codex
	}
	if self, err := os.Executable(); err == nil && cfg.Helper == nil {
		cfg.Helper = []string{self, execAs}
	}
	srv := execserver.New(cfg)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = ws.NewServer(ws.Options{Path: "/", Health: []string{"/readyz"}, PingEvery: every},
			func(ctx context.Context, s jsonrpc.Stream) { _ = srv.Serve(ctx, s) }).Serve(ctx, execserver.LimitFrames(l))
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		srv.Close()
	})
	return "ws://" + l.Addr().String(), srv
}

// message is one side of a transcript, or what our server sent.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// wire is a raw connection, a WebSocket or a pair of pipes.
type wire struct {
	t      testing.TB
	c      *websocket.Conn
	pipe   io.WriteCloser // instead of c: one message per line
	in     chan message
	closed chan struct{}
}

func dial(t testing.TB, url string) *wire {
	t.Helper()
	c, _, err := websocket.Dial(context.Background(), url, &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
	if err != nil {
		t.Fatal(err)
	}
	c.SetReadLimit(128 << 20)
	w := &wire{t: t, c: c}
	w.listen(func() ([]byte, error) {
		_, data, err := c.Read(context.Background())
		return data, err
	})
	t.Cleanup(w.cut)
	return w
}

// dialStdio serves one connection on pipes; served is closed when the server has
// nothing left.
func dialStdio(t testing.TB, srv *execserver.Server) (w *wire, served chan struct{}) {
	t.Helper()
	in, pipe := osPipe(t)
	out, server := osPipe(t)
	served = make(chan struct{})
	go func() {
		defer close(served)
		if err := srv.Serve(context.Background(), stdio.New(in, server, 0)); err != nil {
			t.Errorf("serve: %v", err)
		}
		srv.Close()
	}()
	w = &wire{t: t, pipe: pipe}
	lines := bufio.NewReader(out)
	w.listen(func() ([]byte, error) { return lines.ReadBytes('\n') })
	t.Cleanup(func() { w.cut(); <-served })
	return w, served
}

// listen collects what arrives.
func (w *wire) listen(next func() ([]byte, error)) {
	w.in, w.closed = make(chan message, 1<<16), make(chan struct{})
	go func() {
		defer close(w.closed)
		for {
			data, err := next()
			if err != nil {
				return
			}
			var m message
			if json.Unmarshal(data, &m) == nil {
				w.in <- m
			}
		}
	}()
}

// cut ends the connection without a goodbye.
func (w *wire) cut() {
	if w.pipe != nil {
		_ = w.pipe.Close()
	} else {
		_ = w.c.CloseNow()
	}
}

func (w *wire) send(raw []byte, binary bool) {
	w.t.Helper()
	typ := websocket.MessageText
	if binary {
		typ = websocket.MessageBinary
	}
	var err error
	if w.pipe != nil {
		_, err = w.pipe.Write(append(raw, '\n'))
	} else {
		err = w.c.Write(context.Background(), typ, raw)
	}
	if err != nil {
		w.t.Fatalf("send %.80s: %v", raw, err)
	}
}

func (w *wire) isClosed(within time.Duration) bool {
	select {
	case <-w.closed:
		return true
	case <-time.After(within):
		return false
	}
}
