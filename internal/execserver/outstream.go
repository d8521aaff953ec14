//go:build linux

package execserver

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

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

	busy    holder // held while reading and sending
	ended   bool   // guarded by busy
	grown   bool   // guarded by busy: the pipe has its large buffer
	aborted atomic.Bool

	pace pace // of run alone
}

// holder is a lock that can be waited for with an end.
type holder chan struct{}

func (h holder) lock()   { h <- struct{}{} }
func (h holder) unlock() { <-h }

// lockFor reports whether it got the lock in time.
func (h holder) lockFor(d time.Duration) bool {
	select {
	case h <- struct{}{}:
		return true
	default:
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case h <- struct{}{}:
		return true
	case <-timer.C:
		return false
	}
}

func newOutStream(p *process, kind stream, file *os.File) (*outStream, error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &outStream{p: p, kind: kind, file: file, raw: raw, busy: make(holder, 1)}, nil
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
			s.busy.lock()
			if s.ended {
				end = true
			} else {
				s.p.ses.held.sending <- struct{}{}
				buf = chunks.Get().(*[chunkSize]byte)
				n, end = s.kind.fill(int(fd), buf[:])
				s.grow(int(fd), n == chunkSize || s.pace.steady())
			}
			if n > 0 || end {
				return true // busy stays held until the bytes are sent
			}
			if buf != nil {
				chunks.Put(buf)
				<-s.p.ses.held.sending
				buf = nil
			}
			s.busy.unlock()
			return false
		})
		if err != nil { // aborted while waiting: busy is not held
			s.busy.lock()
			end = true
		}
		if n > 0 && !s.aborted.Load() {
			s.p.output(s.kind, buf[:n])
		}
		if buf != nil {
			chunks.Put(buf)
			<-s.p.ses.held.sending
		}
		if end {
			s.finish()
		}
		s.busy.unlock()
		if end {
			return
		}
		if s.kind != terminal && s.pace.took(n) {
			time.Sleep(gatherFor)
		}
	}
}

// A writer of small pieces that keeps writing wakes the reader for each of them, and both
// together get less done than either could. After steadyBursts reads in a row that were less than
// steadyApart apart, what comes in gatherFor is sent as one. The exit of the process waits
// for none of it: drain reads meanwhile.
const (
	steadyBursts = 8
	steadyApart  = 4 * time.Millisecond
	gatherFor    = 500 * time.Microsecond
)

// pace counts reads that follow each other closely.
type pace struct {
	last  time.Time
	count int
}

func (p *pace) steady() bool { return p.count >= steadyBursts }

// took says after a read of n bytes whether to wait before the next one.
func (p *pace) took(n int) bool {
	now := time.Now()
	if now.Sub(p.last) > steadyApart {
		p.count = 0
	}
	p.last = now
	p.count++
	return p.steady() && n < chunkSize/4
}

// grow gives a busy pipe a large buffer, so that writer and reader change places
// less often. The kernel may refuse; then it stays as it is.
func (s *outStream) grow(fd int, busy bool) {
	if busy && !s.grown && s.kind != terminal {
		s.grown = true
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, pipeSize)
	}
}

// drainWait is how long an exit waits for a reader that has output in its hands.
const drainWait = 20 * time.Millisecond

// drain takes what is readable right now, so that output written before an exit
// is numbered before it. A stream that is blocked in sending is left alone after drainWait,
// and a descendant that goes on writing does not hold the exit up.
func (s *outStream) drain() {
	if !s.busy.lockFor(drainWait) {
		return
	}
	defer s.busy.unlock()
	if s.ended || s.aborted.Load() {
		return
	}
	buf := chunks.Get().(*[chunkSize]byte)
	defer chunks.Put(buf)
	end := false
	for range pipeSize/chunkSize + 1 {
		n := 0
		if s.raw.Control(func(fd uintptr) { n, end = s.kind.fill(int(fd), buf[:]) }) != nil {
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
func (s stream) fill(fd int, buf []byte) (n int, end bool) {
	read := unix.Read
	if s == terminal {
		read = readTerminal
	}
	for n < len(buf) {
		m, err := read(fd, buf[n:])
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			return n, false
		case err != nil || m <= 0:
			return n, true
		default:
			n += m
		}
	}
	return n, false
}

// readTerminal reads without offering the processor to other goroutines. A read of an empty
// terminal sleeps for the moment in which a worker of the kernel brings the next 4 KiB, although the
// descriptor does not block; Go would take that for a long wait and change threads at every piece.
func readTerminal(fd int, buf []byte) (int, error) {
	n, _, no := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)))
	if no != 0 {
		return 0, no
	}
	return int(n), nil
}
