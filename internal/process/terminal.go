package process

import (
	"os"
	"os/signal"
	"path/filepath"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/box"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// OpenTerminal opens a pseudo-terminal of the given size, in a box if there is one.
// Its master is pollable: deadlines work, and closing it ends a read.
func OpenTerminal(in *box.Box, columns, rows uint16) (master, slave *os.File, err error) {
	if in != nil {
		master, slave, err = in.Pty()
	} else {
		master, slave, err = openTerminal()
	}
	if err != nil {
		return nil, nil, err
	}
	if err := Resize(master, columns, rows); err != nil {
		master.Close()
		slave.Close()
		return nil, nil, err
	}
	return master, slave, nil
}

func openTerminal() (master, slave *os.File, err error) {
	m, slave, err := pty.Open()
	if err != nil {
		return nil, nil, err
	}
	defer m.Close() // the library has made it block
	fd, err := unix.FcntlInt(m.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		slave.Close()
		return nil, nil, err
	}
	_ = unix.SetNonblock(fd, true)
	return os.NewFile(uintptr(fd), "ptmx"), slave, nil
}

// Resize sends a terminal's foreground programs its new size.
func Resize(master *os.File, columns, rows uint16) error {
	raw, err := master.SyscallConn() // File.Fd would make the file block
	if err != nil {
		return err
	}
	var set error
	if err := raw.Control(func(fd uintptr) {
		set = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows})
	}); err != nil {
		return err
	}
	return set
}

// StartOnTerminal runs the program as the leader of a session whose controlling
// terminal is slave, which stays the caller's to close. The process has neither
// Stdin nor Stdout: the holder of the master speaks with it.
func StartOnTerminal(spec Spec, slave *os.File) (*Process, error) {
	if !filepath.IsAbs(spec.Path) {
		return nil, thole.Errorf(thole.CodeInvalid, "start %s: not an absolute path", spec.Path)
	}
	t := newTree()
	t.session = true
	p := &Process{path: spec.Path, tree: t, stderr: newTail(spec.Secrets), done: make(chan struct{})}
	// Under nohup we ignore the hang-up, and so would the program. A signal that is
	// heard, by nobody, is left to it.
	if signal.Ignored(unix.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), unix.SIGHUP)
	}
	if err := p.begin(spec, [3]*os.File{slave, slave, slave}); err != nil {
		return nil, startError(spec, err)
	}
	go p.wait(func() {})
	return p, nil
}
