//go:build linux

package executorclient

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/testkit/memory"
)

const hostileEnv = "THOLE_TEST_HOSTILE_EXECUTORD"

// The hostile executord is a process of its own, so that only what the client holds
// is measured.
func TestMain(m *testing.M) {
	if canary := os.Getenv(hostileEnv); canary != "" {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(err)
		}
		fmt.Fprintln(os.Stdout, "http://"+ln.Addr().String())
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // ends with the test
			os.Exit(0)
		}()
		panic(http.Serve(ln, hostile(canary)))
	}
	os.Exit(m.Run())
}

// hostile answers by the bearer token, which says how.
func hostile(canary string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			return
		}
		after, _ := strconv.Atoi(r.URL.Query().Get("after"))
		line := func(cursor int) []byte {
			return fmt.Appendf(nil, `{"cursor":%d,"event":{"id":"e%d","kind":"note.reported","time":"2026-01-01T00:00:00Z"}}`+"\n", cursor, cursor)
		}
		junk := bytes.Repeat([]byte("a"), 64<<10)
		switch strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") {
		case "endless line":
			for _, err := w.Write([]byte(`{"cursor":1,"event":{"text":"`)); err == nil; _, err = w.Write(junk) {
			}
		case "endless answer":
			for _, err := w.Write([]byte(`{"boot":"`)); err == nil; _, err = w.Write(junk) {
			}
		case "deep answer":
			for _, err := w.Write([]byte(`{"boot":`)); err == nil; _, err = w.Write(bytes.Repeat([]byte("["), 64<<10)) {
			}
		case "many events":
			out := bufio.NewWriterSize(w, 64<<10)
			for n := after + 1; n <= 10_000_000; n++ {
				if _, err := out.Write(line(n)); err != nil {
					return
				}
			}
		case "future cursor":
			_, _ = w.Write(line(1 << 40))
		case "cursor twice":
			_, _ = w.Write(append(line(1), line(1)...))
		case "redirect":
			http.Redirect(w, r, canary, http.StatusTemporaryRedirect)
		case "huge headers":
			for i := range 300 {
				w.Header().Set("X-"+strconv.Itoa(i), string(junk[:4<<10]))
			}
			_, _ = w.Write([]byte("{}"))
		case "drip":
			for _, err := w.Write([]byte(`{"boot":"`)); err == nil; _, err = w.Write([]byte("a")) {
				_ = http.NewResponseController(w).Flush()
				time.Sleep(10 * time.Millisecond) // a slow peer, which nothing waits for
			}
		case "wrong ids":
			_, _ = w.Write([]byte(`{"id":"another","for":"turn","thread":"thread","provider":"p","state":"running","cursor":0,"acked":0,"started":"2026-01-01T00:00:00Z"}`))
		}
	})
}

// Whatever an executor answers, the owner gets an error that says what is wrong, follows nobody
// elsewhere and holds at most 64 MiB more.
func TestAHostileExecutord(t *testing.T) {
	var visits atomic.Int64
	canary := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
	defer canary.Close()
	server := exec.Command(os.Args[0])
	server.Env = append(os.Environ(), hostileEnv+"="+canary.URL)
	in, err := server.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close(); _ = server.Wait() }()
	base, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}

	status := func(c *Client) error { _, err := c.Status(t.Context()); return err }
	seen := 0
	events := func(c *Client) error {
		seen = 0
		return c.Events(t.Context(), "run", 0, func(b []wire.LogEvent) error { seen += len(b); return nil })
	}
	for name, try := range map[string]struct {
		do     func(*Client) error
		beyond bool
	}{
		"endless line": {events, true}, "endless answer": {status, true}, "deep answer": {status, true}, "many events": {events, true}, "future cursor": {events, true},
		"cursor twice": {events, true}, "redirect": {status, false}, "huge headers": {status, false}, "drip": {status, false},
		"wrong ids": {func(c *Client) error {
			_, err := c.Run(t.Context(), wire.RunRequest{For: "turn", Thread: "thread"})
			return err
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			debug.FreeOSMemory()
			before := memory.Peak(t, true)
			c := Dial(strings.TrimSpace(base), name)
			defer c.Close()
			if name == "drip" {
				c.soon = 200 * time.Millisecond
			}
			err := try.do(c)
			if err == nil || try.beyond != errors.Is(err, ErrBeyond) {
				t.Errorf("the client says %v", err)
			}
			if grew := memory.Peak(t, false) - before; grew > 64<<10 {
				t.Errorf("the client took %d MiB", grew>>10)
			} else {
				t.Logf("%d MiB, %.160v", grew>>10, err)
			}
			if seen > MaxEvents {
				t.Errorf("%d events were taken", seen)
			}
		})
	}
	if visits.Load() > 0 {
		t.Error("a redirect was followed")
	}
}
