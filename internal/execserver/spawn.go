//go:build linux

package execserver

import (
	"cmp"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/internal/box"
	children "github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/internal/sandbox"
)

// command is a start that has passed every check.
type command struct {
	path  string
	argv  []string
	env   []string
	dir   string
	tty   bool
	rows  uint16 // of the terminal
	cols  uint16
	stdin bool
	extra []*os.File // descriptors 3 and up, for the sandbox wrapper
	stays *sandbox.Stays
}

// spawn starts c as the leader of a session of its own and fills in p's
// descriptors. The child has nothing but descriptors 0 to 2 (and c.extra).
//
// The exit is awaited through a pollable descriptor, so a waiting process costs
// no thread.
func (p *process) spawn(c *command) (end func() unix.WaitStatus, err error) {
	var files []int
	var ours, theirs []*os.File
	fail := func(err error) (func() unix.WaitStatus, error) {
		for _, f := range append(ours, theirs...) {
			f.Close()
		}
		p.streams, p.stdin, p.ptmx = nil, nil, nil
		return nil, err
	}
	attr := &syscall.SysProcAttr{Setsid: true}
	var in *box.Box
	if p.ses.srv.cfg.Box != nil {
		if in, err = p.ses.srv.cfg.Box(); err != nil {
			return nil, err
		}
	}
	if c.tty {
		master, slave, err := children.OpenTerminal(in, cmp.Or(c.cols, 80), cmp.Or(c.rows, 24))
		if err != nil {
			return fail(err)
		}
		ours, theirs = append(ours, master), append(theirs, slave)
		s, err := newOutStream(p, terminal, master)
		if err != nil {
			return fail(err)
		}
		fd := int(slave.Fd())
		files = []int{fd, fd, fd}
		attr.Setctty = true
		p.gone = make(chan struct{})
		p.ptmx, p.stdin, p.streams = master, newStdinQueue(master, &p.ses.held.input), []*outStream{s}
	} else {
		in, err := p.openStdin(c, &ours, &theirs)
		if err != nil {
			return fail(err)
		}
		files = []int{in}
		for _, kind := range []stream{stdout, stderr} {
			r, w, err := pipe(true)
			if err != nil {
				return fail(err)
			}
			ours, theirs = append(ours, r), append(theirs, w)
			s, err := newOutStream(p, kind, r)
			if err != nil {
				return fail(err)
			}
			files = append(files, int(w.Fd()))
			p.streams = append(p.streams, s)
		}
		// A terminal's processes get SIGHUP when the server goes; others get this.
		attr.Pdeathsig = syscall.SIGTERM
	}
	if in != nil {
		by := map[int]*os.File{}
		for _, f := range theirs {
			by[int(f.Fd())] = f
		}
		child, err := in.Spawn(box.Command{Path: c.path, Argv: c.argv, Env: c.env, Dir: c.dir, Files: [3]*os.File{by[files[0]], by[files[1]], by[files[2]]}, Session: true, Terminal: c.tty})
		if err != nil {
			return fail(err)
		}
		p.begun(child.Pid(), c, theirs)
		return func() unix.WaitStatus { return p.ended(child) }, nil
	}
	sys := make([]uintptr, 0, 3+len(c.extra))
	for _, fd := range files {
		sys = append(sys, uintptr(fd))
	}
	for _, f := range c.extra {
		sys = append(sys, f.Fd())
	}
	pidfd := -1
	attr.PidFD = &pidfd
	// Pdeathsig fires when the forking thread ends; such threads are kept out of
	// the sandbox's use-once ones.
	forks <- struct{}{}
	runtime.LockOSThread()
	sandbox.MarkForkingThread()
	pid, err := syscall.ForkExec(c.path, c.argv, &syscall.ProcAttr{Dir: c.dir, Env: c.env, Files: sys, Sys: attr})
	runtime.UnlockOSThread()
	<-forks
	if err != nil {
		return fail(err)
	}
	p.begun(pid, c, theirs)
	_ = unix.SetNonblock(pidfd, true)
	f := os.NewFile(uintptr(pidfd), "pidfd")
	return func() unix.WaitStatus { return p.reap(f) }, nil
}

