package process

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pipeReader is the reading end of a pipe that can be left alone: while it naps,
// what is written to the pipe does not wake this process. The runtime's poller
// would be woken by each write, so it does not watch the pipe but an epoll instance
// that does, and that can be told to look away. That also watches a timer, which
// wakes this process once a nap; those of the runtime know whole milliseconds only.
type pipeReader struct {
	*os.File                 // the epoll instance, for deadlines
	wait     syscall.RawConn // of it
	watched  bool            // the reader's own: the pipe is watched

	mu    sync.Mutex // guards what follows
	pipe  int        // never blocks; -1 when it is closed
	timer int
}

func newPipe() (r *pipeReader, w *os.File, err error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	epoll, err1 := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	timer, err2 := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	err = errors.Join(err1, err2, unix.SetNonblock(ends[0], true), unix.SetNonblock(epoll, true),
		unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, ends[0], &unix.EpollEvent{}),
		unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, timer, &unix.EpollEvent{Events: unix.EPOLLIN}))
	r, w = &pipeReader{File: os.NewFile(uintptr(epoll), "epoll"), pipe: ends[0], timer: timer}, os.NewFile(uintptr(ends[1]), "|1")
	if err == nil {
		r.wait, err = r.SyscallConn()
	}
	if err != nil {
		r.Close()
		w.Close()
		return nil, nil, os.NewSyscallError("epoll", err)
	}
	return r, w, nil
}

// Read ends with io.EOF also when it was closed or its deadline has passed. The end
// closes it: nothing else would, for a caller who only reads.
func (r *pipeReader) Read(b []byte) (n int, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	if r.wait.Read(func(epoll uintptr) bool {
		var empty bool
		n, empty, err = r.take(&r.pipe, b)
		if empty && !r.watched {
			r.watch(epoll, unix.EPOLLIN)
			n, empty, err = r.take(&r.pipe, b) // something may have come before it was watched
		}
		return !empty
	}) != nil || n == 0 && err == nil {
		err = io.EOF
	}
	if err != nil {
		r.Close()
	}
	return n, err
}

// take reads what there is, and reports if that is nothing yet. It never blocks, so the scheduler need not know of it:
// what that starts to do around a call costs more than the call.
func (r *pipeReader) take(fd *int, b []byte) (n int, empty bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for *fd >= 0 {
		n, _, code := unix.RawSyscall(unix.SYS_READ, uintptr(*fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		switch code {
		case 0:
			return int(n), false, nil
		case unix.EAGAIN:
			return 0, true, nil
		case unix.EINTR:
		default:
			return 0, false, code
		}
	}
	return 0, false, io.EOF
}

// nap sleeps while the pipe fills, or until it is closed.
func (r *pipeReader) nap(d time.Duration) {
	var rings [8]byte
	set := false
	_ = r.wait.Read(func(epoll uintptr) bool {
		if !set {
			set = true
			if r.watched {
				r.watch(epoll, 0)
			}
			r.ring(d)
		}
		_, empty, _ := r.take(&r.timer, rings[:])
		return !empty
	})
}

func (r *pipeReader) ring(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	_, _, _ = unix.RawSyscall6(unix.SYS_TIMERFD_SETTIME, uintptr(r.timer), 0, uintptr(unsafe.Pointer(&at)), 0, 0, 0)
}

func (r *pipeReader) watch(epoll uintptr, events uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watched = events != 0
	_ = unix.EpollCtl(int(epoll), unix.EPOLL_CTL_MOD, r.pipe, &unix.EpollEvent{Events: events})
}

// Close ends a Read that waits.
func (r *pipeReader) Close() error {
	err := r.File.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, fd := range []*int{&r.pipe, &r.timer} {
		if *fd >= 0 {
			err = errors.Join(err, unix.Close(*fd))
			*fd = -1
		}
	}
	return err
}
