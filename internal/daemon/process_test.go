package daemon_test

import (
	"context"
	"encoding/json"
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

	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
)

func TestColdStart(t *testing.T) {
	s := newSite(t)
	const n = 200
	var wg sync.WaitGroup
	var mu sync.Mutex
	ids := map[string]bool{}
	for i := range n {
		wg.Go(func() {
			out, errs, code := s.run("job", "submit", "--target", "desktop", "--thread-id", "t"+strconv.Itoa(i%10), "--summary", "x", "--json")
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
			s.must(&r, "job", "submit", "--target", "desktop", "--thread-id", "t", "--dedupe-key", strconv.Itoa(i))
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

// kill -9 at any moment: what a command was answered is there afterwards.
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
				out, _, code := s.run("job", "submit", "--target", "desktop", "--thread-id", "t", "--json")
				var r wire.Submitted
				if code != 0 || json.Unmarshal([]byte(out), &r) != nil {
					continue // no command was answered
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
		_, errs, got := s.run("job", "submit", "--target", "desktop", "--thread-id", "t")
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
		s.must(nil, "job", "submit", "--target", "desktop", "--thread-id", "t")
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
		lab.Disk(t, s.home, "size=4m,mode=0700", false)
		t.Cleanup(func() { s.run("daemon", "stop") })
		var r wire.Submitted
		s.must(&r, "job", "submit", "--target", "desktop", "--thread-id", "t")
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

// A command in a container that shares the home is refused with the reason, at once
// and not after a minute of asking again, over both wires of the socket.
func TestACommandInAContainerLearnsWhy(t *testing.T) {
	s := newSite(t)
	s.must(nil, "job", "list")
	for _, args := range [][]string{{"daemon", "status"}, {"job", "list"}, {"thread", "list"}, {"login"}} {
		cmd := s.command(args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}}
		_, errs, code := capture(cmd)
		if code == -1 && os.Getenv("CI") != "true" && strings.Contains(errs, "operation not permitted") {
			t.Skip("no user namespaces here: ", errs)
		}
		if code != 6 || !strings.Contains(errs, "outside of this container") || !strings.Contains(errs, "try: run the command where the server runs") || strings.Contains(errs, "jsonrpc") {
			t.Errorf("thole %q: %d %s", args, code, errs)
		}
	}
}

func TestIdleExit(t *testing.T) {
	s := newSite(t)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for flag, want := range map[string]string{"-1s": "must not be negative", "3h": "must be longer than daemon.idle_exit"} {
		if _, errs, code := s.run("daemon", "run", "--idle-timeout", flag); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("--idle-timeout %s: %d %s", flag, code, errs)
		}
	}
	start := func() chan error {
		cmd := s.command("daemon", "run", "--home", s.home)
		cmd.Env = append(cmd.Env, "THOLE_DAEMON_IDLE_EXIT=300ms") // the key, by itself
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
	s.must(&r, "job", "submit", "--target", "desktop", "--thread-id", "t")
	var now wire.Status // asked at once, before the idle rules looked again
	if s.must(&now, "daemon", "status"); now.Staying != "jobs are running" {
		t.Errorf("a job runs and the daemon stays because %q", now.Staying)
	}
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
