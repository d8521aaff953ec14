//go:build linux

package execserver

import (
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// chunkSize is the most one notification carries. Encoded it stays below the
// connection's pooled buffers, and far below what clients buffer out of order.
const chunkSize = 45 << 10

// pipeSize is the buffer of a busy pipe.
const pipeSize = 1 << 20

var chunks = sync.Pool{New: func() any { return new([chunkSize]byte) }}

// outStream reads one output descriptor. It holds no buffer while the process is
// silent, and takes all that is there before it sends.
type outStream struct {
	p    *process
	kind stream
	file *os.File
	raw  syscall.RawConn

	busy    sync.Mutex // held while reading and sending
	ended   bool       // guarded by busy
	grown   bool       // guarded by busy: the pipe has its large buffer
	aborted atomic.Bool
}

func newOutStream(p *process, kind stream, file *os.File) (*outStream, error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &outStream{p: p, kind: kind, file: file, raw: raw}, nil
}

// run reads until the end of the stream and then closes it. Only run closes:
// Close waits for a reader, so no one else may while holding a lock.
func (s *outStream) run() {
	defer s.file.Close()
	if s.p.ptmx != nil { // the terminal also carries stdin and the hang-up
		defer func() { <-s.p.gone }()
	}
	for {
		var buf *[chunkSize]byte
		n, end := 0, false
		err := s.raw.Read(func(fd uintptr) bool {
			s.busy.Lock()
			if s.ended {
				end = true
			} else {
				buf = chunks.Get().(*[chunkSize]byte)
				n, end = fill(int(fd), buf[:])
				s.grow(int(fd), n)
			}
			if n > 0 || end {
				return true // busy stays held until the bytes are sent
			}
			chunks.Put(buf)
			buf = nil
			s.busy.Unlock()
			return false
		})
		if err != nil { // aborted while waiting: busy is not held
			s.busy.Lock()
			end = true
		}
		if n > 0 && !s.aborted.Load() {
			s.p.output(s.kind, buf[:n])
		}
		if buf != nil {
			chunks.Put(buf)
		}
		if end {
			s.finish()
		}
		s.busy.Unlock()
		if end {
			return
		}
	}
}

// grow gives a busy pipe a large buffer, so that writer and reader change places
// less often. The kernel may refuse; then it stays as it is.
func (s *outStream) grow(fd, n int) {
	if n == chunkSize && !s.grown && s.kind != terminal {
		s.grown = true
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, pipeSize)
	}
}

// drain takes what is readable right now, so that output written before an exit
// is numbered before it. A stream that is blocked in sending is left alone, and a
// descendant that goes on writing does not hold the exit up.
func (s *outStream) drain() {
	if !s.busy.TryLock() {
		return
	}
	defer s.busy.Unlock()
	if s.ended || s.aborted.Load() {
		return
	}
	buf := chunks.Get().(*[chunkSize]byte)
	defer chunks.Put(buf)
	end := false
	for range pipeSize/chunkSize + 1 {
		n := 0
		if s.raw.Control(func(fd uintptr) { n, end = fill(int(fd), buf[:]) }) != nil {
			return
		}
		if n > 0 {
			s.p.output(s.kind, buf[:n])
		}
		if end || n < len(buf) {
			break
		}
	}
	if end {
		s.finish()
	}
}

// finish is called with busy held.
func (s *outStream) finish() {
	if s.ended {
		return
	}
	s.ended = true
	s.wake()
	s.p.streamEnded()
}

// abort ends the stream without reading on, even if a descendant holds it open.
func (s *outStream) abort() {
	s.aborted.Store(true)
	s.wake()
}

// wake ends a wait for input.
func (s *outStream) wake() { _ = s.file.SetReadDeadline(past) }

// fill reads until the descriptor would block, the buffer is full or the stream
// ends. A terminal gives 4 KiB at a time and EIO at its end.
func fill(fd int, buf []byte) (n int, end bool) {
	for n < len(buf) {
		m, err := unix.Read(fd, buf[n:])
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			return n, false
		case err != nil || m <= 0:
			return n, true
		default:
			n += m
		}
	}
	return n, false
}
