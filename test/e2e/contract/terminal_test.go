//go:build linux

package contract

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/test/e2e/home"
)

// seat is a person at a terminal.
type seat struct {
	*testing.T
	keys *os.File
	said string
}

// sit runs a command on a terminal of its own.
func sit(t *testing.T, cmd *exec.Cmd) (*seat, *os.File) {
	t.Helper()
	master, slave, err := process.OpenTerminal(nil, 80, 24)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close(); slave.Close() })
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = master.SetDeadline(time.Now().Add(2 * time.Minute))
	return &seat{T: t, keys: master}, slave
}

func (s *seat) types(keys string) {
	s.Helper()
	if _, err := io.WriteString(s.keys, keys); err != nil {
		s.Fatal(err)
	}
}

func (s *seat) sees(want string) (before string) {
	s.Helper()
	buf := make([]byte, 4096)
	for {
		if before, after, ok := strings.Cut(s.said, want); ok {
			s.said = after
			return before
		}
		n, err := s.keys.Read(buf)
		if err != nil {
			s.Fatalf("%v; waited for %q, saw %q", err, want, s.said)
		}
		s.said += string(buf[:n])
	}
}

func canonical(t *testing.T, tty *os.File) bool {
	t.Helper()
	raw, err := tty.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var is bool
	_ = raw.Control(func(fd uintptr) {
		state, err := unix.IoctlGetTermios(int(fd), unix.TCGETS)
		is = err == nil && state.Lflag&unix.ICANON != 0
	})
	return is
}

func TestThreadTerminal(t *testing.T) {
	h := home.New(t)
	h.Up()
	if _, errs, code := h.Run("thread", "terminal", "0199aaaa-0000-7000-8000-000000000001"); code != 3 || !strings.Contains(errs, "thread not found") {
		t.Errorf("no thread: %d %s", code, errs)
	}
	if _, errs, code := h.Run("thread", "terminal", "nonsense"); code != 3 || !strings.Contains(errs, "no thread is called") {
		t.Errorf("no id: %d %s", code, errs)
	}
	out, errs, code := h.Run("thread", "start", "--model", "test/script")
	if code != 0 {
		t.Fatalf("start: %d %s%s", code, out, errs)
	}
	id := strings.Fields(out)[1]
	if _, errs, code := h.Run("thread", "terminal", id); code != 4 || !strings.Contains(errs, "no running executor") || !strings.Contains(errs, "thole thread send "+id) {
		t.Errorf("nothing runs: %d %s", code, errs)
	}
	if out, errs, code := h.Run("thread", "send", id, "sim: say hello"); code != 0 {
		t.Fatalf("send: %d %s%s", code, out, errs)
	}

	cmd := h.Command("thread", "terminal", id)
	s, tty := sit(t, cmd)
	s.types("stty size; echo si''ze\n")
	s.sees("24 80\r\n")
	s.sees("size")
	if canonical(t, tty) {
		t.Error("keys are not passed on as they are")
	}
	if err := process.Resize(s.keys, 120, 40); err != nil {
		t.Fatal(err)
	}
	for size := ""; !strings.Contains(size, "40 120\r\n"); { // the signal takes its time
		s.types("stty size; echo si''ze\n")
		size = s.sees("size\r\n")
	}
	s.types("sh -c 'echo a\"\"sleep; exec sleep 1000'\n")
	s.sees("asleep")
	s.types("\x03")
	s.types("echo rc=$?=; exit 9\n")
	s.sees("rc=130=")
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 9 {
		t.Errorf("exit code %d", code)
	}
	if !canonical(t, tty) {
		t.Error("the user's terminal was left as it was used")
	}

	// Without a terminal it is a pipe, and a slow reader loses nothing.
	const size = 20_000_000
	cmd = h.Command("thread", "terminal", id)
	cmd.Stdin = strings.NewReader("head -c 20000000 /dev/zero\n")
	flood, err := cmd.Output()
	if zeros := bytes.Count(flood, []byte{0}); err != nil || zeros != size {
		t.Errorf("%d bytes of %d, %v", zeros, size, err)
	}

	// Who closes the thread ends its terminals.
	cmd = h.Command("thread", "terminal", id)
	s, _ = sit(t, cmd)
	s.types("echo o''k\n")
	s.sees("ok")
	if _, errs, code := h.Run("thread", "close", id); code != 0 {
		t.Fatalf("close: %d %s", code, errs)
	}
	s.sees("the executor stops")
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 7 {
		t.Errorf("exit code %d", code)
	}
}
