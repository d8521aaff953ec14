package egress

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"sync/atomic"
	"time"
)

// maxHead bounds the head of a request and of an answer.
const maxHead = 64 << 10

var silent = log.New(io.Discard, "", 0)

func newWeb(p *Proxy) *http.Server {
	return &http.Server{Handler: http.HandlerFunc(p.serveHTTP), ErrorLog: silent,
		MaxHeaderBytes: maxHead, ReadHeaderTimeout: p.c.Handshake, IdleTimeout: p.c.Idle, Protocols: http1()}
}

func http1() *http.Protocols {
	var only http.Protocols
	only.SetHTTP1(true)
	return &only
}

// serveHTTP serves one request of a client: a tunnel, or a whole request for http://.
func (p *Proxy) serveHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.enter() { // http.Server.Close does not wait for its handlers
		return
	}
	defer p.running.Done()
	protocol, hostport, ctx := "http", r.URL.Host, r.Context()
	switch {
	case r.Method == http.MethodConnect && r.URL.Path == "":
		protocol, ctx = "connect", p.ctx // the request's ends when the client ends its direction, which may be early
	case r.Method == http.MethodConnect || r.URL.Scheme != "http":
		http.Error(w, "this is thole's egress proxy: send CONNECT, an absolute http:// URL, or SOCKS5", http.StatusBadRequest)
		return
	case r.URL.Port() == "":
		hostport = net.JoinHostPort(r.URL.Hostname(), "80")
	}
	t, err := parseTarget(hostport)
	if err != nil {
		p.reject(protocol, target{host: clip(hostport)}, err)
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	s, f, err := p.begin(ctx, protocol, t)
	if err != nil {
		w.Header().Set("Connection", "close")
		http.Error(w, err.Error(), status(err))
		return
	}
	defer f.end()
	defer s.Close()
	if protocol == "connect" {
		p.tunnel(w, s, f)
		return
	}
	p.forward(w, r, s, f)
}

func status(err error) int {
	var refusal *Refusal
	switch {
	case errors.As(err, &refusal):
		return http.StatusForbidden
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}

func (p *Proxy) tunnel(w http.ResponseWriter, s *stream, f *flow) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer conn.Close()
	c := conn.(*client)
	_ = c.SetWriteDeadline(time.Now().Add(p.c.Handshake))
	if _, err := io.WriteString(c.Conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	early, _ := buffered.Reader.Peek(buffered.Reader.Buffered())
	p.relay(c.Conn, early, s, f)
}

// forward passes one request on over s and its answer back. Every request has a connection of its
// own, so each is decided alone: a redirect is the client's next request.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request, s *stream, f *flow) {
	conn := &metered{Conn: s.Conn, f: f, idle: p.c.Idle}
	var used atomic.Bool
	transport := &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			if used.Swap(true) {
				return nil, errors.New("the connection was used")
			}
			return conn, nil
		},
		Proxy:                  func(*http.Request) (*url.URL, error) { return s.via, nil },
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHead,
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.Out.URL.RawQuery = pr.In.URL.RawQuery
			pr.Out.URL.User = nil
		},
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      silent,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "forward to "+f.Host+": "+err.Error(), status(err))
		},
	}
	proxy.ServeHTTP(w, r)
}

// metered counts a connection's bytes and ends it when it is idle.
type metered struct {
	net.Conn
	f    *flow
	idle time.Duration
}

func (m *metered) Read(b []byte) (int, error) {
	_ = m.SetReadDeadline(time.Now().Add(m.idle))
	n, err := m.Conn.Read(b)
	m.f.received(int64(n))
	return n, err
}

func (m *metered) Write(b []byte) (int, error) {
	_ = m.SetDeadline(time.Now().Add(m.idle))
	n, err := m.Conn.Write(b)
	m.f.sent(int64(n))
	return n, err
}

// CloseWrite lets an upgraded connection end one way.
func (m *metered) CloseWrite() error {
	if half, ok := m.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return m.Close()
}
