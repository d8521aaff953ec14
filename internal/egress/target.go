package egress

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// target is where a connection is to go, in the one form that rules compare.
type target struct {
	host string     // lower case, without a trailing dot; an address in its canonical form
	addr netip.Addr // set if host is an address
	port uint16
	lead bool // the name of Proxy.Lead, which nobody can ask for
}

func (t target) String() string { return net.JoinHostPort(t.host, strconv.Itoa(int(t.port))) }

// parseTarget reads host:port or [v6]:port.
func parseTarget(hostport string) (target, error) {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return target{}, fmt.Errorf("invalid target %s: must be HOST:PORT", clip(hostport))
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || strings.TrimLeft(port, "0123456789") != "" {
		return target{}, fmt.Errorf("invalid target %s: must be HOST:PORT with a port of 1 to 65535", clip(hostport))
	}
	return newTarget(host, uint16(n))
}

// newTarget accepts an address in its usual form or a name. The decimal, octal, hex
// and shortened forms of IPv4 addresses are refused: some resolvers take
// 0x7f.1 for 127.0.0.1, and no honest client writes it.
func newTarget(host string, port uint16) (target, error) {
	if a, err := netip.ParseAddr(strings.TrimSuffix(host, ".")); err == nil {
		if a.Zone() != "" {
			return target{}, fmt.Errorf("invalid target %s: addresses with a zone are refused", clip(host))
		}
		a = a.Unmap()
		return target{host: a.String(), addr: a, port: port}, nil
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if len(name) == 0 || len(name) > 253 {
		return target{}, fmt.Errorf("invalid target %s: not a host name", clip(host))
	}
	var last string
	for last = range strings.SplitSeq(name, ".") {
		if len(last) == 0 || len(last) > 63 || !plain(last) {
			return target{}, fmt.Errorf("invalid target %s: not a host name", clip(host))
		}
	}
	if strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
		return target{}, fmt.Errorf("invalid target %s: addresses are accepted in their usual form only", clip(host))
	}
	return target{host: name, port: port}, nil
}

func plain(label string) bool {
	for _, c := range []byte(label) {
		if c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// clip quotes what an agent wrote, within bounds.
func clip(s string) string {
	if len(s) > 100 {
		s = s[:100]
	}
	return strconv.Quote(s)
}
