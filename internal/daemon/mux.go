package daemon

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/transport/stdio"
	"github.com/tholehq/thole/internal/transport/ws"
)

// firstByte is how long a client may take to say which wire it speaks.
const firstByte = 10 * time.Second

// mux distinguishes two wires on one socket by their first byte: a JSON line (our
// own commands, which save the handshake) or an HTTP upgrade.
type mux struct {
	l     net.Listener
	lines func(jsonrpc.Stream, *Peer)
	web   *webListener
	serve func(ctx context.Context)
	wg    sync.WaitGroup
}

func newMux(l net.Listener, lines func(jsonrpc.Stream, *Peer), attach func(context.Context, jsonrpc.Stream), others *http.ServeMux) *mux {
	m := &mux{l: l, lines: lines, web: &webListener{addr: l.Addr(), conns: make(chan net.Conn), done: make(chan struct{})}}
	m.serve = func(context.Context) { <-m.web.done }
	if attach != nil {
		srv := ws.NewServer(ws.Options{OtherPaths: others}, func(ctx context.Context, s jsonrpc.Stream) { attach(ctx, s) })
		m.serve = func(ctx context.Context) { _ = srv.Serve(ctx, m.web) }
	} else {
		m.web.Close()
	}
	return m
}

// run accepts until the listener is closed and returns when its connections are
// gone; kill ends those of the web wire.
func (m *mux) run(kill context.Context) {
	m.wg.Go(func() { m.serve(kill) })
	for {
		c, err := m.l.Accept()
		if err != nil {
			break
		}
		m.wg.Go(func() { m.route(kill, c) })
	}
	<-kill.Done()
	m.web.Close()
	m.wg.Wait()
}

func (m *mux) route(kill context.Context, c net.Conn) {
	stop := context.AfterFunc(kill, func() { _ = c.Close() })
	defer stop()
	_ = c.SetReadDeadline(time.Now().Add(firstByte))
	r := bufio.NewReaderSize(c, 4096)
	first, err := r.Peek(1)
	if err != nil {
		_ = c.Close()
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	pc := &peeked{Conn: c, r: r}
	if first[0] == '{' {
		m.lines(stdio.New(pc, pc, 0), peerOf(c))
		return
	}
	select {
	case m.web.conns <- pc:
	case <-m.web.done:
		_ = c.Close()
	}
}

// peeked is a connection whose first bytes were already read.
type peeked struct {
	net.Conn
	r *bufio.Reader
}

func (p *peeked) Read(b []byte) (int, error) { return p.r.Read(b) }

// webListener hands the HTTP server the connections that are its own.
type webListener struct {
	addr  net.Addr
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (l *webListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *webListener) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *webListener) Addr() net.Addr { return l.addr }
