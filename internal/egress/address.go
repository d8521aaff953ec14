package egress

import (
	"net/netip"
	"strings"
)

// special is what an address is that is not a public one.
type special struct {
	is    string // what the address is: "a loopback address"
	never bool   // no setting makes it reachable
}

func prefixes(list string) (out []netip.Prefix) {
	for _, s := range strings.Fields(list) {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// ranges are searched in order, so that an address that hands out credentials of
// the machine is found before the wider range around it.
var ranges = []struct {
	special
	within []netip.Prefix
}{
	{special{"a metadata address", true}, prefixes("169.254.169.0/24 169.254.170.0/24 168.63.129.16/32 100.100.100.200/32 192.0.0.192/32 fd00:ec2::/32 fd20:ce::/32")},
	{special{"a link-local address", true}, prefixes("169.254.0.0/16 fe80::/10")},
	{special{"a loopback address", false}, prefixes("127.0.0.0/8 ::1/128 0.0.0.0/8 ::/128")},
	{special{"a private address", false}, prefixes("10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 fc00::/7 fec0::/10")},
	{special{"a multicast address", false}, prefixes("224.0.0.0/4 ff00::/8")},
	{special{"a reserved address", false}, prefixes("192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 240.0.0.0/4 2001::/23 2001:db8::/32 3fff::/20")},
}

var (
	global    = netip.MustParsePrefix("2000::/3")
	sixToFour = netip.MustParsePrefix("2002::/16")
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
	nat64Own  = netip.MustParsePrefix("64:ff9b:1::/48")
	compat    = netip.MustParsePrefix("::/96")
)

// classify returns what a is if it is not a public address. IPv6 is public only in
// 2000::/3; an IPv4 address inside an IPv6 one counts as itself.
func classify(a netip.Addr) (special, bool) {
	if a.Zone() != "" {
		return special{"an address with a zone", true}, true
	}
	a = a.Unmap()
	for _, r := range ranges {
		for _, p := range r.within {
			if p.Contains(a) {
				return r.special, true
			}
		}
	}
	if a.Is4() {
		return special{}, false
	}
	b := a.As16()
	switch {
	case nat64.Contains(a):
		return classify(netip.AddrFrom4([4]byte(b[12:16])))
	case sixToFour.Contains(a):
		return embedded(b[2:6])
	case nat64Own.Contains(a), compat.Contains(a):
		return embedded(b[12:16])
	case !global.Contains(a):
		return special{"a reserved address", false}, true
	}
	return special{}, false
}

// embedded classifies an address of a retired transition mechanism: never public,
// and whatever the IPv4 address inside is.
func embedded(b []byte) (special, bool) {
	if s, ok := classify(netip.AddrFrom4([4]byte(b))); ok {
		return s, true
	}
	return special{"a reserved address", false}, true
}
