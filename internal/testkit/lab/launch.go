package lab

import (
	"bufio"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// Launch starts a server that prints its address first, with a home of its own
// and nothing of our environment, and ends it with everything it started.
func Launch(t testing.TB, argv ...string) (url string, pid int) {
	t.Helper()
	home := t.TempDir()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = []string{"HOME=" + home, "CODEX_HOME=" + home, "PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	drained := make(chan struct{})
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-drained
		_ = cmd.Wait()
	})
	r := bufio.NewReader(out)
	line, err := r.ReadString('\n')
	go func() { defer close(drained); _, _ = io.Copy(io.Discard, r) }()
	if err != nil {
		t.Fatalf("%s did not start: %v", argv[0], err)
	}
	return strings.TrimSpace(line), cmd.Process.Pid
}
