package cli

import (
	"context"
	"net"
	"os"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon"
)

// A home whose owner does not answer is not a home without one: thole up begins no
// hand-over then. One that nobody owns is free, also with a dead owner's socket.
func TestASecondUpIsRefusedWhenItCannotBeKnown(t *testing.T) {
	dir, err := os.MkdirTemp("", "up") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := refuseSecond(t.Context(), dir); err != nil {
		t.Fatalf("a home that nobody owns: %v", err)
	}
	owner, err := daemon.Own(t.Context(), dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := refuseSecond(soon, dir); err == nil {
		t.Error("an owner that does not answer yet was taken for none")
	}
	if err := owner.Release(); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("unix", daemon.Socket(dir))
	if err != nil {
		t.Fatal(err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	ln.Close()
	if err := refuseSecond(t.Context(), dir); err != nil {
		t.Errorf("the socket of a dead owner: %v (%s)", err, thole.CodeOf(err))
	}
}
