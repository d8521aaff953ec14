package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// stream is an open way to a target.
type stream struct {
	net.Conn
	early   []byte   // bytes of the target that came with an upstream's answer
	via     *url.URL // the upstream, if Conn ends there and it is to be given whole HTTP requests
	address string   // what was dialled
}

// open decides about a target and connects to it. Plain HTTP is distinguished because
// an upstream is given whole requests there; otherwise the stream begins at the target.
func (p *Proxy) open(ctx context.Context, t target, plainHTTP bool) (*stream, error) {
	ctx, cancel := context.WithTimeout(ctx, 45*time.Second)
	defer cancel()
	if r := p.rules.byName(t); r != nil {
		return nil, r
	}
	via, err := p.upstream(t, plainHTTP)
	if err != nil {
		return nil, err
	}
	addrs, err := p.check(ctx, t, via != nil)
	if err != nil {
		return nil, err
	}
	if via != nil {
		return p.dialVia(ctx, via, t, plainHTTP)
	}
	for _, a := range addrs[:min(len(addrs), 4)] {
		// The address that was checked is dialled, never the name: a second lookup could answer differently.
		address := netip.AddrPortFrom(a, t.port).String()
		var conn net.Conn
		if conn, err = p.c.Dial(ctx, "tcp", address); err == nil {
			return &stream{Conn: conn, address: address}, nil
		}
	}
	return nil, fmt.Errorf("connect to %s: %w", t, err)
}

// check resolves t and refuses it if any of its addresses is refused. With an upstream
// a name that this machine cannot resolve passes, unless it is one of a local network.
func (p *Proxy) check(ctx context.Context, t target, viaUpstream bool) ([]netip.Addr, error) {
	addrs := []netip.Addr{t.addr}
	if !t.addr.IsValid() {
		var err error
		addrs, err = p.c.Resolve(ctx, t.host)
		switch {
		case err == nil && len(addrs) == 0:
			err = errors.New("no addresses")
			fallthrough
		case err != nil:
			if viaUpstream && (p.rules.named(t) || !localName(t.host)) {
				return nil, nil
			}
			return nil, fmt.Errorf("resolve %s: %w", t.host, err)
		}
	}
	own := p.c.Own()
	if len(own) == 0 { // every machine has one: they could not be listed, for want of a descriptor perhaps
		return nil, errors.New("the addresses of this machine are not known, and this may be one of them; try again")
	}
	for i, a := range addrs {
		if r := p.rules.byAddress(t, a, own); r != nil {
			return nil, r
		}
		addrs[i] = a.Unmap()
	}
	return addrs, nil
}

// localName reports names that mean nothing on the public network: an upstream
// could only take them for something of its own network.
func localName(host string) bool {
	for _, suffix := range []string{".localhost", ".local", ".internal", ".home.arpa", ".localdomain", ".lan", ".intranet", ".corp"} {
		if strings.HasSuffix(host, suffix) {
			return true
		}
	}
	return !strings.Contains(host, ".")
}
