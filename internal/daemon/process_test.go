package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/cli"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/daemon/wire"
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
}

func newSite(t *testing.T) *site {
	dir, err := os.MkdirTemp("", "th") // socket paths are short
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t, filepath.Join(dir, "h")}
	t.Cleanup(func() {
		s.run("daemon", "stop")
		_ = os.RemoveAll(dir)
	})
	return s
}

func (s *site) command(args ...string) *exec.Cmd {
	exe, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), asThole+"=1", "THOLE_HOME="+s.home)
	return cmd
}

// run returns what the command printed and its exit code.
func (s *site) run(args ...string) (out, errs string, code int) {
	var o, e bytes.Buffer
	cmd := s.command(args...)
	cmd.Stdout, cmd.Stderr = &o, &e
	_ = cmd.Run()
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

func TestColdStart(t *testing.T) {
	s := newSite(t)
	const n = 200
	var wg sync.WaitGroup
	var mu sync.Mutex
	ids := map[string]bool{}
	for i := range n {
		wg.Go(func() {
			out, errs, code := s.run("job", "submit", "--thread-id", "t"+strconv.Itoa(i%10), "--summary", "x", "--json")
			var r wire.Submitted
			if code != 0 || json.Unmarshal([]byte(out), &r) != nil {
				t.Errorf("submit %d: exit %d: %s", i, code, errs)
				return
			}
			mu.Lock()
			ids[r.JobID] = true
			mu.Unlock()
		})
	}
	wg.Wait()
	if len(ids) != n {
		t.Errorf("%d commands made %d jobs", n, len(ids))
	}
	var jobs []wire.Job
	s.must(&jobs, "job", "list", "--limit", "1000")
	if len(jobs) != n {
		t.Errorf("the home knows %d jobs", len(jobs))
	}
	if _, errs, code := s.run("job", "list", "--status", "done"); code != 2 {
		t.Errorf("a status that is none: %d %s", code, errs)
	}
	if d := s.daemons(); len(d) != 1 {
		t.Errorf("%d daemons run: %v", len(d), d)
	}
}

// Commands never notice that the daemon under them is stopped again and again.
func TestNothingLostWhileStopping(t *testing.T) {
	s := newSite(t)
	s.must(nil, "job", "list")
	stop := make(chan struct{})
	var stopper, wg sync.WaitGroup
	stopper.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				s.run("daemon", "stop")
			}
		}
	})
	for i := range 16 {
		wg.Go(func() {
			var r wire.Submitted
			s.must(&r, "job", "submit", "--thread-id", "t", "--dedupe-key", strconv.Itoa(i))
			s.must(nil, "job", "fail", "--job-id", r.JobID, "--reason", "test")
		})
	}
	wg.Wait()
	close(stop)
	stopper.Wait()
	var jobs []wire.Job
	s.must(&jobs, "job", "list", "--status", "failed", "--limit", "1000")
	if len(jobs) != 16 {
		t.Errorf("%d of 16 jobs failed", len(jobs))
	}
	s.must(nil, "check")
}

