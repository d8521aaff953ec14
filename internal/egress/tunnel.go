package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"time"
)

// Tunnel carries in and out to a target through an HTTP proxy, as a ProxyCommand of ssh does. It returns
// when the target has ended; an end of in is passed on.
func Tunnel(ctx context.Context, proxy, hostport string, in io.Reader, out io.Writer) error {
	t, err := parseTarget(hostport)
	if err != nil {
		return err
	}
	via, err := url.Parse(proxy)
	if err != nil || via.Scheme != "http" || via.Port() == "" {
		return errors.New("invalid HTTPS_PROXY: must be http://HOST:PORT")
	}
	conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", via.Host)
	if err != nil {
		return fmt.Errorf("connect to the proxy: %w", err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	s := &stream{Conn: conn}
	if err := s.connect(via, t); err != nil {
		var no *answered
		if errors.As(err, &no) && no.text != "" {
			return errors.New(strings.TrimSpace(no.text))
		}
		return fmt.Errorf("connect to %s: %w", t, err)
	}
	if _, err := out.Write(s.early); err != nil {
		return err
	}
	go func() { // nothing wakes a reader of stdin: it is not waited for
		_, _ = io.Copy(conn, in)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	_, err = io.Copy(out, conn)
	return err
}
