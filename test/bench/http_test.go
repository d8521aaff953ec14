//go:build linux

package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/thread"
)

// TestFirstChunk posts a message on a warm thread and waits for the first text.
func TestFirstChunk(t *testing.T) {
	s := newHTTPSide(t)
	id := s.create()
	s.chat(id, "sim: say warm")
	n := 20
	if Long() {
		n = 60
	}
	median := func(run func(thole.ThreadID, string) time.Duration) func() float64 {
		return func() float64 {
			all := make([]float64, n)
			for i := range all {
				all[i] = float64(run(id, "sim: say hello").Microseconds())
			}
			return middle(all)
		}
	}
	Case{
		Name: "http: first text after POST /api/chat on a warm thread", Unit: "µs",
		Peer: "the same turn through the contract, turn/start to the first delta", Promise: 1.3, Loose: 3,
		Ours: median(s.chat), Theirs: median(s.contract()),
		Note: "Both are clients of one server on one thread, in turns: HTTP over loopback, the contract over a unix socket. Each round is the median of its turns. " + pathNote,
	}.Run(t)
}

// TestEventReaders follows one busy thread with many readers. They live in
// another process, so that only the server's side is counted.
func TestEventReaders(t *testing.T) {
	readers, seconds := 200, 2
	if Long() {
		readers, seconds = 1000, 5
	}
	s := newHTTPSide(t)
	id := s.create()
	child := exec.Command(os.Args[0], "-test.run=TestEventReaderChild", "-test.v")
	child.Env = []string{"THOLE_READERS=" + strconv.Itoa(readers), "THOLE_URL=" + s.URL + "/sessions/" + string(id) + "/events", "THOLE_TOKEN=" + s.Token}
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "READY") {
	}
	ctx := context.Background()
	// A hundred pieces of text a second, longer than all rounds take.
	turn, err := s.Threads.StartTurn(ctx, thole.LocalActor, thread.StartTurn{Thread: id, Input: thole.Text("sim: slow 10ms 4 ;; say " + strings.Repeat("text", 100*600))})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Threads.Interrupt(ctx, thole.LocalActor, id, turn.ID) }()
	Case{
		Name: "http: " + strconv.Itoa(readers) + " readers of 100 events a second, CPU of the server", Unit: "cores",
		Peer: "one core", Promise: 0.35, Loose: 1,
		Ours: func() float64 {
			from, began := cpu(), time.Now()
			time.Sleep(time.Duration(seconds) * time.Second)
			return float64(cpu()-from) / float64(time.Since(began))
		},
		Theirs: func() float64 { return 1 },
		Note:   "Readers are in a process of their own. The server's share includes the scripted agent, its executord and the store. Half of it is in the system calls of the 16,000 writes a second.",
	}.Run(t)
}

// TestEventReaderChild is the readers' process.
func TestEventReaderChild(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("THOLE_READERS"))
	if n == 0 {
		t.Skip("started by TestEventReaders")
	}
	u, err := url.Parse(os.Getenv("THOLE_URL"))
	if err != nil {
		t.Fatal(err)
	}
	var ready, all sync.WaitGroup
	for range n {
		ready.Add(1)
		all.Go(func() {
			conn, err := net.Dial("tcp", u.Host)
			if err != nil {
				t.Error(err)
				ready.Done()
				return
			}
			defer func() { _ = conn.Close() }()
			_, _ = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", u.Path, u.Host, os.Getenv("THOLE_TOKEN"))
			buf := make([]byte, 4096)
			_, _ = conn.Read(buf)
			ready.Done()
			_, _ = io.Copy(io.Discard, conn)
		})
	}
	ready.Wait()
	fmt.Println("READY")
	all.Wait()
}
