package executord

import (
	"io"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/tholehq/thole/internal/box"
	"github.com/tholehq/thole/internal/provider"
)

// A box has no network but its own loopback. A model on the machine's loopback is
// on the same port of the box's: connections to it are taken over here and go
// to exactly that port.

// forwardDial bounds a connection to a port of the machine.
const forwardDial = 10 * time.Second

// loopbackURL finds endpoints on this machine in settings of any format.
var loopbackURL = regexp.MustCompile(`(?i)\bhttps?://(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?`)

// modelPorts are the ports of the machine's loopback that a grant names as endpoints.
// What the server grants counts, never a file that an agent can write.
func modelPorts(g provider.Grant) (ports []uint16) {
	find := func(text string) {
		for _, match := range loopbackURL.FindAllString(text, -1) {
			u, err := url.Parse(match)
			if err != nil {
				continue
			}
			n, err := strconv.ParseUint(u.Port(), 10, 16)
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
	return ports
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
