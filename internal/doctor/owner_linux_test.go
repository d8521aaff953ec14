package doctor

import (
	"net"
	"os"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/daemon"
)

// The port of the server that runs is no trouble; that of another program is.
func TestPortOfTheOwner(t *testing.T) {
	home, err := os.MkdirTemp("", "d") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if f := checkPort(home, ln.Addr().String()); f.OK || !strings.Contains(f.Problem, "in use") {
		t.Errorf("of nobody: %+v", f)
	}
	owner, err := net.Listen("unix", daemon.Socket(home))
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	if f := checkPort(home, ln.Addr().String()); !f.OK || !strings.Contains(f.Found, ln.Addr().String()) {
		t.Errorf("of the owner: %+v", f)
	}
	if found := listener(home, "127.0.0.1:1"); found != 0 {
		t.Errorf("another port: %d", found)
	}
}
