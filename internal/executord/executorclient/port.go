package executorclient

import (
	"bufio"
	"context"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/jsonhttp"
)

// DialPort connects to a port of the box's loopback. CodeConflict: nobody listens there.
// The connection outlives ctx.
func (c *Client) DialPort(ctx context.Context, port uint16) (net.Conn, error) {
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "reach executor: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	got, err := c.upgrade(ctx, conn, port)
	if !stop() && err == nil {
		err = thole.Errorf(thole.CodeUnavailable, "reach executor: %w", context.Cause(ctx))
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return got, nil
}

func (c *Client) upgrade(ctx context.Context, conn net.Conn, port uint16) (net.Conn, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/ports/"+strconv.Itoa(int(port)), nil)
	if err != nil {
		return nil, err
	}
	req.Header = http.Header{"Authorization": {"Bearer " + c.token}, "Connection": {"Upgrade"}, "Upgrade": {"tcp"}}
	if err := req.Write(conn); err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "reach executor: %w", err)
	}
	bounded := &io.LimitedReader{R: conn, N: maxHeader}
	in := bufio.NewReader(bounded)
	resp, err := http.ReadResponse(in, req)
	if err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "reach executor: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return nil, jsonhttp.ReadError(resp)
	}
	bounded.N = math.MaxInt64
	return &upgraded{conn, in}, nil
}

// upgraded is a connection of which the beginning was read.
type upgraded struct {
	net.Conn
	in *bufio.Reader
}

func (u *upgraded) Read(b []byte) (int, error) { return u.in.Read(b) }