// kill -9 at any moment: what a command was told is there afterwards.
func TestDaemonKilled(t *testing.T) {
	s := newSite(t)
	s.must(nil, "job", "list")
	stop := make(chan struct{})
	var killer, wg sync.WaitGroup
	killer.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(150 * time.Millisecond):
				for _, pid := range s.daemons() {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
		}
	})
	result := filepath.Join(t.TempDir(), "r.txt")
	if err := os.WriteFile(result, []byte("the result"), 0o600); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var told []string
	for range 4 {
		wg.Go(func() {
			for range 4 {
				out, _, code := s.run("job", "submit", "--thread-id", "t", "--json")
				var r wire.Submitted
				if code != 0 || json.Unmarshal([]byte(out), &r) != nil {
					continue // nobody was told anything
				}
				if _, _, code := s.run("job", "complete", "--job-id", r.JobID, "--result-file", result); code == 0 {
					mu.Lock()
					told = append(told, r.JobID)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	killer.Wait()
	if len(told) == 0 {
		t.Fatal("no command got through")
	}
	t.Logf("%d of 16 completions were acknowledged", len(told))
	for _, id := range told {
		var j wire.Job
		if s.must(&j, "job", "query", id); j.Status != "ready" {
			t.Errorf("job %s was completed and is %s", id, j.Status)
		}
		if out, errs, _ := s.run("artifact", "read", "--artifact-id", j.ArtifactID); out != "the result" {
			t.Errorf("its artifact reads %q %s", out, errs)
		}
	}
	s.must(nil, "check")
}

func TestHostileHomes(t *testing.T) {
	refused := func(t *testing.T, s *site, code int, words string) {
		t.Helper()
		_, errs, got := s.run("job", "submit", "--thread-id", "t")
		if got != code || !strings.Contains(errs, words) || !strings.Contains(errs, "try:") {
			t.Errorf("exit %d (want %d): %s", got, code, errs)
		}
		poll.Until(t, "no daemon runs", func() bool { return len(s.daemons()) == 0 })
	}
	t.Run("symlink", func(t *testing.T) {
		s := newSite(t)
		if err := os.Symlink(t.TempDir(), s.home); err != nil {
			t.Fatal(err)
		}
		refused(t, s, 6, "symbolic link")
	})
	t.Run("open to others", func(t *testing.T) {
		s := newSite(t)
		if err := os.Mkdir(s.home, 0o755); err != nil {
			t.Fatal(err)
		}
		refused(t, s, 6, "other users")
	})
	t.Run("of another user", func(t *testing.T) {
		s := newSite(t)
		if err := os.Mkdir(s.home, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(s.home, 65534, 65534); err != nil {
			t.Skip("only root can give a directory away: ", err)
		}
		refused(t, s, 6, "belongs to another user")
	})
	t.Run("planted socket", func(t *testing.T) {
		s := newSite(t)
		if err := os.Mkdir(s.home, 0o700); err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("unix", daemon.Socket(s.home))
		if err != nil {
			t.Fatal(err)
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		_ = l.Close() // a dead socket, and not ours:
		if err := os.Chown(daemon.Socket(s.home), 65534, 65534); err != nil {
			t.Skip("only root can plant a socket: ", err)
		}
		refused(t, s, 6, "another user")
	})
	t.Run("database from the future", func(t *testing.T) {
		s := newSite(t)
		s.must(nil, "job", "submit", "--thread-id", "t")
		s.must(nil, "daemon", "stop")
		q := "insert into schema_migrations select 9999, 'future', sum, applied_at from schema_migrations limit 1"
		if out, err := exec.Command("sqlite3", filepath.Join(s.home, "thole.db"), q).CombinedOutput(); err != nil {
			t.Skipf("sqlite3: %v %s", err, out)
		}
		_, errs, code := s.run("job", "list")
		if code == 0 || !strings.Contains(errs, "newer") && !strings.Contains(errs, "later") {
			t.Errorf("exit %d: %s", code, errs)
		}
		q = "delete from schema_migrations where version = 9999"
		if out, err := exec.Command("sqlite3", filepath.Join(s.home, "thole.db"), q).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
		var jobs []wire.Job
		if s.must(&jobs, "job", "list"); len(jobs) != 1 {
			t.Error("the job was lost")
		}
	})
	t.Run("full disk", func(t *testing.T) {
		s := newSite(t)
		if err := os.Mkdir(s.home, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mount("tmpfs", s.home, "tmpfs", 0, "size=4m,mode=0700"); err != nil {
			t.Skip("only root can make a small disk: ", err)
		}
		t.Cleanup(func() { s.run("daemon", "stop"); _ = syscall.Unmount(s.home, syscall.MNT_DETACH) })
		var r wire.Submitted
		s.must(&r, "job", "submit", "--thread-id", "t")
		big := filepath.Join(t.TempDir(), "big")
		if err := os.WriteFile(big, make([]byte, 8<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		_, errs, code := s.run("job", "complete", "--job-id", r.JobID, "--result-file", big)
		if code != 7 || !strings.Contains(errs, "disk is full") {
			t.Errorf("exit %d: %s", code, errs)
		}
		var j wire.Job
		if s.must(&j, "job", "query", r.JobID); j.Status != "running" {
			t.Errorf("the job is %s", j.Status)
		}
		s.must(&j, "job", "complete", "--job-id", r.JobID, "--summary", "smaller")
	})
}

func TestForeignPeerIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can act as another user")
	}
	s := newSite(t)
	s.must(nil, "job", "list")
	// Open every door but the proof of identity.
	for _, p := range []string{filepath.Dir(s.home), s.home} {
		if err := os.Chmod(p, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(daemon.Socket(s.home), 0o666); err != nil {
		t.Fatal(err)
	}
	script := `import socket,sys
s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
try:
    s.sendall(b'{"id":1,"method":"thole/daemon/status"}\n'); print(repr(s.recv(100)))
except OSError as e: print("b''")`
	cmd := exec.Command("/usr/bin/python3", "-c", script, daemon.Socket(s.home))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "b''" {
		t.Errorf("another user was answered: %v %s", err, out)
	}
	if err := os.Chmod(s.home, 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestIdleExit(t *testing.T) {
	s := newSite(t)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	start := func() chan error {
		cmd := s.command("daemon", "run", "--home", s.home, "--idle-timeout", "300ms")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		poll.Until(t, "the daemon answers", func() bool { _, _, code := s.run("daemon", "status"); return code == 0 })
		return done
	}
	done := start()
	var r wire.Submitted
	s.must(&r, "job", "submit", "--thread-id", "t")
	select {
	case <-done:
		t.Fatal("the daemon left a running job")
	case <-time.After(time.Second):
	}
	var st wire.Status
	if s.must(&st, "daemon", "status"); st.Staying == "" {
		t.Error("it does not say why it stays")
	}
	s.must(nil, "job", "complete", "--job-id", r.JobID, "--summary", "done") // now only a 72 h window is left
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-ctx.Done():
		t.Fatal("the daemon stays for a long window")
	}
	if _, err := os.Stat(daemon.Socket(s.home)); !os.IsNotExist(err) {
		t.Error("the socket stayed")
	}
}

func TestRunSupervised(t *testing.T) {
	s := newSite(t)
	t.Run("exit status and output", func(t *testing.T) {
		out, errs, code := s.run("job", "run", "--thread-id", "t", "--wait", "--json", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
		var j []wire.Job
		if code != 7 || json.Unmarshal([]byte(out), &j) != nil || j[0].Status != "failed" || j[0].ExitCode == nil || *j[0].ExitCode != 7 {
			t.Fatalf("exit %d: %s %s", code, out, errs)
		}
		if text, _, _ := s.run("artifact", "read", "--artifact-id", j[0].ArtifactID); text != "out\nerr\n" {
			t.Errorf("captured %q", text)
		}
	})
	t.Run("timeout", func(t *testing.T) {
		out, _, _ := s.run("job", "run", "--thread-id", "t", "--wait", "--timeout", "200ms", "--", "sleep", "600")
		if !strings.Contains(out, "timed out") {
			t.Errorf("%s", out)
		}
	})
	t.Run("no such command", func(t *testing.T) {
		if _, errs, code := s.run("job", "run", "--thread-id", "t", "--", "/no/such"); code != 2 {
			t.Errorf("exit %d: %s", code, errs)
		}
	})
	t.Run("cancel kills every descendant", func(t *testing.T) {
		pids := filepath.Join(t.TempDir(), "pids")
		script := fmt.Sprintf(`echo $$ >> %[1]s; (setsid sh -c 'echo $$ >> %[1]s; trap "" TERM; while :; do sleep 1; done' &) ; sleep 600`, pids)
		var r wire.Submitted
		s.must(&r, "job", "run", "--thread-id", "t", "--", "sh", "-c", script)
		var lines []string
		poll.Until(t, "both processes run", func() bool {
			b, _ := os.ReadFile(pids)
			lines = strings.Fields(string(b))
			return len(lines) == 2
		})
		s.must(nil, "job", "cancel", "--job-id", r.JobID)
		for _, p := range lines {
			poll.Until(t, "process "+p+" is gone", func() bool {
				b, err := os.ReadFile("/proc/" + p + "/stat")
				return err != nil || strings.Contains(string(b), ") Z ")
			})
		}
	})
	for _, successor := range [][]string{{"daemon", "run", "--takeover", "--home", s.home}, {"up", "--no-browser", "--listen", "127.0.0.1:0"}} {
		t.Run("outlives the daemon, succeeded by "+successor[0], func(t *testing.T) {
			gate := filepath.Join(t.TempDir(), "gate")
			var r wire.Submitted
			s.must(&r, "job", "run", "--thread-id", "t", "--", "sh", "-c", "while [ ! -e "+gate+" ]; do sleep 0.05; done; echo done")
			var after wire.Status
			s.must(nil, "daemon", "status")
			cmd := s.command(successor...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			go func() { _ = cmd.Wait() }()
			poll.Until(t, "the successor owns the home", func() bool {
				out, _, code := s.run("daemon", "status", "--json")
				return code == 0 && json.Unmarshal([]byte(out), &after) == nil && after.PID == cmd.Process.Pid
			})
			if err := os.WriteFile(gate, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			out, _, code := s.run("job", "wait", r.JobID, "--timeout", "60s")
			if code != 0 || !strings.Contains(out, "ready") {
				t.Errorf("exit %d: %s", code, out)
			}
		})
	}
	t.Run("supervisor killed", func(t *testing.T) {
		var r wire.Submitted
		s.must(&r, "job", "run", "--thread-id", "t", "--", "sleep", "300")
		var id struct{ PID int }
		b, err := os.ReadFile(filepath.Join(s.home, "run", r.JobID+".json"))
		if err != nil || json.Unmarshal(b, &id) != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(id.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		s.must(nil, "daemon", "stop") // the next start sweeps first
		var j wire.Job
		s.must(&j, "job", "query", r.JobID)
		if j.Status != "failed" || !strings.Contains(j.ResultSummary, "supervisor") {
			t.Errorf("%s: %s", j.Status, j.ResultSummary)
		}
	})
	s.must(nil, "check")
}
