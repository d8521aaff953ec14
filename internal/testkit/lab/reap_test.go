package lab

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tholehq/thole/internal/testkit/poll"
)

// holder is this test binary as another process: it starts a daemon, prints its
// directory and waits to be killed.
func TestHolder(t *testing.T) {
	if os.Getenv("LAB_HOLDER") == "" {
		t.Skip("started by the tests that kill it")
	}
	d, err := launch("sleeper", func(string) ([]string, error) { return []string{"sleep", "600"}, nil },
		func(dir string) error { _, err := os.Stat(filepath.Join(dir, "pid")); return err })
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString(d.dir + "\n")
	select {}
}

func startHolder(t *testing.T) (holder *exec.Cmd, dir string) {
	t.Helper()
	holder = exec.Command(os.Args[0], "-test.run=^TestHolder$")
	holder.Env = append(os.Environ(), "LAB_HOLDER=1")
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = holder.Process.Kill(); _ = holder.Wait() })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "/") {
			return holder, lines.Text()
		}
	}
	t.Fatal("the holder printed no directory")
	return nil, ""
}

func TestKilledBinaryLeavesNothing(t *testing.T) {
	holder, dir := startHolder(t)
	pid := identified(t, dir, "part")
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "the directory goes", func() bool { _, err := os.Stat(dir); return errors.Is(err, fs.ErrNotExist) })
	poll.Until(t, "the server goes", func() bool { _, err := startTime(pid); return err != nil })
}

func TestReapTakesWhatAKilledWatcherLeft(t *testing.T) {
	holder, dir := startHolder(t)
	pid, watcher := identified(t, dir, "part"), identified(t, dir, "owner")
	reap(labRoot())
	if _, err := os.Stat(dir); err != nil {
		t.Fatal("reap took a daemon that is in use")
	}
	if err := syscall.Kill(watcher, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = holder.Process.Kill()
	_ = holder.Wait()
	poll.Until(t, "the watcher goes", func() bool { _, alive := living(filepath.Join(dir, "owner")); return !alive })
	reap(labRoot())
	poll.Until(t, "the server goes", func() bool { _, err := startTime(pid); return err != nil })
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal("the directory is still there")
	}
}

func TestReapSparesAProcessThatOnlyHasThePid(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "old")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	other := exec.Command("sleep", "600")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	for name, text := range map[string]string{"owner": "1 0", "part": strconv.Itoa(other.Process.Pid) + " 12345"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	reap(root)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the directory is still there")
	}
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("a stranger was killed: %v", err)
	}
}

func identified(t *testing.T, dir, name string) int {
	t.Helper()
	pid, alive := living(filepath.Join(dir, name))
	if !alive {
		t.Fatalf("no living %s in %s", name, dir)
	}
	return pid
}
