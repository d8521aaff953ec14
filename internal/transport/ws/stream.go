// Package ws carries one message per WebSocket message, over TCP or a unix
// socket, as server and as client. It refuses browsers by Origin and Host, wants
// the bearer token where the listener has one, bounds every message, and never
// negotiates compression.
package ws

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/tholehq/thole/internal/peercred"
)

const (
	// DefaultLimit is the inbound message limit of the Codex servers.
	DefaultLimit = 64 << 20
	// fragment is the largest frame we send: real clients refuse frames over
	// 16 MiB but take fragmented messages up to 64 MiB.
	fragment = 8 << 20
	// keep is how much of the read buffer outlives a large message.
	keep = 1 << 20
	// closeGrace is how long a peer may take to answer a close frame.
	closeGrace = time.Second
	// maxReason is what fits a close frame.
	maxReason = 123
)

// stream is a jsonrpc.Stream. Contexts are honoured through Close: a context per
// message would cost more than the message.
type stream struct {
	c            *websocket.Conn
	net          net.Conn // nil when unknown; closed to end a stuck goodbye
	ignoreBinary bool
	code         websocket.StatusCode
	buf          []byte
	once         sync.Once
	stopPing     context.CancelFunc
	pinged       chan struct{}
}

// PeerPID is the process that listens at the other end of a unix socket, 0 where the
// transport does not report it.
func (s *stream) PeerPID() int {
	if _, ok := s.net.(*net.UnixConn); !ok {
		return 0
	}
	cred, err := peercred.Of(s.net)
	if err != nil {
		return 0
	}
	return cred.PID
}

func (s *stream) Read(context.Context) ([]byte, error) {
	if cap(s.buf) > keep {
		s.buf = nil
	}
	for {
		typ, r, err := s.c.Reader(context.Background())
		if err == nil {
			s.buf, err = readAll(s.buf[:0], r)
		}
		if err != nil {
			if errors.Is(err, websocket.ErrMessageTooBig) {
				s.code = websocket.StatusMessageTooBig
				_ = s.Close("message too big")
			}
			return nil, explain(err)
		}
		if typ == websocket.MessageBinary && s.ignoreBinary {
			continue
		}
		return s.buf, nil
	}
}

func readAll(b []byte, r io.Reader) ([]byte, error) {
	if b == nil {
		b = make([]byte, 0, 4096)
	}
	for {
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return b, err
		}
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
	}
}

// Goodbye is the orderly end of a stream by a peer that said why. It is an io.EOF.
type Goodbye struct{ Reason string }

func (g *Goodbye) Error() string { return g.Reason + ": EOF" }

// Unwrap returns io.EOF.
func (g *Goodbye) Unwrap() error { return io.EOF }

// explain makes an orderly goodbye io.EOF, keeping the peer's reason, and a torn
// connection something else.
func explain(err error) error {
	var ce websocket.CloseError
	switch {
	case errors.As(err, &ce):
		switch ce.Code {
		case websocket.StatusNormalClosure, websocket.StatusGoingAway, websocket.StatusNoStatusRcvd:
			if ce.Reason == "" {
				return io.EOF
			}
			return &Goodbye{ce.Reason}
		}
		return fmt.Errorf("websocket closed by peer: %d %s", ce.Code, ce.Reason)
	case errors.Is(err, io.EOF):
		return fmt.Errorf("websocket dropped: %w", io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("websocket: %w", err)
}

func (s *stream) Write(_ context.Context, msg []byte) error {
	ctx := context.Background()
	if len(msg) <= fragment {
		if err := s.c.Write(ctx, websocket.MessageText, msg); err != nil {
			return explain(err)
		}
		return nil
	}
	w, err := s.c.Writer(ctx, websocket.MessageText)
	if err != nil {
		return explain(err)
	}
	for len(msg) > 0 {
		n := min(len(msg), fragment)
		if _, err := w.Write(msg[:n]); err != nil {
			return explain(err)
		}
		msg = msg[n:]
	}
	if err := w.Close(); err != nil {
		return explain(err)
	}
	return nil
}

// Close says goodbye with the reason and hangs up after closeGrace at the latest.
func (s *stream) Close(reason string) error {
	s.once.Do(func() {
		if s.stopPing != nil {
			s.stopPing()
			defer func() { <-s.pinged }()
		}
		if s.net != nil {
			t := time.AfterFunc(closeGrace, func() { _ = s.net.Close() })
			defer t.Stop()
		}
		_ = s.c.Close(s.code, cut(reason))
	})
	return nil
}

// cut shortens a reason to what a close frame holds, at a rune boundary.
func cut(s string) string {
	if len(s) <= maxReason {
		return s
	}
	s = s[:maxReason]
	for len(s) > 0 && !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s
}

// patience bounds one ping from below: a write that takes longer means a peer
// that does not read at all, and closes the connection.
const patience = 10 * time.Second

// ping keeps proxies from closing an idle connection. A peer that never answers
// stays connected: dead ones are found by TCP.
func (s *stream) ping(every time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	s.stopPing, s.pinged = cancel, make(chan struct{})
	go func() {
		defer close(s.pinged)
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
				once, done := context.WithTimeout(ctx, max(every, patience))
				_ = s.c.Ping(once)
				done()
			}
		}
	}()
}
