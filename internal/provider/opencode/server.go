package opencode

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/box"
	"github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/internal/provider/base"
	"github.com/tholehq/thole/internal/strictjson"
)

// callTimeout bounds one request that waits for no model.
const callTimeout = 30 * time.Second

// maxAnswer bounds one answer: a session's messages can be long.
const maxAnswer = 256 << 20

// server is one `opencode serve` process. Safe for concurrent use.
type server struct {
	base.Process
	feed     *feed // nil until the server was greeted
	url      string
	dir      string
	password string
	in       *box.Box // where it listens, nil here
	client   *http.Client
}

// startServer returns when the server says that it listens. Not before: it never
// answers a connection that it accepted earlier.
func (s *session) startServer(ctx context.Context) (*server, error) {
	var secret [24]byte
	rand.Read(secret[:])
	drained := make(chan struct{})
	srv := &server{dir: s.Cfg.Dir, password: hex.EncodeToString(secret[:]), in: s.Cfg.Box}
	srv.client = &http.Client{Transport: &http.Transport{DialContext: srv.dial, MaxIdleConnsPerHost: 4, IdleConnTimeout: 30 * time.Second, ResponseHeaderTimeout: callTimeout}}
	p, err := s.launch(srv.password)
	if err != nil {
		return nil, err
	}
	srv.Process = base.Process{Process: p, Read: drained}
	ready := make(chan string, 1)
	go func() {
		defer close(drained)
		defer p.Stdout.Close()
		lines := process.NewLines(p.Stdout)
		for {
			line, err := lines.Next()
			if err != nil {
				return
			}
			if _, addr, ok := strings.Cut(string(line), "listening on "); ok {
				select {
				case ready <- strings.TrimSpace(addr):
				default:
				}
			}
		}
	}()
	select {
	case srv.url = <-ready:
		return srv, nil
	case <-drained:
		srv.Close(time.Second)
		return nil, thole.Errorf(thole.CodeUnavailable, "opencode did not start: %s", p.Diagnosis())
	case <-ctx.Done():
		why := p.Diagnosis()
		srv.Close(0)
		return nil, thole.Errorf(thole.CodeUnavailable, "opencode did not become ready: %w; %s", context.Cause(ctx), why).
			WithHint("run `opencode serve` by hand and check that the machine is not overloaded")
	}
}

// dial reaches the server: its loopback is that of its box. Whatever address it says,
// nothing outside is dialled for it.
func (s *server) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if s.in == nil {
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, err
	}
	return s.in.Dial(ctx, uint16(n))
}

// Close ends the process and everything it left behind. The server stops without
// cleaning up, so there is little to wait for.
func (s *server) Close(grace time.Duration) {
	if s.feed != nil {
		s.feed.stop()
	}
	s.Process.Close(grace)
	s.client.CloseIdleConnections()
}

// statusError is an answer other than success.
type statusError struct {
	status int
	body   string
}

func (e *statusError) Error() string { return fmt.Sprintf("status %d: %s", e.status, e.body) }

func isStatus(err error, status int) bool {
	var se *statusError
	return errors.As(err, &se) && se.status == status
}

func (s *server) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var r io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		r = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.url+path+"?directory="+url.QueryEscape(s.dir), r)
	if err != nil {
		return nil, err
	}
	req.SetBasicAuth("opencode", s.password)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// call makes one request and decodes its answer into out, which may be nil.
func (s *server) call(ctx context.Context, method, path string, body, out any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return s.exchange(ctx, s.client, method, path, body, out)
}

// wait is call without a bound of its own, for what waits for a model.
func (s *server) wait(ctx context.Context, method, path string, body, out any) error {
	patient := &http.Client{Transport: &http.Transport{DialContext: s.dial, DisableKeepAlives: true}}
	return s.exchange(ctx, patient, method, path, body, out)
}

func (s *server) exchange(ctx context.Context, client *http.Client, method, path string, body, out any) error {
	req, err := s.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "opencode: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		raw, _ := io.ReadAll(io.LimitReader(resp.Body, 2<<10))
		return thole.Errorf(thole.CodeUnavailable, "opencode: %s %s: %w", method, path, &statusError{resp.StatusCode, string(raw)})
	}
	if out == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		return nil
	}
	if err := strictjson.Read(io.LimitReader(resp.Body, maxAnswer), out); err != nil {
		return thole.Errorf(thole.CodeUnavailable, "opencode: %s %s: %w", method, path, err)
	}
	return nil
}

// events opens the event stream; the caller closes it.
func (s *server) events(ctx context.Context) (io.ReadCloser, error) {
	req, err := s.request(ctx, http.MethodGet, "/event", nil)
	if err != nil {
		return nil, err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "opencode: open the event stream: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, thole.Errorf(thole.CodeUnavailable, "opencode: open the event stream: status %d", resp.StatusCode)
	}
	return resp.Body, nil
}
