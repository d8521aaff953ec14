package box

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Box is a running sandbox. Safe for concurrent use.
type Box struct {
	conn *net.UnixConn
	init *os.File // pidfd

	sending sync.Mutex

	mu      sync.Mutex // guards what follows
	next    uint64
	pending map[uint64]*call
	running map[uint64]*Child
	cause   error // why it ended, once it has

	done chan struct{} // closed when nothing is left inside
}

// call is a request that was not answered yet.
type call struct {
	child *Child // of a spawn
	got   chan reply
}

type reply struct {
	answer
	files []*os.File
}

// Start makes a box and returns when its init answers.
func Start(ctx context.Context, cfg Config) (*Box, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("start a box: %w", err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "init")
	defer theirs.Close()
	conn, err := socketOf(os.NewFile(uintptr(fds[0]), "box"))
	if err != nil {
		return nil, fmt.Errorf("start a box: %w", err)
	}
	said := &complaint{}
	cmd := exec.Command(cfg.Path, cfg.Args...)
	cmd.Env, cmd.Dir, cmd.Stderr, cmd.ExtraFiles = cfg.Env, "/", said, append([]*os.File{theirs}, cfg.Files...)
	cmd.WaitDelay = time.Second
	if cmd.Env == nil {
		cmd.Env = []string{} // nothing is inherited
	}
	b := &Box{conn: conn, pending: map[uint64]*call{}, running: map[uint64]*Child{}, done: make(chan struct{})}
	started, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		// bubblewrap ends with the thread that started it, so that one stays.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if started <- err; err == nil {
			ended <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		conn.Close()
		return nil, fmt.Errorf("start a box: %w", err)
	}
	theirs.Close() // so that the end of theirs is seen
	stop := context.AfterFunc(ctx, func() { conn.SetReadDeadline(time.Unix(1, 0)) })
	err = b.greet()
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		_ = cmd.Process.Kill()
		if exit := <-ended; ctx.Err() != nil {
			err = context.Cause(ctx)
		} else if exit != nil {
			err = exit
		}
		if b.init != nil {
			b.init.Close()
		}
		return nil, fmt.Errorf("start a box: %w: %s", err, said)
	}
	go b.read()
	go func() {
		err := <-ended
		b.end(fmt.Errorf("%w: %v %s", ErrGone, err, said))
		close(b.done)
	}()
	return b, nil
}

func (b *Box) greet() error {
	var hello answer
	files, err := receive(b.conn, maxAnswer, &hello)
	if err != nil {
		return err
	}
	if len(files) != 1 || hello.ID != 0 {
		closeAll(files)
		return errors.New("not the greeting of an init")
	}
	b.init = files[0]
	_, err = pidOf(b.init)
	return err
}

// read takes what comes from inside until something comes that the init does
// not say.
func (b *Box) read() {
	for {
		var a answer
		files, err := receive(b.conn, maxAnswer, &a)
		if err == nil {
			err = b.take(a, files)
		}
		if err != nil {
			b.end(fmt.Errorf("%w: %w", ErrGone, err))
			return
		}
	}
}

func (b *Box) take(a answer, files []*os.File) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.Exited {
		child, ok := b.running[a.ID]
		if closeAll(files); !ok {
			return fmt.Errorf("the end of %d, which was not started", a.ID)
		}
		delete(b.running, a.ID)
		child.finish(Exit{Status: syscall.WaitStatus(a.Status), CPU: time.Duration(a.CPU)}, nil)
		return nil
	}
	waiting, ok := b.pending[a.ID]
	if !ok {
		closeAll(files)
		return fmt.Errorf("an answer to %d, which was not asked", a.ID)
	}
	if waiting.child != nil && a.Errno == 0 { // it is known before its end arrives
		if len(files) != 1 {
			closeAll(files)
			return errors.New("a program without its descriptor")
		}
		if err := waiting.child.begin(files[0]); err != nil {
			return err
		}
		b.running[a.ID], files = waiting.child, nil
	}
	delete(b.pending, a.ID) // not before: who waits must hear of the box's end
	waiting.got <- reply{a, files}
	return nil
}

