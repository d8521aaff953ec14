package egress

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// relay copies both ways between a client, some of whose bytes were read early, and a target until both have ended, one
// failed, or no byte moved for idle. An end in one direction is passed on as an end of that
// direction only: a client that has sent everything still reads its answer.
//
// Copying is left to io.Copy, which moves bytes inside the kernel between sockets; the
// read deadline interrupts it every tick, to count and to look for idleness.
func (p *Proxy) relay(a net.Conn, early []byte, s *stream, f *flow) {
	b := s.Conn
	var moved atomic.Int64 // when a byte was last seen to move
	moved.Store(time.Now().UnixNano())
	first := func(dst net.Conn, early []byte, count func(int64)) {
		if len(early) > 0 { // a failure shows again when the rest is copied
			_ = dst.SetWriteDeadline(time.Now().Add(p.c.Idle))
			n, _ := dst.Write(early)
			count(int64(n))
		}
	}
	both := func() { _ = a.Close(); _ = b.Close() }
	pump := func(dst, src net.Conn, count func(int64)) {
		for {
			now := time.Now()
			_ = src.SetReadDeadline(now.Add(p.tick))
			_ = dst.SetWriteDeadline(now.Add(p.c.Idle + p.tick))
			n, err := io.Copy(dst, src)
			if n > 0 {
				count(n)
				moved.Store(time.Now().UnixNano())
			}
			switch {
			case err == nil:
				if half, ok := dst.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
					both()
				}
				return
			case !errors.Is(err, os.ErrDeadlineExceeded), time.Since(time.Unix(0, moved.Load())) >= p.c.Idle:
				both()
				return
			}
		}
	}
	var back sync.WaitGroup
	back.Go(func() { first(a, s.early, f.received); pump(a, b, f.received) })
	first(b, early, f.sent)
	pump(b, a, f.sent)
	back.Wait()
	both()
}
