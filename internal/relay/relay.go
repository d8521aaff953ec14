// Package relay is exec-server's remote mode: an executor that serves streams which
// reach it through a rendezvous, the dialer of a harness for such a stream, and the
// client of the registry that both ask. What the two say is encrypted between them
// (package noise); rendezvous and registry see sizes and times.
//
// The registry vouches for keys: one that lies stands in the middle. Executor and
// Dialer therefore take fingerprints of the only peers that they accept. The package
// knows no method of the exec-server protocol; its streams carry messages.
package relay

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/coder/websocket"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/relay/noise"
	"github.com/tholehq/thole/protocol/relay"
)

// Timers are how long things may take. Zero fields take the defaults, which are
// those of Codex.
type Timers struct {
	Ping       time.Duration // between pings; default 30 s
	Pong       time.Duration // until the answer to one, and of any write; default 60 s
	Validate   time.Duration // default 10 s
	RetryMin   time.Duration // before a lost socket is dialed again; default 1 s
	RetryMax   time.Duration // default 30 s
	StreamFull time.Duration // that a stream may not take what came for it; default 5 s

	Connect      time.Duration // one try of a harness to get a bundle; default 6 s
	ConnectAll   time.Duration // all of them; default 14 s
	ConnectRetry time.Duration // before the second try, doubled until 5 s; default 0.5 s
	Handshake    time.Duration // default 10 s
}

func (t Timers) withDefaults() Timers {
	for _, d := range []struct {
		to  *time.Duration
		def time.Duration
	}{
		{&t.Ping, 30 * time.Second}, {&t.Pong, 60 * time.Second}, {&t.Validate, 10 * time.Second},
		{&t.RetryMin, time.Second}, {&t.RetryMax, 30 * time.Second}, {&t.StreamFull, 5 * time.Second},
		{&t.Connect, 6 * time.Second}, {&t.ConnectAll, 14 * time.Second}, {&t.ConnectRetry, 500 * time.Millisecond},
		{&t.Handshake, 10 * time.Second},
	} {
		if *d.to <= 0 {
			*d.to = d.def
		}
	}
	return t
}

// wireKey is a key as the registry carries it.
func wireKey(k noise.PublicKey) relay.Key {
	return relay.Key{Suite: relay.Suite, X25519: k.X25519(), MLKEM768: k.MLKEM768()}
}

// ParseKey checks a key that the registry carried.
func ParseKey(k relay.Key) (noise.PublicKey, error) {
	if k.Suite != relay.Suite {
		return noise.PublicKey{}, thole.Errorf(thole.CodeInvalid, "key suite %q is unknown: it must be %s", k.Suite, relay.Suite)
	}
	return noise.ParsePublicKey(k.X25519, k.MLKEM768)
}

// dialStatus is the refusal of an upgrade.
type dialStatus struct {
	status int
	err    error
}

func (d *dialStatus) Error() string { return d.err.Error() }
func (d *dialStatus) Unwrap() error { return d.err }

// refusedUpgrade returns the HTTP status with which a socket was refused, or 0.
func refusedUpgrade(err error) int {
	var d *dialStatus
	if errors.As(err, &d) {
		return d.status
	}
	return 0
}

// dialSocket opens a socket at the rendezvous. Its address carries a ticket and is
// never part of an error.
func dialSocket(ctx context.Context, addr string) (*websocket.Conn, error) {
	u, err := url.Parse(addr)
	if err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss" {
		return nil, thole.Errorf(thole.CodeInvalid, "the registry named a rendezvous that is not a ws:// or wss:// address")
	}
	tr := &http.Transport{DisableKeepAlives: true, Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{}).DialContext}
	c, resp, err := websocket.Dial(ctx, addr, &websocket.DialOptions{ //nolint:bodyclose // the library closes it
		HTTPClient:      &http.Client{Transport: tr, CheckRedirect: noRedirect},
		CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		if resp != nil && resp.StatusCode != http.StatusSwitchingProtocols {
			return nil, &dialStatus{resp.StatusCode, thole.Errorf(thole.CodeUnavailable, "rendezvous at %s refused the socket with %d", u.Host, resp.StatusCode)}
		}
		return nil, thole.Errorf(thole.CodeUnavailable, "dial rendezvous at %s: %w", u.Host, innermost(err))
	}
	c.SetReadLimit(relay.MaxFrame)
	return c, nil
}

// innermost drops what wraps an error: it quotes the address.
func innermost(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

// noRedirect keeps a server from sending our token elsewhere.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// keepAlive pings a socket, which must be read at the same time, and ends it when no answer comes.
func keepAlive(ctx context.Context, c *websocket.Conn, t Timers) {
	tick := time.NewTicker(t.Ping)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		pctx, cancel := context.WithTimeout(ctx, t.Pong)
		err := c.Ping(pctx)
		cancel()
		if err != nil {
			_ = c.CloseNow()
			return
		}
	}
}

// send writes one frame within the time of a pong.
func send(c *websocket.Conn, frame []byte, t Timers) error {
	ctx, cancel := context.WithTimeout(context.Background(), t.Pong)
	defer cancel()
	return c.Write(ctx, websocket.MessageBinary, frame)
}
