package up

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/test/e2e/home"
)

// A demo needs no agent and leaves nothing in the user's own home: it says what to try, and
// mends its sample repository, with an approval and a diff on the way.
func TestADemoHasAHomeAndARepositoryOfItsOwn(t *testing.T) {
	_, err := exec.LookPath("git")
	lab.Need(t, "git", err)
	h := home.New(t)
	own := filepath.Join(h.Dir, ".thole-demo")
	env := []string{"PATH=/usr/bin:/bin", "HOME=" + h.Dir}
	up := exec.Command(h.Binary, "up", "--demo", "--no-browser", "--listen", "127.0.0.1:0")
	var said lockedBuffer
	up.Env, up.Dir, up.Stdout, up.Stderr = env, h.Dir, &said, &said
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	gone := make(chan error, 1)
	go func() { gone <- up.Wait() }()
	thole := func(args ...string) (string, error) {
		cmd := exec.Command(h.Binary, args...)
		cmd.Env, cmd.Dir = append(env, "THOLE_HOME="+own), h.Dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	defer func() {
		_, _ = thole("thread", "close", "--all", "--interrupt")
		_ = up.Process.Signal(syscall.SIGTERM)
		<-gone
		if t.Failed() {
			t.Log(said.String())
		}
	}()
	poll.Until(t, "the demo", func() bool { return strings.Contains(said.String(), "fix the greeting") })
	if !strings.Contains(said.String(), "in a home of its own: "+own) {
		t.Errorf("it does not say where it is: %s", said.String())
	}
	out, err := thole("run", "hello")
	if err != nil || !strings.Contains(out, "Try:") || !strings.Contains(out, "on branch thole/hello-") {
		t.Fatalf("%v: %s", err, out)
	}
	out, err = thole("thread", "start", "--profile", "ask")
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	id := strings.Fields(out)[1]
	if out, err := thole("thread", "send", "--detach", id, "Fix the greeting, please"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for range 3 { // the test, the change, the test again
		poll.Until(t, "an approval", func() bool {
			out, err := thole("thread", "answer", id, "--decision", "allow")
			return err == nil && strings.Contains(out, "answered")
		})
	}
	poll.Until(t, "the end", func() bool {
		out, err := thole("thread", "show", id)
		return err == nil && strings.Contains(out, "ok: Hello, thole!") && strings.Contains(out, "take it over with")
	})
	if diff, err := thole("thread", "diff", id); err != nil || !strings.Contains(diff, "+echo \"Hello, ${1:-world}!\"") {
		t.Errorf("the diff: %v: %s", err, diff)
	}
	if _, err := os.Stat(filepath.Join(h.Dir, ".thole")); !os.IsNotExist(err) {
		t.Errorf("the user's own home was touched: %v", err)
	}
	if sample, err := os.ReadFile(filepath.Join(h.Dir, ".thole-demo-sample", "greet.sh")); err != nil || !bytes.Contains(sample, []byte("Helo")) {
		t.Errorf("the sample: %s %v", sample, err)
	}
}

// lockedBuffer is written by a program while a test reads it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
