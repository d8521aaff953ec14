// Package transport holds what the wires of our servers share: listen addresses,
// who may connect, and the refusal to open a port to the world without a proof of
// identity. The wires themselves are its subpackages.
package transport

import (
	"net"
	"net/netip"
	"strings"

	"github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/transport/unix"
)

// Scheme is how a server is reached.
type Scheme string

const (
	Stdio Scheme = "stdio"
	Unix  Scheme = "unix"
	WS    Scheme = "ws"
	Off   Scheme = "off"
)

// Address is a parsed --listen value.
type Address struct {
	Scheme Scheme
	TCP    netip.AddrPort // for WS
	Path   string         // for Unix; empty means the server's default
}

func (a Address) String() string {
	switch a.Scheme {
	case Unix:
		return "unix://" + a.Path
	case WS:
		return "ws://" + a.TCP.String()
	case Stdio:
		return "stdio://"
	}
	return string(a.Scheme)
}

// ParseListen reads ws://IP:PORT, unix://PATH, unix://, stdio://, stdio or off.
// Host names are refused: what they resolve to may change from loopback to not.
func ParseListen(s string) (Address, error) {
	bad := func(why string) (Address, error) {
		return Address{}, thole.Errorf(thole.CodeInvalid, "listen address %q: %s", s, why).
			WithHint("use ws://IP:PORT, unix://PATH or stdio://")
	}
	switch {
	case s == "stdio" || s == "stdio://":
		return Address{Scheme: Stdio}, nil
	case s == "off":
		return Address{Scheme: Off}, nil
	case strings.HasPrefix(s, "unix://"):
		return Address{Scheme: Unix, Path: strings.TrimPrefix(s, "unix://")}, nil
	case strings.HasPrefix(s, "ws://"):
		ap, err := netip.ParseAddrPort(strings.TrimSuffix(strings.TrimPrefix(s, "ws://"), "/"))
		if err != nil {
			return bad("not a literal IP and port")
		}
		return Address{Scheme: WS, TCP: ap}, nil
	}
	return bad("unknown scheme")
}

// Listen opens a ws or unix address after Auth.Permit. The caller closes it.
func Listen(a Address, auth *Auth) (net.Listener, error) {
	if err := auth.Permit(a); err != nil {
		return nil, err
	}
	switch a.Scheme {
	case Unix:
		return unix.Listen(a.Path)
	case WS:
		l, err := net.Listen("tcp", a.TCP.String())
		if err != nil {
			return nil, thole.Errorf(thole.CodeUnavailable, "listen on %s: %w", a, err).
				WithHint("the port may be in use; port 0 lets the system choose")
		}
		return l, nil
	}
	return nil, thole.Errorf(thole.CodeInvalid, "%s is not a listening address", a)
}