// forks bounds the threads that are held for a fork. All forks of a process wait for one
// lock; without the bound a thousand starts at once would hold a thread each, for good.
var forks = make(chan struct{}, 4)

func (p *process) begun(pid int, c *command, theirs []*os.File) {
	for _, f := range theirs {
		f.Close()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pid, p.tty, p.open = pid, c.tty, len(p.streams)
}

// ended waits for a process in a box, whose init has collected it.
func (p *process) ended(child *box.Child) unix.WaitStatus {
	exit, err := child.Wait()
	if err != nil {
		exit.Status = syscall.WaitStatus(unix.SIGKILL) // with its box
	}
	p.mu.Lock()
	p.reaped = true
	p.mu.Unlock()
	if p.pid > 0 && unix.Kill(-p.pid, 0) == nil {
		p.ses.leftover(p.pid)
	}
	return unix.WaitStatus(exit.Status)
}

// openStdin returns the child's stdin: the end of a pipe, or the null device.
func (p *process) openStdin(c *command, ours, theirs *[]*os.File) (int, error) {
	if !c.stdin {
		null, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return 0, err
		}
		*theirs = append(*theirs, os.NewFile(uintptr(null), os.DevNull))
		return null, nil
	}
	r, w, err := pipe(false)
	if err != nil {
		return 0, err
	}
	*ours, *theirs = append(*ours, w), append(*theirs, r)
	p.stdin = newStdinQueue(w, &p.ses.held.input)
	return int(r.Fd()), nil
}

// pipe makes a pipe whose one end, ours, is pollable and whose other end blocks,
// as programs expect.
func pipe(readOurs bool) (r, w *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, err
	}
	mine := fds[1]
	if readOurs {
		mine = fds[0]
	}
	_ = unix.SetNonblock(mine, true)
	return os.NewFile(uintptr(fds[0]), "pipe"), os.NewFile(uintptr(fds[1]), "pipe"), nil
}

// supervise reads the process's output and waits for its end.
func (p *process) supervise(end func() unix.WaitStatus) {
	for _, s := range p.streams {
		p.ses.procs.Go(s.run)
	}
	p.ses.procs.Go(func() {
		p.stays.Started()
		status := end()
		p.stays.End()
		for _, s := range p.streams {
			s.drain()
		}
		code := exitCode(status, p.tty)
		denied := p.judge(code)
		if p.stdin != nil {
			p.stdin.end(p.ptmx != nil)
		}
		p.exit(code, denied)
	})
}

// reap waits for the exit and reaps under mu, so that no signal can reach a
// number that is free again.
func (p *process) reap(pidfd *os.File) (status unix.WaitStatus) {
	defer pidfd.Close()
	raw, err := pidfd.SyscallConn()
	if err == nil {
		err = raw.Read(func(uintptr) bool { return p.tryReap(&status, unix.WNOHANG) })
	}
	if err != nil && !p.tryReap(&status, 0) { // no pollable descriptor: give it a thread
		status = 0xff << 8
	}
	if unix.Kill(-p.pid, 0) == nil {
		p.ses.leftover(p.pid)
	}
	return status
}

func (p *process) tryReap(status *unix.WaitStatus, flags int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return true
	}
	for {
		pid, err := unix.Wait4(p.pid, status, flags, nil)
		if err == unix.EINTR {
			continue
		}
		p.reaped = pid == p.pid
		return p.reaped
	}
}

// exitCode is the exit status, or 128 and the signal. A terminal's process that
// dies by a signal reports 1, as clients know it.
func exitCode(s unix.WaitStatus, tty bool) int {
	switch {
	case s.Exited():
		return s.ExitStatus()
	case s.Signaled() && tty:
		return 1
	case s.Signaled():
		return 128 + int(s.Signal())
	}
	return -1
}
