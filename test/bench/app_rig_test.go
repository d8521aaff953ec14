//go:build linux

package bench

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/tholetest"
	"github.com/tholehq/thole/protocol/app"
)

// contractSide is one server with one client on one thread; thole and the real
// codex app-server are measured through the same client.
type contractSide struct {
	t      testing.TB
	addr   string
	pid    int // 0 for this process
	c      *appclient.Client
	thread string

	mu   sync.Mutex
	seen map[string]chan time.Time // turn id or "*" by what is waited for
}

func newSide(t testing.TB, addr string, pid int) *contractSide {
	t.Helper()
	s := &contractSide{t: t, addr: addr, pid: pid, seen: map[string]chan time.Time{}}
	s.c = s.dial(s.note)
	yolo, _ := json.Marshal("never")
	sandbox := "danger-full-access"
	v, err := s.c.StartThread(bg(t), app.ThreadStartParams{Settings: app.Settings{ApprovalPolicy: yolo}, Sandbox: &sandbox})
	if err != nil {
		t.Fatal(err)
	}
	s.thread = v.Thread.ID
	s.turn("sim: say warm")
	return s
}

func bg(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func (s *contractSide) dial(note func(appclient.Notification)) *appclient.Client {
	s.t.Helper()
	c, err := appclient.Dial(bg(s.t), s.addr, appclient.Options{Name: "bench", Experimental: true, OnNotification: note})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

func (s *contractSide) note(n appclient.Notification) {
	if n.Method != "turn/started" && n.Method != "turn/completed" {
		return
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch := s.seen[n.Method]; ch != nil {
		ch <- now
	}
}

func (s *contractSide) expect(method string) <-chan time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := make(chan time.Time, 64)
	s.seen[method] = ch
	return ch
}

// turn runs one turn and returns how long turn/started took to come.
func (s *contractSide) turn(text string) time.Duration {
	s.t.Helper()
	started, done := s.expect("turn/started"), s.expect("turn/completed")
	from := time.Now()
	if _, err := s.c.StartTurn(bg(s.t), app.TurnStartParams{ThreadID: s.thread, Input: appclient.Text(text)}); err != nil {
		s.t.Fatal(err)
	}
	at := <-started
	<-done
	return at.Sub(from)
}

// perTurn is how many items a turn of a long thread has.
const perTurn = 50

// fill gives a thread of thole's n items.
func (s *contractSide) fill(n int) {
	s.t.Helper()
	text := "sim: say begin" + strings.Repeat(" ;; say an item like many others", perTurn-2)
	for range (n + perTurn - 1) / perTurn {
		s.turn(text)
	}
}

// pathNote says what a turn of thole's passes in this process.
const pathNote = "In the path: queue, dispatcher, executord with its event log, and the sync behind the turn; executord is in the server's process."

func ourSide(t testing.TB) *contractSide {
	t.Helper()
	rig := tholetest.New(t)
	return newSide(t, rig.Listen("unix://"+filepath.Join(t.TempDir(), "o.sock"), ""), 0)
}

// codexSide is the real server on the scripted model.
func codexSide(t testing.TB) *contractSide {
	t.Helper()
	addr, cmd := startCodex(t, codexHome(t))
	return newSide(t, addr, cmd.Process.Pid)
}

// codexHome is a home of the real agent that knows only the scripted model.
func codexHome(t testing.TB) string {
	t.Helper()
	home := t.TempDir()
	dir := filepath.Join(home, ".codex")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := modelsim.CodexConfig(dir, modelsim.Start(t).URL()); err != nil {
		t.Fatal(err)
	}
	return home
}

// startCodex starts the real server and returns when its socket is there.
func startCodex(t testing.TB, home string) (addr string, cmd *exec.Cmd) {
	t.Helper()
	sock := filepath.Join(home, "c.sock")
	_ = os.Remove(sock) // of a server that was killed
	cmd = exec.Command(lab.Codex(t), "app-server", "--listen", "unix://"+sock)
	cmd.Env = []string{"HOME=" + home, "CODEX_HOME=" + filepath.Join(home, ".codex"), "PATH=/usr/bin:/bin"}
	cmd.Dir = home
	begin(t, cmd)
	appears(t, sock)
	return "unix://" + sock, cmd
}

// begin starts a server that ends with the test at the latest.
func begin(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { finish(cmd) })
}

func finish(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// appears waits for a socket, whose appearance nothing signals.
func appears(t testing.TB, sock string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		if _, err := os.Stat(sock); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("nobody listens on %s", sock)
		}
		time.Sleep(time.Millisecond)
	}
}
