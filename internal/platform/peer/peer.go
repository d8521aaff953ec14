// Package peer lets the servers of one store reach each other: what is on the machine of one is
// asked for there by the others. Both ends prove themselves with certificates that each server
// makes when it starts and records in the roster, so that only who writes to the store is one.
//
// It passes requests on as they are, with the proof of who asks: whether they may, the server
// that answers decides again. It keeps nothing.
package peer

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/jsonhttp"
	"github.com/tholehq/thole/internal/roster"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/unguarded"
)

// Peers are the other servers of a store, as one of them sees them.
type Peers struct {
	self string
	list func(context.Context) ([]roster.Server, error)
	pair tls.Certificate
	log  *slog.Logger
	gone context.Context // ends with Close
	end  context.CancelFunc

	mu  sync.Mutex                 // guards way
	way map[string]*http.Transport // by the certificate at their end
}

// certificateLife is longer than a server runs.
const certificateLife = 10 * 365 * 24 * time.Hour

// New makes this server's certificate; list returns the servers of the store.
func New(self string, list func(context.Context) ([]roster.Server, error), log *slog.Logger) (*Peers, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	form := &x509.Certificate{SerialNumber: big.NewInt(now.UnixNano()), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateLife), DNSNames: []string{self}}
	der, err := x509.CreateCertificate(rand.Reader, form, form, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	p := &Peers{self: self, list: list, pair: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, log: log, way: map[string]*http.Transport{}}
	p.gone, p.end = context.WithCancel(context.Background())
	return p, nil
}

func sum(der []byte) string {
	s := sha256.Sum256(der)
	return hex.EncodeToString(s[:])
}

// Self reports whether an id is this server's.
func (p *Peers) Self(id string) bool { return id == p.self }

// Sum is what the roster records of this server's certificate.
func (p *Peers) Sum() string { return sum(p.pair.Certificate[0]) }

// Close ends idle connections, and those that were joined.
func (p *Peers) Close() {
	p.end()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.way {
		t.CloseIdleConnections()
	}
}

// Server answers other servers of the store, and nobody else.
func (p *Peers) Server(handler http.Handler) *http.Server {
	return &http.Server{Handler: handler, BaseContext: func(net.Listener) context.Context { return p.gone }, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelWarn)}
}

// Listener makes connections prove that they are of a server.
func (p *Peers) Listener(ln net.Listener) net.Listener {
	return tls.NewListener(ln, &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{p.pair}, ClientAuth: tls.RequireAnyClientCert,
		NextProtos: []string{"http/1.1"}, SessionTicketsDisabled: true, VerifyPeerCertificate: p.known,
	})
}

var errStranger = errors.New("the certificate is of no server of this store")

// known accepts the certificates of servers that are alive.
func (p *Peers) known(raw [][]byte, _ [][]*x509.Certificate) error {
	if unguarded.Build {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), roster.BeatEvery)
	defer cancel()
	all, err := p.list(ctx)
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.Alive && len(raw) > 0 && s.Certificate != "" && s.Certificate == sum(raw[0]) {
			return nil
		}
	}
	return errStranger
}

// transport reaches one server: another process that answers at its address is refused.
func (p *Peers) transport(to roster.Server) *http.Transport {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.way[to.Certificate]; t != nil {
		return t
	}
	t := &http.Transport{
		DialContext: (&net.Dialer{Timeout: roster.BeatEvery}).DialContext, TLSHandshakeTimeout: roster.BeatEvery, IdleConnTimeout: time.Minute, DisableCompression: true,
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{p.pair}, NextProtos: []string{"http/1.1"},
			InsecureSkipVerify: true, // no authority signed it: the roster names the one certificate
			VerifyPeerCertificate: func(raw [][]byte, _ [][]*x509.Certificate) error {
				if len(raw) == 0 || sum(raw[0]) != to.Certificate {
					return errStranger
				}
				return nil
			},
		},
	}
	p.way[to.Certificate] = t
	return t
}

// Find returns a server that is alive and can be asked; nil if it is this one or there is none of
// that id.
func (p *Peers) Find(ctx context.Context, id string) (*roster.Server, error) {
	if id == "" || id == p.self {
		return nil, nil
	}
	all, err := p.list(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if s.ID == id && s.Alive && s.Peer != "" {
			return &s, nil
		}
	}
	return nil, nil
}

