package box

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// dialTimeout bounds a connection to the box's own loopback, whose listener may
// accept nobody.
const dialTimeout = 10 * time.Second

// Init is the first process inside. It returns when its owner is gone, and all that
// is inside ends with it.
func Init() error {
	if err := unix.CloseRange(3, 1<<32-1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("keep descriptors: %w", err)
	}
	if os.Getpid() != 1 {
		return errors.New("only an executor starts this, as the first process of a sandbox")
	}
	// Nobody inside may look into this process or follow its descriptors.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("keep to itself: %w", err)
	}
	conn, err := socketOf(os.NewFile(Socket, "socket"))
	if err != nil {
		return fmt.Errorf("speak with the owner: %w", err)
	}
	debug.SetGCPercent(20) // it does little, and there is one for each executor
	keepThreads(threads)
	n := &first{conn: conn, children: map[int]uint64{}}
	// Heard, not ignored: what is ignored here would be in every program.
	others := make(chan os.Signal, 1)
	signal.Notify(others)
	dead := make(chan os.Signal, 1)
	signal.Notify(dead, unix.SIGCHLD)
	go func() {
		for range dead {
			n.reap()
		}
	}()
	self, err := unix.PidfdOpen(1, 0)
	if err != nil {
		return fmt.Errorf("name itself: %w", err)
	}
	if err := n.answer(answer{}, self); err != nil {
		return err
	}
	_ = unix.Close(self)
	if err := muteStdio(); err != nil {
		return err
	}
	for {
		var req request
		files, err := receive(conn, maxRequest, &req)
		if err != nil {
			return err // the owner is gone, or says what we do not know
		}
		n.serve(req, files)
	}
}

// threads are as many as the init needs at a time.
const threads = 6

// keepThreads makes threads that the runtime keeps. Programs may fill the box later,
// and a runtime that gets no thread when it needs one ends its program, here with all
// that is inside.
func keepThreads(n int) {
	var there sync.WaitGroup
	let := make(chan struct{})
	for range n {
		there.Add(1)
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			there.Done()
			<-let
		}()
	}
	there.Wait()
	close(let)
}

// muteStdio gives up what said why the box could not be made.
func muteStdio() error {
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	for fd := 0; err == nil && fd < 3; fd++ {
		err = unix.Dup2(null, fd)
	}
	return err
}

func socketOf(f *os.File) (*net.UnixConn, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, errors.New("descriptor is no unix socket")
	}
	return u, nil
}

type first struct {
	conn *net.UnixConn
	send sync.Mutex

	// mu is held from before a fork until the child was announced, so that no end of an
	// unknown one is collected.
	mu       sync.Mutex
	children map[int]uint64 // pid → id of the request
}

func (n *first) answer(a answer, files ...int) error {
	n.send.Lock()
	defer n.send.Unlock()
	return send(n.conn, a, files...)
}

func (n *first) serve(req request, files []*os.File) {
	done := func(err error, fds ...int) {
		a := answer{ID: req.ID}
		if err != nil && !errors.As(err, &a.Errno) {
			a.Errno = unix.EIO
		}
		_ = n.answer(a, fds...) // without an owner the loop ends
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}
	switch req.Op {
	case opSpawn:
		n.mu.Lock() // until it was announced: its end must not come first
		fd, err := n.spawn(req, files)
		if err != nil {
			done(err)
		} else {
			done(nil, fd)
		}
		n.mu.Unlock()
	case opListen:
		fd, err := listen(req.Port)
		if err != nil {
			done(err)
		} else {
			done(nil, fd)
		}
	case opOpen:
		fd, err := unix.Open(string(req.Path), unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			done(err)
		} else {
			done(nil, fd)
		}
	case opPty:
		master, slave, err := openPty()
		if err != nil {
			done(err)
		} else {
			done(nil, master, slave)
		}
	case opDial:
		go func() {
			fd, err := dial(req.Port)
			if err != nil {
				done(err)
			} else {
				done(nil, fd)
			}
		}()
	default:
		done(unix.ENOSYS)
	}
	closeAll(files)
}

