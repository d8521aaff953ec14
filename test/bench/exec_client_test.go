//go:build linux

package bench

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/internal/testkit/lab"
)

// execServer is a server process under measurement.
type execServer struct {
	url string
	pid int
}

func tholeServer(t testing.TB) []string {
	t.Helper()
	return []string{lab.Thole(t), "exec-server", "--ws-auth", "none"}
}

func codexServer(t testing.TB) []string { return []string{lab.Codex(t), "exec-server"} }

// launch starts a server and waits for its address.
func launch(t testing.TB, argv []string) execServer {
	t.Helper()
	url, pid := lab.Launch(t, argv...)
	return execServer{url: url, pid: pid}
}

// forgotten drops a program's file from the page cache. What the linker has just written
// lies there in large pieces, and a start maps each piece whole: up to a third more, by
// how the file came to be.
func forgotten(t testing.TB, argv []string) []string {
	t.Helper()
	f, err := os.Open(argv[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	return argv
}

// rss is the resident memory of a process in bytes.
func rss(t testing.TB, pid int) int {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	var kb int
	for line := range strings.SplitSeq(string(raw), "\n") {
		if strings.HasPrefix(line, "VmRSS:") {
			_, _ = fmt.Sscanf(line, "VmRSS: %d kB", &kb)
		}
	}
	return kb << 10
}

// probe is a client that decodes nothing it need not.
type probe struct {
	t   testing.TB
	ws  *websocket.Conn
	tcp *net.TCPConn
	ack bool // force TCP_QUICKACK, which hides the server's delays
	n   int
	buf []byte
}

func dialProbe(t testing.TB, url string, ack bool) *probe {
	t.Helper()
	p := &probe{t: t, ack: ack, buf: make([]byte, 0, 1<<20)}
	tr := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err == nil {
			p.tcp = c.(*net.TCPConn)
		}
		return c, err
	}}
	c, _, err := websocket.Dial(context.Background(), url, &websocket.DialOptions{HTTPClient: &http.Client{Transport: tr}})
	if err != nil {
		t.Fatal(err)
	}
	c.SetReadLimit(128 << 20)
	p.ws = c
	t.Cleanup(func() { _ = c.CloseNow() })
	p.send(`{"id":0,"method":"initialize","params":{"clientName":"bench"}}`)
	p.next()
	p.send(`{"method":"initialized"}`)
	return p
}

func (p *probe) send(msg string) {
	if err := p.ws.Write(context.Background(), websocket.MessageText, []byte(msg)); err != nil {
		p.t.Error(err)
	}
	p.quick()
}

func (p *probe) quick() {
	if !p.ack {
		return
	}
	raw, err := p.tcp.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1) })
	}
}

// next returns the next message; it is valid until the one after.
func (p *probe) next() []byte {
	_, r, err := p.ws.Reader(context.Background())
	if err != nil {
		p.t.Error(err)
		return nil
	}
	b := p.buf[:0]
	for {
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err != nil {
			break
		}
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
	}
	p.buf = b
	p.quick()
	return b
}

// start begins a process and returns its id.
func (p *probe) start(argv string, tty bool) string {
	p.n++
	id := fmt.Sprintf("p%d", p.n)
	p.send(fmt.Sprintf(`{"id":%d,"method":"process/start","params":{"processId":"%s","argv":%s,"cwd":"file:///","env":{"PATH":"/usr/bin:/bin"},"tty":%v,"pipeStdin":false,"arg0":null}}`, p.n, id, argv, tty))
	return id
}

// oneShot runs a program from start to closed.
func (p *probe) oneShot(argv string) {
	p.start(argv, false)
	for {
		m := p.next()
		if m == nil || bytes.Contains(m, []byte(`"process/closed"`)) {
			return
		}
	}
}

// drain runs a program to closed and counts the encoded bytes of its output.
func (p *probe) drain(argv string, tty bool) (encoded int) {
	p.start(argv, tty)
	for {
		m := p.next()
		if m == nil || len(m) < 300 && bytes.Contains(m, []byte(`"process/closed"`)) {
			return encoded
		}
		encoded += len(m)
	}
}
