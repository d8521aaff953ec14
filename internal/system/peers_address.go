package system

import (
	"context"
	"net"
	"strconv"

	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/sqldb"
)

// reachedAt is the address of a listener that other servers get. One that listens on all
// addresses announces the one that it has on its way to the database, which all of them reach; of a
// database on the same machine another address than the machine's own, if it has one.
func reachedAt(ctx context.Context, ln net.Addr, store config.Store) (string, error) {
	tcp, ok := ln.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return ln.String(), nil
	}
	dsn, err := store.DSN()
	if err != nil {
		return "", err
	}
	at, err := sqldb.ServerOf(dsn)
	if err != nil {
		return "", err
	}
	ip := net.IPv4(127, 0, 0, 1)
	if at != "" {
		if way, err := new(net.Dialer).DialContext(ctx, "udp", at); err == nil { // nothing is sent
			ip = way.LocalAddr().(*net.UDPAddr).IP
			_ = way.Close()
		}
	}
	if ip.IsLoopback() {
		ip = outward(ip)
	}
	return net.JoinHostPort(ip.String(), strconv.Itoa(tcp.Port)), nil
}

// outward is an address of this machine that others may reach, or ip if it has none.
func outward(ip net.IP) net.IP {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return ip
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP
		}
	}
	return ip
}
