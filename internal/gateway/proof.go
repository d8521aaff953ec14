package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	proofPrefix  = "THOLE-GATEWAY "
	maxProof     = 256             // characters of a proof
	proofTime    = 5 * time.Second // for the whole line
	proofConns   = 256             // open connections with one proof
	headTime     = 10 * time.Second
	idleTime     = 2 * time.Minute
	maxHeadBytes = 64 << 10
)

// ProofLine is what a forwarder writes at the start of each connection to the gateway.
func ProofLine(proof string) string { return proofPrefix + proof + "\n" }

// NewServer returns a server for h on a listener made by ListenProof. It has no limit for
// the length of an answer: models stream for minutes.
func NewServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ConnContext: ConnContext,
		ReadHeaderTimeout: headTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeadBytes,
		// The default answers OPTIONS * by itself.
		DisableGeneralOptionsHandler: true,
	}
}

// ListenProof returns a listener whose connections begin with a proof line. Accept does
// not wait for it: a connection reads it before its first byte of HTTP, so that a slow
// client holds up nobody else. A connection without a proof is closed without an answer.
func ListenProof(l net.Listener) net.Listener {
	return &proofListener{Listener: l, open: map[[32]byte]int{}}
}

type proofListener struct {
	net.Listener

	mu   sync.Mutex // guards what follows
	open map[[32]byte]int
}

func (l *proofListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &proofConn{Conn: c, l: l}, nil
}

// admit counts a connection with a proof; one executor cannot take all of the server's
// file descriptors.
func (l *proofListener) admit(proof [32]byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[proof] >= proofConns {
		return false
	}
	l.open[proof]++
	return true
}

func (l *proofListener) release(proof [32]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[proof]--; l.open[proof] == 0 {
		delete(l.open, proof)
	}
}

// proofConn is a connection that reads its proof before anything else. An http.Server
// reads a connection in one goroutine at a time, and handlers run after a read.
type proofConn struct {
	net.Conn
	l    *proofListener
	once sync.Once
	err  error  // of the proof line
	rest []byte // read together with the line

	mu       sync.Mutex // guards what follows: Close and SetReadDeadline come from anywhere
	deadline time.Time
	proof    [32]byte
	admitted bool
	closed   bool
}

func (c *proofConn) Read(p []byte) (int, error) {
	c.once.Do(c.readProof)
	switch {
	case c.err != nil:
		return 0, c.err
	case len(c.rest) > 0:
		n := copy(p, c.rest)
		c.rest = c.rest[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// readProof takes the line off the connection. io.EOF is the error of every connection
// that is not proven: the server then closes it without an answer.
func (c *proofConn) readProof() {
	c.err = io.EOF
	limit := time.Now().Add(proofTime)
	c.mu.Lock()
	before := c.deadline
	if !before.IsZero() && before.Before(limit) {
		limit = before
	}
	_ = c.Conn.SetReadDeadline(limit)
	c.mu.Unlock()
	line, rest, ok := readLine(c.Conn, len(proofPrefix)+maxProof+1)
	proof, named := bytes.CutPrefix(line, []byte(proofPrefix))
	if !ok || !named || len(proof) == 0 {
		return
	}
	sum := sha256.Sum256(proof)
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.Conn.SetReadDeadline(c.deadline)
	if c.closed || !c.l.admit(sum) {
		return
	}
	c.proof, c.admitted, c.rest, c.err = sum, true, rest, nil
}

// readLine reads up to limit bytes until a line break and returns what came after it.
func readLine(r io.Reader, limit int) (line, rest []byte, ok bool) {
	buf := make([]byte, 0, 4096)
	for len(buf) < cap(buf) {
		n, err := r.Read(buf[len(buf):cap(buf)])
		from := len(buf)
		buf = buf[:from+n]
		if i := bytes.IndexByte(buf[from:], '\n'); i >= 0 {
			i += from
			return buf[:i], buf[i+1:], i < limit
		}
		if err != nil || len(buf) >= limit {
			return nil, nil, false
		}
	}
	return nil, nil, false
}

func (c *proofConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	return c.Conn.SetReadDeadline(t)
}

func (c *proofConn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	return c.Conn.SetDeadline(t)
}

func (c *proofConn) Close() error {
	c.mu.Lock()
	if c.admitted && !c.closed {
		c.l.release(c.proof)
	}
	c.closed = true
	c.mu.Unlock()
	return c.Conn.Close()
}

type proofKey struct{}

// ConnContext puts a connection of ListenProof into the context of its requests.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, proofKey{}, c)
}

// proofOf returns the hash of the proof that the request's connection began with.
func proofOf(ctx context.Context) (proof [32]byte, ok bool) {
	c, _ := ctx.Value(proofKey{}).(*proofConn)
	if c == nil {
		return proof, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.proof, c.admitted
}
