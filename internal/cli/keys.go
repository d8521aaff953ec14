package cli

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	thole "github.com/tholehq/thole"
)

// errNobody says that the terminal ended while a question was open: nobody answered it.
var errNobody = errors.New("nobody is at the terminal")

// typist reads lines that a person types. Nothing is read unless a line is wanted, so that
// what was typed before a question never answers it, and programs after us get their input.
type typist struct{ tty *os.File }

// lookForKeys bounds how long a withdrawn question keeps its reader.
const lookForKeys = 100 * time.Millisecond

// forget drops what was typed so far.
func (t *typist) forget() { dropTyped(int(t.tty.Fd())) }

// line waits for a line. It returns ctx's error when that ends first, errNobody at the end of
// the input.
func (t *typist) line(ctx context.Context) (string, error) {
	fd := int(t.tty.Fd())
	buf := make([]byte, 4096)
	var line []byte
	for {
		if err := ctx.Err(); err != nil {
			return "", context.Cause(ctx)
		}
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(ready, int(lookForKeys.Milliseconds()))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return "", thole.Errorf(thole.CodeUnavailable, "read the terminal: %w", err)
		}
		if n <= 0 {
			continue
		}
		if ready[0].Revents&unix.POLLIN == 0 {
			return "", errNobody
		}
		n, err = unix.Read(fd, buf)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		case err != nil || n == 0: // the terminal went away, or Ctrl-D
			return "", errNobody
		}
		line = append(line, buf[:n]...)
		if line[len(line)-1] == '\n' {
			return string(line[:len(line)-1]), nil
		}
		if len(line) > 1<<20 {
			return "", thole.Errorf(thole.CodeInvalid, "the line is too long")
		}
	}
}

// secret is line without an echo.
func (t *typist) secret(ctx context.Context) (string, error) {
	fd := int(t.tty.Fd())
	old, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return "", errNobody
	}
	quiet := *old
	quiet.Lflag &^= unix.ECHO
	if err := unix.IoctlSetTermios(fd, setTermios, &quiet); err != nil {
		return "", errNobody
	}
	defer func() { _ = unix.IoctlSetTermios(fd, setTermios, old) }()
	return t.line(ctx)
}
