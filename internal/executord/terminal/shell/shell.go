package shell

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/box"
	"github.com/tholehq/thole/internal/process"

	"github.com/tholehq/thole/internal/executord/terminal"
	"golang.org/x/sys/unix"
)

// hangUpGrace is how long a shell and an editor in it have to tidy up after the
// terminal was hung up. Then everything that came of them is killed.
const hangUpGrace = time.Second

// strayLimit bounds what is read of a terminal whose shell is gone and which
// another process still writes to.
const strayLimit = 1 << 20

var past = time.Unix(1, 0)

// shell is a login shell on a terminal of its own.
type shell struct {
	name   string
	master *os.File
	proc   *process.Process
	strays int // bytes read after the shell was gone
}

// shells are tried in this order.
var shells = []string{"/bin/bash", "/bin/sh"}

func startShell(in *box.Box, dir string, env map[string]string, size terminal.Size) (*shell, error) {
	path := shells[len(shells)-1]
	for _, s := range shells {
		if _, err := os.Stat(s); err == nil {
			path = s
			break
		}
	}
	own := map[string]string{}
	for k, v := range env {
		own[k] = v
	}
	own["TERM"], own["SHELL"] = "xterm-256color", path
	master, slave, err := process.OpenTerminal(in, uint16(size.Columns), uint16(size.Rows))
	if err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "open a terminal: %w", err)
	}
	defer slave.Close()
	proc, err := process.StartOnTerminal(process.Spec{Path: path, Args: []string{"-l"}, Dir: dir, Env: own, Box: in}, slave)
	if err != nil {
		master.Close()
		return nil, err
	}
	s := &shell{name: path, master: master, proc: proc}
	go func() {
		<-proc.Done()
		_ = master.SetReadDeadline(past) // a reader need not wait for strangers who hold the terminal
	}()
	return s, nil
}

// Read returns output until the shell and everything that came of it are gone and
// what they wrote was read; then io.EOF.
func (s *shell) Read(b []byte) (n int, err error) {
	n, err = s.master.Read(b)
	if n > 0 {
		return n, nil
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		raw, rerr := s.master.SyscallConn()
		if rerr != nil {
			return 0, io.EOF
		}
		if rerr := raw.Control(func(fd uintptr) { n, err = unix.Read(int(fd), b) }); rerr != nil || err != nil || n <= 0 || s.strays > strayLimit {
			return 0, io.EOF
		}
		s.strays += n
		return n, nil
	}
	// The master says EIO when nobody holds the other side: all was read.
	return 0, io.EOF
}

func (s *shell) Write(b []byte) (int, error) { return s.master.Write(b) }

func (s *shell) resize(size terminal.Size) error {
	return process.Resize(s.master, uint16(size.Columns), uint16(size.Rows))
}

// end hangs up and returns when nothing of the shell is left.
func (s *shell) end() {
	s.master.Close() // the kernel sends SIGHUP to the shell and to what is in the foreground
	s.proc.Stop(hangUpGrace)
}

// exitCode waits for the shell's end. One that was killed has 128 and the signal.
func (s *shell) exitCode() int {
	var exit *process.ExitError
	switch err := s.proc.Wait(context.Background()); {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		if exit.Status.Signaled() {
			return 128 + int(exit.Status.Signal())
		}
		return exit.ExitCode()
	}
	return 1
}
