package ws

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/coder/websocket"

	"github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/transport/unix"
)

// ClientLimit is the default inbound limit of a client. Codex servers send one
// frame whatever its size, and its own remote client takes 128 MiB.
const ClientLimit = 128 << 20

// DialOptions shape a client connection.
type DialOptions struct {
	Token string // sent as bearer token, only over wss, to loopback or a unix socket
	Path  string // of the server at a unix socket, default /
	Limit int64  // inbound message bytes; default ClientLimit
	// Connect opens the connection in the place of one to addr, which is then
	// ws://localhost/PATH; nil: addr is dialed.
	Connect func(context.Context) (net.Conn, error)
}

// Dial connects to ws://, wss:// or unix://PATH (WebSocket over the socket). The
// context bounds the handshake only.
func Dial(ctx context.Context, addr string, o DialOptions) (jsonrpc.Stream, error) {
	u, err := url.Parse(addr)
	if err != nil || (u.Scheme != "ws" && u.Scheme != "wss" && u.Scheme != "unix") {
		return nil, thole.Errorf(thole.CodeInvalid, "dial %q: not a ws://, wss:// or unix:// address", addr)
	}
	if o.Token != "" && u.Scheme == "ws" && !loopbackHost(u.Hostname()) {
		return nil, thole.Errorf(thole.CodeForbidden, "dial %s: refusing to send a token unencrypted", addr).
			WithHint("use wss:// or a tunnel to loopback")
	}
	var nc atomic.Pointer[net.Conn]
	dial := (&net.Dialer{}).DialContext
	target := addr
	tr := &http.Transport{DisableKeepAlives: true, Proxy: http.ProxyFromEnvironment}
	if u.Scheme == "unix" {
		path := strings.TrimPrefix(addr, "unix://")
		dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return unix.Dial(ctx, path) }
		target, tr.Proxy = "ws://localhost/"+strings.TrimPrefix(o.Path, "/"), nil
	}
	if o.Connect != nil {
		dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return o.Connect(ctx) }
		tr.Proxy = nil
	}
	tr.DialContext = func(ctx context.Context, network, a string) (net.Conn, error) {
		c, err := dial(ctx, network, a)
		if err == nil {
			nc.Store(&c)
		}
		return c, err
	}
	header := http.Header{}
	if o.Token != "" {
		header.Set("Authorization", "Bearer "+o.Token)
	}
	c, resp, err := websocket.Dial(ctx, target, &websocket.DialOptions{ //nolint:bodyclose // the library closes it
		HTTPClient: &http.Client{Transport: tr, CheckRedirect: noRedirect},
		HTTPHeader: header, CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		return nil, dialError(addr, resp, err)
	}
	if o.Limit == 0 {
		o.Limit = ClientLimit
	}
	c.SetReadLimit(o.Limit)
	return &stream{c: c, net: *nc.Load(), code: websocket.StatusNormalClosure}, nil
}

// noRedirect keeps a server from sending our token elsewhere.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func loopbackHost(h string) bool {
	ip, err := netip.ParseAddr(h)
	return strings.EqualFold(h, "localhost") || err == nil && ip.Unmap().IsLoopback()
}

func dialError(addr string, resp *http.Response, err error) error {
	var te *thole.Error
	if errors.As(err, &te) {
		return te
	}
	if resp == nil {
		return thole.Errorf(thole.CodeUnavailable, "dial %s: %w", addr, err)
	}
	var body []byte
	if resp.Body != nil {
		body, _ = io.ReadAll(io.LimitReader(resp.Body, 1024))
	}
	said := strings.TrimSpace(string(body))
	if said == "" {
		said = http.StatusText(resp.StatusCode)
	}
	code := thole.CodeUnavailable
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		code = thole.CodeUnauthorized
	case http.StatusForbidden:
		code = thole.CodeForbidden
	}
	return thole.Errorf(code, "dial %s: the server refused with %d: %s", addr, resp.StatusCode, said)
}
