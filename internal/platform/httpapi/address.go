package httpapi

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// peerAddressHeader has the client's address where another server passed a request on. From
// anybody else it counts for nothing.
const peerAddressHeader = "Thole-Address"

// address is where a request comes from, for the audit chain and the throttle of logins. A
// proxy that the configuration names is believed in what it says of who connects to it; anybody
// else can write the same header.
func (s *Server) address(r *http.Request) string {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	from := at.Addr().Unmap()
	if fromPeer(r.Context()) {
		if said, err := netip.ParseAddr(r.Header.Get(peerAddressHeader)); err == nil {
			return said.Unmap().WithZone("").String()
		}
		return from.String()
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && s.trusts(from); i-- {
		said, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break // an address that no proxy wrote
		}
		from = said.Unmap().WithZone("")
	}
	return from.String()
}

func (s *Server) trusts(proxy netip.Addr) bool {
	return slices.ContainsFunc(s.cfg.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(proxy) })
}
