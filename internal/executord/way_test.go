package executord

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/egress"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/testkit/poll"
)

func testWay(t *testing.T) *way {
	t.Helper()
	dir, err := os.MkdirTemp("", "way") // short: it holds a socket
	if err != nil {
		t.Fatal(err)
	}
	w, err := newWay(filepath.Join(dir, "g.sock"), "proof", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
		os.RemoveAll(dir)
	})
	return w
}

// owner answers on the socket: each connection hears its own bytes once it has ended.
func owner(t *testing.T, socket string) (ln net.Listener) {
	t.Helper()
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				got, _ := io.ReadAll(conn)
				_, _ = conn.Write(got)
			}()
		}
	}()
	return ln
}

func talk(t *testing.T, place string) string {
	t.Helper()
	conn, err := net.Dial("tcp", place)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "question") // one that is refused shows it by its answer
	_ = conn.(*net.TCPConn).CloseWrite()
	got, _ := io.ReadAll(conn)
	return string(got)
}

const heard = wire.Gateway + "proof\nquestion"

// A connection that comes while the owner is away, before its first start or between two,
// is served by the next one.
func TestTheOwnerIsWaitedFor(t *testing.T) {
	w := testWay(t)
	place, err := w.place(false)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		answers := make(chan string, 3)
		for range cap(answers) {
			go func() { answers <- talk(t, place) }()
		}
		poll.Until(t, "connections that wait", func() bool { return len(w.waiting) == cap(answers) })
		ln := owner(t, w.socket)
		for range cap(answers) {
			if got := <-answers; got != heard {
				t.Errorf("heard %q", got)
			}
		}
		if got := talk(t, place); got != heard {
			t.Errorf("with the owner there: %q", got)
		}
		ln.(*net.UnixListener).SetUnlinkOnClose(false) // as a kill leaves it
		ln.Close()
		defer os.Remove(w.socket)
		if _, err := w.connect(t.Context()); !away(err) {
			t.Fatalf("nobody listens: %v", err)
		}
		if err := os.Remove(w.socket); err != nil {
			t.Fatal(err)
		}
	}
}

// Waiting is bounded, in time and in number, and ends with executord.
func TestWaitingIsBounded(t *testing.T) {
	w := testWay(t)
	w.waiting = make(chan struct{}, 1)
	w.patience = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() { _, err := w.dial(ctx); first <- err }()
	poll.Until(t, "one that waits", func() bool { return len(w.waiting) == 1 })
	if _, err := w.dial(t.Context()); err == nil || !strings.Contains(err.Error(), "too many") {
		t.Errorf("one more: %v", err)
	}
	cancel()
	if err := <-first; !away(err) {
		t.Errorf("after its end: %v", err)
	}
	w.patience = 20 * time.Millisecond
	if _, err := w.dial(t.Context()); !away(err) {
		t.Errorf("after its time: %v", err)
	}
}

// Policy none refuses the gateway too, and the owner hears nothing.
func TestNoneRefusesTheGateway(t *testing.T) {
	w := testWay(t)
	owner(t, w.socket)
	place, err := w.place(false)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.proxy.Narrow(egress.None, nil); err != nil {
		t.Fatal(err)
	}
	if got := talk(t, place); got != "" {
		t.Errorf("heard %q", got)
	}
}
