package egress

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// SOCKS5 as in RFC 1928, without authentication and with CONNECT only.
const socksVersion = 5

const (
	socksOK          = 0
	socksFailed      = 1
	socksForbidden   = 2
	socksUnreachable = 4
	socksRefused     = 5
	socksCommand     = 7
	socksAddressType = 8
)

// serveSOCKS serves a connection whose first byte, the version, was read. It reads
// no byte beyond a message, so that the rest of the connection can be copied as it is.
func (p *Proxy) serveSOCKS(c *client) {
	t, code, err := readSOCKS(c.Conn)
	if code == socksForbidden { // a target in a form that is refused
		p.reject("socks5", t, err)
	}
	if code != socksOK {
		_ = replySOCKS(c, code)
	}
	if err != nil {
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	s, f, err := p.begin(p.ctx, "socks5", t)
	if err != nil {
		_ = replySOCKS(c, socksCode(err))
		return
	}
	defer f.end()
	defer s.Close()
	if replySOCKS(c, socksOK) != nil {
		return
	}
	p.relay(c.Conn, nil, s, f)
}

// readSOCKS answers the greeting and reads the request. The code is that of the reply,
// socksOK if the target is to be opened. An error with socksOK ends the connection without a reply.
func readSOCKS(c io.ReadWriter) (target, byte, error) {
	var b [256]byte
	read := func(n int) error { _, err := io.ReadFull(c, b[:n]); return err }
	if err := read(1); err != nil {
		return target{}, socksOK, err
	}
	methods := int(b[0])
	if err := read(methods); err != nil {
		return target{}, socksOK, err
	}
	if !bytes.Contains(b[:methods], []byte{0}) {
		_, _ = c.Write([]byte{socksVersion, 0xff})
		return target{}, socksOK, errors.New("the client wants to authenticate")
	}
	if _, err := c.Write([]byte{socksVersion, 0}); err != nil {
		return target{}, socksOK, err
	}
	if err := read(4); err != nil {
		return target{}, socksOK, err
	}
	version, command, kind := b[0], b[1], b[3]
	if version != socksVersion {
		return target{}, socksFailed, errors.New("invalid version")
	}
	var length int
	switch kind {
	case 1:
		length = 4
	case 4:
		length = 16
	case 3:
		if err := read(1); err != nil {
			return target{}, socksOK, err
		}
		length = int(b[0])
	default:
		return target{}, socksAddressType, errors.New("unknown type of address")
	}
	if err := read(length); err != nil {
		return target{}, socksOK, err
	}
	host := string(b[:length])
	if kind != 3 {
		a, _ := netip.AddrFromSlice(b[:length])
		host = a.String()
	}
	if err := read(2); err != nil {
		return target{}, socksOK, err
	}
	if command != 1 {
		return target{}, socksCommand, errors.New("only CONNECT is supported")
	}
	port := binary.BigEndian.Uint16(b[:2])
	if port == 0 {
		return target{host: clip(host)}, socksForbidden, errors.New("invalid port 0")
	}
	t, err := newTarget(host, port)
	if err != nil {
		return target{host: clip(host), port: port}, socksForbidden, err
	}
	return t, socksOK, nil
}

func replySOCKS(c io.Writer, code byte) error {
	_, err := c.Write([]byte{socksVersion, code, 0, 1, 0, 0, 0, 0, 0, 0})
	return err
}

func socksCode(err error) byte {
	var refusal *Refusal
	var dns *net.DNSError
	switch {
	case errors.As(err, &refusal):
		return socksForbidden
	case errors.Is(err, syscall.ECONNREFUSED):
		return socksRefused
	case errors.As(err, &dns), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return socksUnreachable
	}
	return socksFailed
}
