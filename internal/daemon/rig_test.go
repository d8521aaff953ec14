package daemon_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/cli"
	"github.com/tholehq/thole/internal/testkit/poll"
)

const asThole = "THOLE_TEST_AS_THOLE"

// TestMain lets the test binary be thole itself: these tests run real processes.
func TestMain(m *testing.M) {
	if os.Getenv(asThole) != "" {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// site is a home with the processes that use it.
type site struct {
	t    *testing.T
	home string
	exe  string // this test binary, or the program as it is released
}

func newSite(t *testing.T) *site {
	dir, err := os.MkdirTemp("", "th") // socket paths are short
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t, filepath.Join(dir, "h"), exe}
	t.Cleanup(func() {
		s.run("daemon", "stop")
		_ = os.RemoveAll(dir)
	})
	return s
}

func (s *site) command(args ...string) *exec.Cmd {
	cmd := exec.Command(s.exe, args...)
	cmd.Env = append(os.Environ(), asThole+"=1", "THOLE_HOME="+s.home)
	return cmd
}

// run returns what the command printed and its exit code.
func (s *site) run(args ...string) (out, errs string, code int) {
	return capture(s.command(args...))
}

// capture runs a command, which is killed if it never ends.
func capture(cmd *exec.Cmd) (out, errs string, code int) {
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	if err := cmd.Start(); err != nil {
		return "", err.Error(), -1
	}
	defer time.AfterFunc(poll.Limit, func() { _ = cmd.Process.Kill() }).Stop()
	_ = cmd.Wait()
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

func (s *site) must(result any, args ...string) {
	s.t.Helper()
	out, errs, code := s.run(append([]string{"--json"}, args...)...)
	if code != 0 {
		s.t.Fatalf("thole %v: exit %d: %s", args, code, errs)
	}
	if result != nil {
		if err := json.Unmarshal([]byte(out), result); err != nil {
			s.t.Fatalf("thole %v printed %q: %v", args, out, err)
		}
	}
}

// daemons counts live daemon processes of the home.
func (s *site) daemons() (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err == nil && strings.Contains(string(b), "daemon\x00run") && strings.Contains(string(b), s.home) {
			pid, _ := strconv.Atoi(e.Name())
			pids = append(pids, pid)
		}
	}
	return pids
}
