package keeper_test

import (
	"net"
	"os"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/attachment/keeper"
)

// The identity of a server is who listens on its socket. A pid that is not that one,
// such as a launcher's, is refused; without one the socket names it.
func TestTheSocketNamesTheServer(t *testing.T) {
	b := newBench(t)
	server, kill := serve(t)
	launcher, _ := process(t)
	_, err := b.open(served{launcher, server.path}, 0, nil)
	if thole.CodeOf(err) != thole.CodeConflict || !strings.Contains(err.Error(), "does not serve") {
		t.Fatalf("a process that does not listen there: %v", err)
	}
	a := b.must(b.open(served{0, server.path}, 0, nil))
	if a.Process.PID != server.pid {
		t.Fatalf("process %d, want %d", a.Process.PID, server.pid)
	}
	if err := keeper.Serves(&a, server.pid); err != nil {
		t.Error(err)
	}
	for _, peer := range []int{0, launcher} {
		if keeper.Serves(&a, peer) == nil {
			t.Errorf("process %d was taken for the server", peer)
		}
	}

	// Started again on the same socket it is another server, in a higher epoch; while
	// a delivery is under way to the old one it is refused.
	again, _ := serveAt(t, server.path)
	if err := keeper.Serves(&a, again.pid); err == nil {
		t.Error("a server that took the socket over was taken for the old one")
	}
	b.tracked = true
	if _, err := b.open(served{0, server.path}, 0, nil); thole.CodeOf(err) != thole.CodeConflict {
		t.Errorf("another server while a delivery is under way: %v", err)
	}
	b.tracked = false
	next := b.must(b.open(served{0, server.path}, 0, nil))
	if next.Epoch != a.Epoch+1 || next.Process.PID != again.pid {
		t.Errorf("epoch %d, process %d", next.Epoch, next.Process.PID)
	}
	b.state(a.ID, attachment.Retired)
	kill()
	b.state(next.ID, attachment.Live)
}

// TCP names nobody: the process is the one that was named, if it holds the socket.
func TestTCPServerMustHoldItsSocket(t *testing.T) {
	b := newBench(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ws := func(o *keeper.Open) { o.Address = "ws://" + l.Addr().String() }
	other, _ := process(t)
	if _, err := b.open(served{pid: other}, 0, ws); thole.CodeOf(err) != thole.CodeConflict {
		t.Fatalf("a process that does not listen there: %v", err)
	}
	a := b.must(b.open(served{pid: os.Getpid()}, 0, ws))
	if err := keeper.Serves(&a, 0); err != nil || a.Process.PID != os.Getpid() {
		t.Fatal(a.Process, err)
	}
	l.Close()
	if keeper.Serves(&a, 0) == nil {
		t.Error("a process that listens no more was taken for the server")
	}
	for _, address := range []string{"ws://192.0.2.1:80", "wss://127.0.0.1:80", "ws://localhost:80"} {
		if _, err := b.open(served{pid: os.Getpid()}, 0, func(o *keeper.Open) {
			o.Address, o.Thread = address, thole.ThreadID("01a1dd87-43ed-7176-ad96-f0dfb0acb3e3")
		}); thole.CodeOf(err) != thole.CodeUnsupported {
			t.Errorf("%s: %v", address, err)
		}
	}
}