// Ask reads what another server answers at a path, as JSON.
func (p *Peers) Ask(ctx context.Context, to roster.Server, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, "https://"+to.Peer+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := p.transport(to).RoundTrip(req)
	if err != nil {
		return silent(to, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return jsonhttp.ReadError(res)
	}
	if err := strictjson.Read(io.LimitReader(res.Body, maxAnswer), out); err != nil {
		return silent(to, err)
	}
	return nil
}

// Connect opens a connection to what another server joins to a path: see Join.
func (p *Peers) Connect(ctx context.Context, to roster.Server, path string) (net.Conn, error) {
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: roster.BeatEvery}, Config: p.transport(to).TLSClientConfig}
	conn, err := dialer.DialContext(ctx, "tcp", to.Peer)
	if err != nil {
		return nil, silent(to, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	in, err := upgrade(ctx, conn, to, path)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return &joined{conn, in}, nil
}

func upgrade(ctx context.Context, conn net.Conn, to roster.Server, path string) (*bufio.Reader, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+to.Peer+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {protocol}}
	if err := req.Write(conn); err != nil {
		return nil, silent(to, err)
	}
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, req)
	if err != nil {
		return nil, silent(to, err)
	}
	defer res.Body.Close() // it has none where the protocol is switched
	if res.StatusCode != http.StatusSwitchingProtocols {
		return nil, jsonhttp.ReadError(res)
	}
	return in, nil
}

// protocol is what connections through a server are named in their requests, and maxAnswer how
// much one of them is believed.
const (
	protocol  = "thole"
	maxAnswer = 64 << 20
)

// joined is a connection of which the beginning was read.
type joined struct {
	net.Conn
	in *bufio.Reader
}

func (j *joined) Read(b []byte) (int, error) { return j.in.Read(b) }

// Join answers a Connect with a connection: what comes on one goes out on the other until both
// have ended.
func Join(w http.ResponseWriter, r *http.Request, open func(context.Context) (net.Conn, error)) {
	if r.Header.Get("Upgrade") != protocol {
		jsonhttp.Error(w, thole.Errorf(thole.CodeInvalid, "this path is for connections of other servers"))
		return
	}
	there, err := open(r.Context())
	if err != nil {
		jsonhttp.Error(w, err)
		return
	}
	defer there.Close()
	here, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		jsonhttp.Error(w, thole.Errorf(thole.CodeInternal, "connect: %w", err))
		return
	}
	defer here.Close()
	if _, err := io.WriteString(here, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+protocol+"\r\n\r\n"); err != nil {
		return
	}
	defer context.AfterFunc(r.Context(), func() { _, _ = here.Close(), there.Close() })()
	var both sync.WaitGroup
	pass := func(to net.Conn, from io.Reader) {
		_, _ = io.Copy(to, from)
		_, _ = here.Close(), there.Close()
	}
	both.Go(func() { pass(there, buffered) })
	both.Go(func() { pass(here, there) })
	both.Wait()
}

func silent(to roster.Server, err error) error {
	return thole.Errorf(thole.CodeUnavailable, "this is on server %s, which does not answer: %w", to.ID, err).WithHint("try again in %s: by then it answers, or counts as dead", roster.DeadAfter)
}

// Pass hands a request to another server, and its answer back.
func (p *Peers) Pass(w http.ResponseWriter, r *http.Request, to roster.Server) {
	(&httputil.ReverseProxy{
		Transport: p.transport(to), FlushInterval: -1,
		Rewrite: func(out *httputil.ProxyRequest) {
			out.SetURL(&url.URL{Scheme: "https", Host: to.Peer})
			out.Out.Host = out.In.Host
		},
		ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				p.log.Warn("ask another server", "err", err)
			}
			jsonhttp.Error(w, silent(to, err))
		},
		ModifyResponse: func(res *http.Response) error {
			for name := range w.Header() { // those of the server that was asked first are in the answer already
				res.Header.Del(name)
			}
			return nil
		},
	}).ServeHTTP(w, r)
}
