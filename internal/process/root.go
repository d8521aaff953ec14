package process

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/tholehq/thole/internal/box"
)

// root is the first program of a tree, wherever it runs.
type root interface {
	pid() int
	signal(os.Signal) error
	await()      // its end; it is collected by wait
	wait() error // how it ended
	cpu() time.Duration
}

// ExitError is how a program ended that did not end well.
type ExitError struct{ Status syscall.WaitStatus }

func (e *ExitError) Error() string {
	if e.Status.Signaled() {
		return "signal: " + e.Status.Signal().String()
	}
	return "exit status " + strconv.Itoa(e.Status.ExitStatus())
}

// ExitCode is -1 of one that a signal ended.
func (e *ExitError) ExitCode() int { return e.Status.ExitStatus() }

// local is a child of this process.
type local struct{ *exec.Cmd }

func (l local) pid() int                   { return l.Process.Pid }
func (l local) signal(sig os.Signal) error { return l.Process.Signal(sig) }
func (l local) await()                     { AwaitExit(l.Cmd) }
func (l local) cpu() time.Duration {
	return l.ProcessState.UserTime() + l.ProcessState.SystemTime()
}

func (l local) wait() error {
	err := l.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok {
			return &ExitError{status}
		}
	}
	return err
}

// boxed is a child of a box's init.
type boxed struct{ *box.Child }

func (b boxed) pid() int { return b.Pid() }
func (b boxed) await()   { <-b.Done() }

func (b boxed) signal(sig os.Signal) error {
	s, ok := sig.(syscall.Signal)
	if !ok {
		return errors.ErrUnsupported
	}
	return b.Signal(s)
}

func (b boxed) wait() error {
	exit, err := b.Wait()
	if err == nil && exit.Status != 0 {
		return &ExitError{exit.Status}
	}
	return err
}

func (b boxed) cpu() time.Duration {
	exit, _ := b.Wait()
	return exit.CPU
}
