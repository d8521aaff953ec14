package keeper

import (
	"context"
	"net"
	"net/netip"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/peercred"
	"github.com/tholehq/thole/internal/procid"
)

// identify names a running process. Without a boot id it could not be distinguished from
// its successor, so nothing is attached on such a system.
func identify(pid int) (procid.Identity, error) {
	id := procid.Of(pid)
	if id.Start == "" || id.Boot == "" {
		return procid.Identity{}, thole.Errorf(thole.CodeUnavailable, "process %d cannot be identified", pid)
	}
	return id, nil
}

// serverOf is the process that serves an address. On a unix socket the kernel names
// it: a launcher that started it, or a pid that a user noted, is not it. TCP
// names nobody, so the process has to be named and is proven to hold the listening
// socket, which can be seen on this machine only.
func serverOf(ctx context.Context, address string, named int) (procid.Identity, error) {
	path, ok := strings.CutPrefix(address, "unix://")
	if !ok {
		if named == 0 {
			return procid.Identity{}, thole.Errorf(thole.CodeInvalid, "%s does not report its process", address).WithHint("name it with --server-pid, or let the server listen on unix://PATH")
		}
		if err := listens(named, address); err != nil {
			return procid.Identity{}, err
		}
		return identify(named)
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return procid.Identity{}, thole.Errorf(thole.CodeUnavailable, "no app-server answers at %s: %w", address, err)
	}
	defer c.Close()
	cred, err := peercred.SameUser(c)
	switch {
	case err != nil:
		return procid.Identity{}, thole.Errorf(thole.CodeForbidden, "the app-server at %s: %w", address, err)
	case cred.PID == 0:
		return procid.Identity{}, thole.Errorf(thole.CodeUnsupported, "the system does not report the process at %s", address)
	case named != 0 && named != cred.PID:
		return procid.Identity{}, thole.Errorf(thole.CodeConflict, "process %d does not serve %s: process %d does", named, address, cred.PID).
			WithHint("leave --server-pid out; a launcher such as npm's codex is not the server")
	}
	return identify(cred.PID)
}

func listens(pid int, address string) error {
	at, err := netip.ParseAddrPort(strings.TrimSuffix(strings.TrimPrefix(address, "ws://"), "/"))
	if err != nil || !strings.HasPrefix(address, "ws://") || !at.Addr().Unmap().IsLoopback() {
		return thole.Errorf(thole.CodeUnsupported, "the server process of %s cannot be identified", address).WithHint("use unix://PATH, or ws:// with a literal loopback address")
	}
	if err := peercred.Listens(pid, at); err != nil {
		return thole.Errorf(thole.CodeConflict, "%w", err).WithHint("name the process that listens on %s; a launcher such as npm's codex does not", at)
	}
	return nil
}

// Serves proves that a connection to the attachment's address leads to its own
// process. peer is whom the transport names, 0: nobody.
func Serves(a *attachment.Attachment, peer int) error {
	if err := a.Process.Alive(); err != nil {
		return err
	}
	if !strings.HasPrefix(a.Address, "unix://") {
		return listens(a.Process.PID, a.Address)
	}
	if peer != a.Process.PID {
		return thole.Errorf(thole.CodeConflict, "the app-server at %s is process %d, not process %s: it was started again", a.Address, peer, a.Process).
			WithHint("open the session again")
	}
	return nil
}
