package executord

import (
	"io"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tholehq/thole/internal/box"
	"github.com/tholehq/thole/internal/egress"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/table"
)

// A box has no network but its own loopback. A model on the machine's loopback is
// on the same port of the box's: connections to it are taken over here and go
// to exactly that port.

// forwardDial bounds a connection to a port of the machine.
const forwardDial = 10 * time.Second

// addresses finds endpoints in settings of any format.
var addresses = regexp.MustCompile(`(?i)\bhttps?://(\[[0-9a-f:]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?`)

// endpoints are the models that a grant names, and those its provider uses without a
// name: ports of the machine's loopback, and other places as HOST:PORT. What the
// server grants counts, never a file that an agent can write.
func endpoints(g provider.Grant, providerName string) (ports []uint16, remote []string) {
	remote = slices.Clone(table.Of(providerName).Models)
	find := func(text string) {
		for _, match := range addresses.FindAllString(text, -1) {
			u, err := url.Parse(match)
			if err != nil {
				continue
			}
			port := u.Port()
			if port == "" {
				port = map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
			}
			if a, err := netip.ParseAddr(u.Hostname()); !strings.EqualFold(u.Hostname(), "localhost") && (err != nil || !a.IsLoopback()) {
				if target := net.JoinHostPort(u.Hostname(), port); egress.CheckTarget(target) == nil {
					remote = append(remote, target)
				}
				continue
			}
			n, err := strconv.ParseUint(port, 10, 16)
			if err == nil && n > 0 && !slices.Contains(ports, uint16(n)) {
				ports = append(ports, uint16(n))
			}
		}
	}
	for _, v := range g.Env {
		find(v)
	}
	for _, v := range g.Config {
		find(string(v))
	}
	slices.Sort(ports)
	return ports, remote
}

// forward serves a port of the box's loopback until the box ends.
func forward(b *box.Box, port uint16) error {
	ln, err := b.Listen(port)
	if err != nil {
		return err
	}
	go func() { <-b.Done(); ln.Close() }()
	go func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			go join(in, port)
		}
	}()
	return nil
}

func join(in net.Conn, port uint16) {
	defer in.Close()
	out, err := net.DialTimeout("tcp", net.JoinHostPort("localhost", strconv.Itoa(int(port))), forwardDial)
	if err != nil {
		return
	}
	defer out.Close()
	done := make(chan struct{}, 2)
	pass := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		if half, ok := to.(*net.TCPConn); ok {
			_ = half.CloseWrite()
		}
		done <- struct{}{}
	}
	go pass(out, in)
	go pass(in, out)
	<-done
	<-done
}
