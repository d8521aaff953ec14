package gateway

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestProofLine: a connection without a proof is closed without a word.
func TestProofLine(t *testing.T) {
	r := newRig(t, Anthropic)
	request := "HEAD / HTTP/1.1\r\nHost: gw\r\nConnection: close\r\n\r\n"
	say := func(text string) string {
		c, err := net.Dial("unix", r.socket)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = io.WriteString(c, text)
		_ = c.(*net.UnixConn).CloseWrite()
		back, _ := io.ReadAll(c)
		return string(back)
	}
	if got := say(ProofLine("x") + request); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
		t.Error(got)
	}
	for _, line := range []string{
		"", "\n", "THOLE-GATEWAY \n", "THOLE-GATEWAY", "thole-gateway x\n", " THOLE-GATEWAY x\n", "GET / HTTP/1.1\r\n", "THOLE-GATEWAY\tx\n",
		"THOLE-GATEWAY " + strings.Repeat("x", maxProof+1) + "\n", strings.Repeat("x", 1<<20),
	} {
		if got := say(line + request); got != "" {
			t.Errorf("%.60q: %q", line, got)
		}
	}
	if got := say(ProofLine(strings.Repeat("x", maxProof)) + request); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
		t.Error(got)
	}
}

// TestSlowProof: connections that send their proof in bits, or never, hold up nobody.
func TestSlowProof(t *testing.T) {
	r := newRig(t, Anthropic)
	var slow []net.Conn
	for range 50 {
		c, err := net.Dial("unix", r.socket)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = io.WriteString(c, "THOLE-GATE")
		slow = append(slow, c)
	}
	if got := ask(r.client(t), http.MethodGet, "http://gw/healthz", ""); got.status != 200 {
		t.Errorf("%+v", got)
	}
	for _, bit := range []string{"WAY", " x", "\n", "HEAD / HTTP/1.1\r\n", "Host: gw\r\n\r\n"} {
		_, _ = io.WriteString(slow[0], bit)
	}
	resp, err := http.ReadResponse(bufio.NewReader(slow[0]), &http.Request{Method: http.MethodHead})
	if err != nil || resp.StatusCode != 200 {
		t.Errorf("%v, %v", resp, err)
	}
}

// pipes is a listener of connections in memory, which a fake clock covers.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func TestProofDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := make(pipes, 1)
		proofs := ListenProof(l)
		near, far := net.Pipe()
		l <- far
		c, err := proofs.Accept()
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		go func() { _, _ = near.Write([]byte("THOLE-")) }()
		if _, err := c.Read(make([]byte, 10)); err != io.EOF || time.Since(began) != proofTime {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		_ = c.Close()
		_ = near.Close()
	})
}

// TestConnectionsOfOneProof: one executor cannot take all connections; what it closes is
// free again.
func TestConnectionsOfOneProof(t *testing.T) {
	l := make(pipes, 1)
	proofs := ListenProof(l)
	open := func(proof string) (net.Conn, error) {
		near, far := net.Pipe()
		l <- far
		c, err := proofs.Accept()
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = io.WriteString(near, ProofLine(proof)+"x")
			_, _ = io.Copy(io.Discard, near)
		}()
		_, err = c.Read(make([]byte, 1))
		return c, err
	}
	var all []net.Conn
	for range proofConns {
		c, err := open("a")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	over, err := open("a")
	if err != io.EOF {
		t.Errorf("%v", err)
	}
	_ = over.Close()
	other, err := open("b")
	if err != nil {
		t.Errorf("%v", err)
	}
	_ = other.Close()
	_, _ = all[0].Close(), all[0].Close()
	if all[0], err = open("a"); err != nil {
		t.Errorf("%v", err)
	}
	for _, c := range all {
		_ = c.Close()
	}
	if n := len(proofs.(*proofListener).open); n != 0 {
		t.Errorf("%d proofs are still counted", n)
	}
}
