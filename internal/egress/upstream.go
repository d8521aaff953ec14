package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// Environment returns the Upstream that HTTP_PROXY, HTTPS_PROXY and NO_PROXY describe, in
// either case, or nil if neither proxy is set.
func Environment(getenv func(string) string) func(*url.URL) (*url.URL, error) {
	either := func(upper, lower string) string {
		if v := getenv(upper); v != "" {
			return v
		}
		return getenv(lower)
	}
	c := httpproxy.Config{HTTPProxy: either("HTTP_PROXY", "http_proxy"), HTTPSProxy: either("HTTPS_PROXY", "https_proxy"), NoProxy: either("NO_PROXY", "no_proxy")}
	if c.HTTPProxy == "" && c.HTTPSProxy == "" {
		return nil
	}
	for _, v := range []string{c.HTTPProxy, c.HTTPSProxy} {
		// An address that cannot be parsed is left out by ProxyFunc: connections would pass the proxy by.
		alone := httpproxy.Config{HTTPSProxy: v}
		if via, _ := alone.ProxyFunc()(&url.URL{Scheme: "https", Host: "example.com"}); v != "" && via == nil {
			return func(*url.URL) (*url.URL, error) { return nil, errors.New("invalid proxy address") }
		}
	}
	return c.ProxyFunc()
}

func (p *Proxy) upstream(t target, plainHTTP bool) (*url.URL, error) {
	if p.c.Upstream == nil {
		return nil, nil
	}
	u := &url.URL{Scheme: "https", Host: t.String()}
	if plainHTTP {
		u.Scheme = "http"
	}
	return Via(p.c.Upstream, u)
}

// Via asks an Upstream for a URL's proxy. Its error never has the proxy's address, which may have a password.
func Via(upstream func(*url.URL) (*url.URL, error), u *url.URL) (*url.URL, error) {
	via, err := upstream(u)
	if err == nil && via == nil {
		return nil, nil
	}
	if err == nil && (via.Scheme == "http" || via.Scheme == "https") {
		_, err = newTarget(via.Hostname(), 1)
		if err == nil && (via.Port() != "" || !strings.HasSuffix(via.Host, ":")) {
			return via, nil
		}
	}
	return nil, errors.New("unsupported HTTP_PROXY or HTTPS_PROXY of the server: must be http://HOST:PORT or https://HOST:PORT")
}

// dialVia connects to t through an upstream, which a person named: its own address is not judged.
func (p *Proxy) dialVia(ctx context.Context, via *url.URL, t target, plainHTTP bool) (*stream, error) {
	address := via.Host
	if via.Port() == "" {
		address = net.JoinHostPort(via.Hostname(), map[string]string{"http": "80", "https": "443"}[via.Scheme])
	}
	conn, err := p.c.Dial(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connect to the server's own proxy %s: %w", address, err)
	}
	s := &stream{Conn: conn, address: address}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	if via.Scheme == "https" {
		secure := tls.Client(conn, &tls.Config{ServerName: via.Hostname(), RootCAs: p.roots})
		s.Conn, err = secure, secure.HandshakeContext(ctx)
	}
	if plainHTTP {
		s.via = &url.URL{Scheme: "http", Host: via.Host, User: via.User}
	} else if err == nil {
		err = s.connect(via, t)
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = s.Conn.Close()
		return nil, fmt.Errorf("connect to %s through the server's own proxy %s: %w", t, address, err)
	}
	return s, nil
}

// answered is a proxy's refusal. Its text is for whoever the proxy belongs to, so the error has the code alone.
type answered struct {
	code int
	text string
}

const maxRefusal = 1 << 10

func (a *answered) Error() string { return fmt.Sprintf("it answered %d", a.code) }

// connect asks the upstream at the other end of s for a tunnel.
func (s *stream) connect(via *url.URL, t target) error {
	request := "CONNECT " + t.String() + " HTTP/1.1\r\nHost: " + t.String() + "\r\n"
	if via.User != nil {
		password, _ := via.User.Password()
		request += "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(via.User.Username()+":"+password)) + "\r\n"
	}
	if _, err := io.WriteString(s.Conn, request+"\r\n"); err != nil {
		return err
	}
	r := bufio.NewReader(io.LimitReader(s.Conn, maxHead))
	answer, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect}) //nolint:bodyclose // closing it would read from the tunnel
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(io.LimitReader(r, max(0, min(answer.ContentLength, maxRefusal))))
		return &answered{answer.StatusCode, string(why)}
	}
	s.early, _ = r.Peek(r.Buffered())
	return nil
}