// end gives up what waits, and kills what is inside.
func (b *Box) end(cause error) {
	b.mu.Lock()
	if b.cause != nil {
		b.mu.Unlock()
		return
	}
	b.cause = cause
	pending, running := b.pending, b.running
	b.pending, b.running = nil, nil
	b.mu.Unlock()
	b.kill()
	b.conn.Close()
	for _, c := range pending {
		close(c.got)
	}
	for _, c := range running {
		go func() {
			<-b.done // nothing of it is left then
			c.finish(Exit{}, cause)
		}()
	}
}

func (b *Box) kill() {
	_ = withFd(b.init, func(fd int) error { return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) })
}

// Done is closed when the box has ended and nothing is left inside.
func (b *Box) Done() <-chan struct{} { return b.done }

// Close ends everything inside and returns when nothing is left.
func (b *Box) Close() error {
	b.end(ErrGone)
	<-b.done
	return nil
}

// Pid is the init's, as it is seen here.
func (b *Box) Pid() int {
	pid, _ := pidOf(b.init)
	return pid
}

// ask makes one request and waits for its answer.
func (b *Box) ask(req request, child *Child, want int, files ...int) ([]*os.File, error) {
	c := &call{child: child, got: make(chan reply, 1)}
	b.mu.Lock()
	if b.cause != nil {
		b.mu.Unlock()
		return nil, b.cause
	}
	b.next++
	req.ID = b.next
	b.pending[req.ID] = c
	b.mu.Unlock()
	b.sending.Lock()
	err := send(b.conn, req, files...)
	b.sending.Unlock()
	if errors.Is(err, syscall.E2BIG) { // nothing was sent
		b.mu.Lock()
		delete(b.pending, req.ID)
		b.mu.Unlock()
		return nil, err
	}
	if err != nil {
		b.end(fmt.Errorf("%w: %w", ErrGone, err)) // half a request may be on its way
	}
	r, ok := <-c.got
	switch {
	case !ok:
		b.mu.Lock()
		defer b.mu.Unlock()
		return nil, b.cause
	case r.Errno != 0:
		closeAll(r.files)
		return nil, r.Errno
	case len(r.files) != want:
		closeAll(r.files)
		err := fmt.Errorf("%w: %d descriptors instead of %d", ErrGone, len(r.files), want)
		b.end(err)
		return nil, err
	}
	return r.files, nil
}

// Spawn starts a program inside. An error that says why it did not start is the
// kernel's.
func (b *Box) Spawn(c Command) (*Child, error) {
	var fds []int
	for _, f := range c.Files {
		if f == nil {
			return nil, errors.New("a program has three files")
		}
		fd := -1
		if err := withFd(f, func(n int) (err error) { fd, err = unix.FcntlInt(uintptr(n), unix.F_DUPFD_CLOEXEC, 3); return err }); err != nil {
			return nil, err
		}
		defer unix.Close(fd)
		if err := unix.SetNonblock(fd, false); err != nil { // as programs expect it
			return nil, err
		}
		fds = append(fds, fd)
	}
	child := &Child{done: make(chan struct{})}
	_, err := b.ask(request{Op: opSpawn, Path: []byte(c.Path), Argv: words(c.Argv), Env: words(c.Env), Dir: []byte(c.Dir), Session: c.Session, Terminal: c.Terminal, Tag: c.Tag}, child, 0, fds...)
	if err != nil {
		return nil, err
	}
	return child, nil
}

// Listen binds a port of the box's own loopback; 0 is any.
func (b *Box) Listen(port uint16) (net.Listener, error) {
	files, err := b.ask(request{Op: opListen, Port: port}, nil, 1)
	if err != nil {
		return nil, fmt.Errorf("listen on port %d of the box: %w", port, err)
	}
	defer closeAll(files)
	return net.FileListener(files[0])
}

