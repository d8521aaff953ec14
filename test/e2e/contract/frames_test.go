package contract

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/tholehq/thole/test/e2e/home"
)

// peakMiB is the most memory that a process had resident so far.
func peakMiB(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmHWM:" {
			n, err := strconv.Atoi(f[1])
			if err != nil {
				t.Fatal(err)
			}
			return n >> 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

// A frame beyond the limit is refused at its header: nothing of it is kept,
// whatever the client goes on to send, in one frame or in several.
func TestFramesBeyondTheLimitAreNotBuffered(t *testing.T) {
	h := home.New(t)
	h.Up()
	cmd := h.Command("app-server", "--listen", "ws://127.0.0.1:0", "--ws-auth", "none")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	addr = strings.TrimSpace(addr)
	header := func(first byte, size uint64) []byte {
		b := binary.BigEndian.AppendUint64([]byte{first, 0x80 | 127}, size)
		return append(b, 0, 0, 0, 0) // masked with nothing
	}
	before := peakMiB(t, cmd.Process.Pid)
	for range 3 {
		var raw net.Conn
		client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, a string) (c net.Conn, err error) {
			c, err = new(net.Dialer).DialContext(ctx, network, a)
			raw = c
			return c, err
		}}}
		c, _, err := websocket.Dial(t.Context(), addr, &websocket.DialOptions{HTTPClient: client})
		if err != nil {
			t.Fatal(err)
		}
		closed := make(chan error, 1)
		go func() { _, _, err := c.Read(context.Background()); closed <- err }()
		_ = raw.SetWriteDeadline(time.Now().Add(60 * time.Second))
		_, err = raw.Write(header(0x81, 200<<20))
		for piece := make([]byte, 1<<20); err == nil; { // until the server hangs up
			_, err = raw.Write(piece)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, io.ErrShortWrite) {
			t.Fatal(err)
		}
		if err := <-closed; err == nil {
			t.Error("the server answered a frame beyond its limit")
		}
		_ = c.CloseNow()
	}
	if grew := peakMiB(t, cmd.Process.Pid) - before; grew > 24 {
		t.Errorf("refusing three frames took %d MiB of memory", grew)
	}
}