// spawn starts a program and returns its pidfd. The caller holds mu.
func (n *first) spawn(req request, files []*os.File) (int, error) {
	if len(files) != 3 {
		return -1, unix.EBADF
	}
	session := req.Session || req.Terminal
	pidfd := -1
	attr := syscall.ProcAttr{
		Dir: string(req.Dir), Env: text(req.Env), Files: []uintptr{files[0].Fd(), files[1].Fd(), files[2].Fd()},
		Sys: &syscall.SysProcAttr{Setpgid: !session, Setsid: session, Setctty: req.Terminal, PidFD: &pidfd},
	}
	if req.Tag != 0 {
		var own unix.Rlimit
		if unix.Getrlimit(unix.RLIMIT_MSGQUEUE, &own) == nil && unix.Setrlimit(unix.RLIMIT_MSGQUEUE, &unix.Rlimit{Cur: min(req.Tag, own.Max), Max: own.Max}) == nil {
			defer func() { _ = unix.Setrlimit(unix.RLIMIT_MSGQUEUE, &own) }()
		}
	}
	pid, err := syscall.ForkExec(string(req.Path), text(req.Argv), &attr)
	if err != nil {
		return -1, err
	}
	if pidfd < 0 {
		if pidfd, err = unix.PidfdOpen(pid, 0); err != nil {
			_ = unix.Kill(pid, unix.SIGKILL)
			return -1, err
		}
	}
	unix.CloseOnExec(pidfd)
	n.children[pid] = req.ID
	return pidfd, nil
}

// reap collects all who have ended, orphans too, and reports those it was asked to
// start.
func (n *first) reap() {
	for {
		n.mu.Lock()
		var status unix.WaitStatus
		var used unix.Rusage
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, &used)
		id, known := n.children[pid]
		delete(n.children, pid)
		n.mu.Unlock()
		switch {
		case err == unix.EINTR:
		case err != nil || pid <= 0:
			return
		case known:
			_ = n.answer(answer{ID: id, Exited: true, Status: uint32(status), CPU: used.Utime.Nano() + used.Stime.Nano()})
		}
	}
}

func loopback(port uint16) *unix.SockaddrInet4 {
	return &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}}
}

func listen(port uint16) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err = unix.Bind(fd, loopback(port)); err == nil {
		err = unix.Listen(fd, 1024)
	}
	if err != nil {
		_ = unix.Close(fd)
	}
	return fd, err
}

// dial connects to what listens on the port, by IPv4 or else by IPv6: "localhost"
// is either to a program inside.
func dial(port uint16) (int, error) {
	fd, err := dialAt(unix.AF_INET, loopback(port))
	if errors.Is(err, unix.ECONNREFUSED) {
		if six, err := dialAt(unix.AF_INET6, &unix.SockaddrInet6{Port: int(port), Addr: [16]byte{15: 1}}); err == nil {
			return six, nil
		}
	}
	return fd, err
}

func dialAt(family int, at unix.Sockaddr) (int, error) {
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	if err = unix.Connect(fd, at); errors.Is(err, unix.EINPROGRESS) {
		err = connected(fd)
	}
	if err != nil {
		_ = unix.Close(fd)
	}
	return fd, err
}

func connected(fd int) error {
	for end := time.Now().Add(dialTimeout); ; {
		left := time.Until(end)
		if left <= 0 {
			return unix.ETIMEDOUT
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, int(left.Milliseconds())+1)
		if err == nil && n > 0 {
			errno, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
			if err == nil && errno != 0 {
				err = syscall.Errno(errno)
			}
			return err
		}
		if err != nil && err != unix.EINTR {
			return err
		}
	}
}

// openPty opens a terminal of the box's own devices.
func openPty() (master, slave int, err error) {
	master, err = unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, -1, err
	}
	number, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		slave, err = unix.Open("/dev/pts/"+strconv.Itoa(number), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		_ = unix.Close(master)
		return -1, -1, err
	}
	return master, slave, nil
}