// Dial connects to a port of the box's own loopback.
func (b *Box) Dial(ctx context.Context, port uint16) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	got := make(chan result, 1)
	go func() {
		files, err := b.ask(request{Op: opDial, Port: port}, nil, 1)
		var r result
		if r.err = err; err == nil {
			r.conn, r.err = net.FileConn(files[0])
			closeAll(files)
		}
		if ctx.Err() != nil && r.conn != nil { // nobody waits for it
			r.conn.Close()
			r = result{err: context.Cause(ctx)}
		}
		got <- r
	}()
	select {
	case r := <-got:
		if r.err != nil {
			return nil, fmt.Errorf("dial port %d of the box: %w", port, r.err)
		}
		return r.conn, nil
	case <-ctx.Done():
		go func() {
			if r := <-got; r.conn != nil {
				r.conn.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// Stat says what a path of the inside leads to, without following a link at its end.
func (b *Box) Stat(path string) (os.FileInfo, error) {
	files, err := b.ask(request{Op: opOpen, Path: []byte(path)}, nil, 1)
	if err != nil {
		return nil, &os.PathError{Op: "stat in the box", Path: path, Err: err}
	}
	defer closeAll(files)
	return files[0].Stat()
}

// Pty opens a terminal inside. Its master is pollable.
func (b *Box) Pty() (master, slave *os.File, err error) {
	files, err := b.ask(request{Op: opPty}, nil, 2)
	if err != nil {
		return nil, nil, fmt.Errorf("open a terminal in the box: %w", err)
	}
	defer files[0].Close()
	fd := -1
	err = withFd(files[0], func(n int) (err error) {
		if fd, err = unix.FcntlInt(uintptr(n), unix.F_DUPFD_CLOEXEC, 3); err == nil {
			err = unix.SetNonblock(fd, true)
		}
		return err
	})
	if err != nil {
		files[1].Close()
		return nil, nil, err
	}
	return os.NewFile(uintptr(fd), "ptmx"), files[1], nil
}

// Child is a program inside.
type Child struct {
	pid   int
	pidfd *os.File
	done  chan struct{}
	exit  Exit
	err   error
}

func (c *Child) begin(pidfd *os.File) (err error) {
	c.pidfd = pidfd
	if c.pid, err = pidOf(pidfd); err != nil {
		pidfd.Close()
	}
	c.pid = max(c.pid, 0)
	return err
}

func (c *Child) finish(exit Exit, err error) {
	c.exit, c.err = exit, err
	close(c.done)
	c.pidfd.Close()
}

// Pid is the program's, as it is seen here, 0 of one that ended at once. Once it has
// ended, the number may be another's.
func (c *Child) Pid() int { return c.pid }

// Done is closed when the program has ended.
func (c *Child) Done() <-chan struct{} { return c.done }

// Wait waits for the end. An error says that it is not known how it came.
func (c *Child) Wait() (Exit, error) {
	<-c.done
	return c.exit, c.err
}

// Signal reaches the very program that was started.
func (c *Child) Signal(sig syscall.Signal) error {
	select {
	case <-c.done:
		return os.ErrProcessDone
	default:
	}
	err := withFd(c.pidfd, func(fd int) error { return unix.PidfdSendSignal(fd, sig, nil, 0) })
	select {
	case <-c.done: // meanwhile, and its descriptor is closed
		return os.ErrProcessDone
	default:
	}
	if errors.Is(err, unix.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// pidOf is the process of a pidfd as this process sees it. One that it cannot see is
// not below it.
func pidOf(pidfd *os.File) (pid int, err error) {
	var info []byte
	err = withFd(pidfd, func(fd int) (err error) {
		info, err = os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(fd))
		return err
	})
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(info)) {
		if v, ok := strings.CutPrefix(line, "Pid:"); ok {
			if pid, err := strconv.Atoi(strings.TrimSpace(v)); err == nil && (pid > 1 || pid == -1) {
				return pid, nil // -1 has ended already
			}
		}
	}
	return 0, errors.New("no descriptor of a process below this one")
}

// withFd uses a file's descriptor without making the file block.
func withFd(f *os.File, use func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var used error
	if err := raw.Control(func(fd uintptr) { used = use(int(fd)) }); err != nil {
		return err
	}
	return used
}

// complaint keeps the beginning of what bubblewrap says.
type complaint struct {
	mu   sync.Mutex
	kept bytes.Buffer
}

const maxComplaint = 4 << 10

func (c *complaint) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept.Write(b[:min(len(b), maxComplaint-c.kept.Len())])
	return len(b), nil
}

func (c *complaint) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.TrimSpace(c.kept.String())
}
