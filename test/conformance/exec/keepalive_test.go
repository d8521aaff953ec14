//go:build linux

package exec_test

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/execserver"
)

// rawSocket is a WebSocket without manners: it answers no ping by default.
type rawSocket struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

const (
	opText = 1
	opPing = 9
	opPong = 10
)

func dialRaw(t *testing.T, url string) *rawSocket {
	t.Helper()
	addr := strings.TrimPrefix(url, "ws://")
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	s := &rawSocket{t, c, bufio.NewReader(c)}
	_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: "+addr+"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(s.r, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("upgrade: %v, %v", resp, err)
	}
	s.send(opText, `{"id":1,"method":"initialize","params":{"clientName":"probe"}}`)
	s.next(opText)
	s.send(opText, `{"method":"initialized","params":{}}`)
	return s
}

// send writes one short frame, masked with zeros.
func (s *rawSocket) send(op byte, text string) {
	s.t.Helper()
	if _, err := s.conn.Write(append([]byte{0x80 | op, 0x80 | byte(len(text)), 0, 0, 0, 0}, text...)); err != nil {
		s.t.Fatal(err)
	}
}

// next returns the payload of the next frame of a kind.
func (s *rawSocket) next(op byte) string {
	s.t.Helper()
	_ = s.conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
	for {
		head := make([]byte, 2)
		_, err := io.ReadFull(s.r, head)
		size := uint64(head[1] & 0x7f)
		if size == 126 && err == nil {
			long := make([]byte, 2)
			_, err = io.ReadFull(s.r, long)
			size = uint64(binary.BigEndian.Uint16(long))
		}
		payload := make([]byte, size)
		if err == nil {
			_, err = io.ReadFull(s.r, payload)
		}
		if err != nil {
			s.t.Fatalf("no frame of kind %d: %v", op, err)
		}
		if head[0]&0x0f == op {
			return string(payload)
		}
	}
}

// TestReplayKeepalive is recording 19: a ping every 30 s from the upgrade on, and
// a peer that never answers one stays connected. By default time runs faster.
func TestReplayKeepalive(t *testing.T) {
	pings := func(s *rawSocket, every time.Duration, began time.Time, pong bool) {
		for i := range 3 {
			payload := s.next(opPing)
			if due := time.Duration(i+1) * every; time.Since(began) < due {
				t.Errorf("ping %d after %v, recorded after %v", i+1, time.Since(began), due)
			}
			if pong {
				s.send(opPong, payload)
			}
		}
	}
	open := func(s *rawSocket) {
		s.send(opText, `{"id":2,"method":"environment/status"}`)
		if got := s.next(opText); !strings.Contains(got, `"ready"`) {
			t.Errorf("after the pings: %s", got)
		}
	}
	if os.Getenv("THOLE_SOAK") != "" {
		url, _ := serve(t, execserver.Config{})
		began := time.Now()
		deaf := dialRaw(t, url)
		pings(deaf, recordedPing, began, false)
		open(deaf)
		return
	}
	const every = 100 * time.Millisecond
	url, _ := servePinging(t, execserver.Config{}, every)
	began := time.Now()
	polite, deaf := dialRaw(t, url), dialRaw(t, url)
	pings(polite, every, began, true)
	open(polite)
	deaf.next(opPing)
	open(deaf)
}
