package system

import (
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"net/url"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/platform/guard"
	"github.com/tholehq/thole/internal/platform/session"
)

// listenWeb binds to loopback, and beyond it only when there is a way in for those who come
// over the network: a token, or the accounts of a server.
func listenWeb(ctx context.Context, c config.HTTP, accounts bool, sessions *session.Manager) (net.Listener, error) {
	tokens, err := sessions.Tokens(ctx, thole.LocalUser)
	if err != nil {
		return nil, err
	}
	if err := guard.CheckListen(c.Listen, accounts || len(tokens) > 0); err != nil {
		return nil, err
	}
	var serving *tls.Config
	if c.TLSCert != "" {
		pair, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
		if err != nil {
			return nil, thole.Errorf(thole.CodeInvalid, "http.tls_cert %s with http.tls_key %s: %w", c.TLSCert, c.TLSKey, err).
				WithHint("both are PEM files that thole can read; the key must belong to the first certificate")
		}
		serving = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "listen on %s: %w", c.Listen, err).
			WithHint("%s", listenHint(err))
	}
	if serving != nil {
		ln = tls.NewListener(ln, serving)
	}
	return ln, nil
}

func listenHint(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return "only root may take ports below 1024: choose a higher one with --listen or http.listen"
	}
	return "end the program that has the port, or choose another with --listen 127.0.0.1:0"
}

// address is how browsers reach a listener.
type address struct {
	base    string
	tls     bool
	hosts   []string
	local   bool // only programs of this machine reach it
	warning string
}

func addressOf(c config.HTTP, bound net.Addr) address {
	a := address{base: "http://", tls: c.TLSCert != "", hosts: c.AllowedHosts}
	if a.tls {
		a.base = "https://"
	}
	tcp := bound.(*net.TCPAddr).AddrPort()
	at := tcp
	if tcp.Addr().IsUnspecified() {
		at = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), tcp.Port())
	}
	a.base += at.String()
	if c.PublicURL != "" {
		a.base = c.PublicURL
		u, err := url.Parse(c.PublicURL) // validated with the configuration
		if err == nil {
			a.tls = a.tls || u.Scheme == "https"
			a.hosts = append([]string{u.Host}, a.hosts...)
		}
	}
	a.local = c.PublicURL == "" && tcp.Addr().Unmap().IsLoopback()
	if !a.tls && !tcp.Addr().Unmap().IsLoopback() {
		a.warning = "other machines reach " + c.Listen + " without TLS: an eavesdropper reads tokens and cookies (http.tls_cert, or a proxy and http.public_url)"
	}
	return a
}
