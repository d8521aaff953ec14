package executord

import (
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/tholehq/thole/internal/box"
)

// A box has no network but its own loopback. A model on the machine's loopback is
// on the same port of the box's: the proxy takes connections to it over, by the
// policy, and leads them to exactly that port.

// onLoopback is the port of a model that is on the machine's loopback.
func onLoopback(model string) (uint16, bool) {
	host, port, err := net.SplitHostPort(model)
	if err != nil {
		return 0, false
	}
	if a, err := netip.ParseAddr(host); !strings.EqualFold(host, "localhost") && (err != nil || !a.Unmap().IsLoopback()) {
		return 0, false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return uint16(n), err == nil && n > 0
}

// forward serves a port of the box's loopback until the box ends.
func (b *boxes) forward(in *box.Box, port uint16, to string) error {
	ln, err := in.Listen(port)
	if err != nil {
		return err
	}
	go func() { <-in.Done(); ln.Close() }()
	go func() { _ = b.proxy.Pass(ln, to) }()
	return nil
}
