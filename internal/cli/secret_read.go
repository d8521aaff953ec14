package cli

import (
	"bytes"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/vault"
)

// readSecret reads the value of a secret: from a file, from standard input for "-", or
// typed without showing it.
func (e *Env) readSecret(args []string, file string) (value []byte, err error) {
	stdin := len(args) > 1
	if stdin && (args[1] != "-" || file != "") {
		return nil, thole.Errorf(thole.CodeInvalid, "a secret is never an argument").
			WithHint("leave the value out to be asked for it, or use --file FILE, or - for standard input")
	}
	switch {
	case file != "":
		f, err := os.Open(file)
		if err != nil {
			return nil, thole.Errorf(thole.CodeInvalid, "read the secret: %w", err)
		}
		defer f.Close()
		value, err = readBounded(f)
		if err != nil {
			return nil, err
		}
	case stdin:
		if value, err = readBounded(e.In); err != nil {
			return nil, err
		}
	default:
		if value, err = e.typeSecret(); err != nil {
			return nil, err
		}
	}
	return trimLine(value), nil
}

func readBounded(r io.Reader) ([]byte, error) {
	value, err := io.ReadAll(io.LimitReader(r, vault.MaxValue+1))
	if err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "read the secret: %w", err)
	}
	return value, nil
}

// trimLine takes the line end of a single line away: it is the editor's or the shell's,
// where a longer value, such as a private key, needs its last one.
func trimLine(value []byte) []byte {
	line := bytes.TrimSuffix(bytes.TrimSuffix(value, []byte("\n")), []byte("\r"))
	if bytes.ContainsAny(line, "\r\n") {
		return value
	}
	return line
}

// typeSecret asks for a line at the terminal and does not show it.
func (e *Env) typeSecret() ([]byte, error) {
	tty, _ := e.In.(*os.File)
	var was *unix.Termios
	if tty != nil {
		if now, err := unix.IoctlGetTermios(int(tty.Fd()), getTermios); err == nil {
			was = now
		}
	}
	if was == nil {
		return nil, thole.Errorf(thole.CodeInvalid, "there is no terminal to type the secret at").WithHint("use --file FILE, or - to read standard input")
	}
	quiet := *was
	quiet.Lflag &^= unix.ECHO
	quiet.Lflag |= unix.ICANON | unix.ISIG | unix.ECHONL
	restore := func() { _ = unix.IoctlSetTermios(int(tty.Fd()), setTermios, was) }
	defer restore()
	// A person who gives up gets their terminal back as it was.
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(stop)
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-stop:
			restore()
			os.Exit(130)
		case <-done:
		}
	}()
	if err := unix.IoctlSetTermios(int(tty.Fd()), setTermios, &quiet); err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "hide what is typed: %w", err)
	}
	put(e.Err, "value (not shown): ")
	var value []byte
	for b := make([]byte, 1); ; {
		n, err := tty.Read(b)
		if n == 1 && b[0] != '\n' {
			if value = append(value, b[0]); len(value) > vault.MaxValue {
				return nil, thole.Errorf(thole.CodeInvalid, "the secret is longer than %d bytes", vault.MaxValue)
			}
			continue
		}
		if err != nil && err != io.EOF {
			return nil, thole.Errorf(thole.CodeUnavailable, "read the secret: %w", err)
		}
		return value, nil
	}
}
