package pipeline

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/daemon/daemonclient"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// rig is a `thole up --demo` on a home of its own, which can be killed and begun
// again.
type rig struct {
	path              string
	home, base, token string
	warning           string
	model             string // URL of a scripted model that outlives the program; empty for its own
	users             bool   // the models are those of a user
	env               []string
	driver            *local.Driver
	log               *lockedBuffer
	cmd               *exec.Cmd
	stop              func()
}

// up starts thole with the real agents. Settings are environment variables.
func up(t *testing.T, settings ...string) *rig {
	t.Helper()
	r := newRig(t)
	// As installers do: a link in a directory that no sandbox shows.
	claude := filepath.Join(r.home, "claude")
	if err := os.Symlink(lab.Claude(t), claude); err != nil {
		t.Fatal(err)
	}
	r.env = append(r.env, "THOLE_PROVIDERS_CODEX="+lab.Codex(t), "THOLE_PROVIDERS_CLAUDE="+claude, "THOLE_PROVIDERS_OPENCODE="+lab.Opencode(t))
	r.env = append(r.env, settings...)
	r.begin(t)
	return r
}

// newRig is a home without agents, but for the scripted one. Nothing runs yet.
func newRig(t testing.TB, settings ...string) *rig {
	t.Helper()
	path := lab.Thole(t)
	home, err := os.MkdirTemp("", "tp") // short: it holds sockets
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{path: path, home: home, stop: func() {}, log: &lockedBuffer{}, driver: local.New(local.Config{Root: filepath.Join(home, "x"), Binary: path})}
	t.Cleanup(func() {
		ctx := context.Background() // many executors may take long
		list, err := r.driver.List(ctx)
		if err != nil {
			t.Error(err)
		}
		for _, info := range list {
			if t.Failed() {
				log, _ := os.ReadFile(filepath.Join(home, "x", string(info.ID), "own", "executord.log"))
				t.Logf("executor %s of %s is %s: %s", info.ID, info.Thread, info.State, tail(log))
			}
			if err := r.driver.Remove(ctx, info.ID); err != nil {
				t.Error(err)
			}
		}
		os.RemoveAll(home)
	})
	t.Cleanup(func() {
		r.stop()
		if t.Failed() {
			t.Logf("thole up said:\n%s", tail(r.log.Bytes()))
		}
	})
	none := filepath.Join(home, "none")
	r.env = append([]string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + home, "THOLE_HOME=" + home, "THOLE_EXECUTOR_SWEEP_EVERY=1h",
		"THOLE_PROVIDERS_CODEX=" + none, "THOLE_PROVIDERS_CLAUDE=" + none, "THOLE_PROVIDERS_OPENCODE=" + none,
	}, settings...)
	return r
}

// begin starts the program and waits until its page is there. The first time it
// logs in.
func (r *rig) begin(t testing.TB) {
	t.Helper()
	args := []string{"up", "--no-browser", "--json", "--listen", "127.0.0.1:0"}
	if !r.users {
		args = append(args, "--demo", "--demo-model", r.model)
	}
	cmd := exec.Command(r.path, args...)
	cmd.Env, cmd.Stderr = r.env, r.log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.cmd = cmd
	r.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		kill.Stop()
	})
	line, err := bufio.NewReader(out).ReadBytes('}')
	var page struct{ URL, Base, Warning string }
	if err == nil {
		err = json.Unmarshal(line, &page)
	}
	if err != nil {
		t.Fatalf("thole up printed %q: %v\n%s", line, err, tail(r.log.Bytes()))
	}
	r.base, r.warning = page.Base, page.Warning
	if r.token == "" {
		r.login(t, page.URL)
	}
}

// murder kills the program without a word; executors live on.
func (r *rig) murder(t testing.TB) {
	t.Helper()
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = r.cmd.Wait()
	r.stop = func() {}
}

// lockedBuffer takes what several processes say.
type lockedBuffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) Bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.b.Bytes())
}

// login uses the link once and makes a token with what it gives.
func (r *rig) login(t testing.TB, link string) {
	t.Helper()
	page, code, _ := strings.Cut(link, "#code=")
	res, err := http.Post(page, "application/json", strings.NewReader(`{"code":"`+code+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var login struct{ Proof string }
	if err := json.NewDecoder(res.Body).Decode(&login); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest("POST", r.base+"/auth/tokens", strings.NewReader(`{"name":"test"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Origin", r.base)
	req.Header.Set("Thole-Proof", login.Proof)
	for _, cookie := range res.Cookies() {
		req.AddCookie(cookie)
	}
	var got struct{ Token string }
	if err := do(req, &got); err != nil {
		t.Fatal(err)
	}
	r.token = got.Token
}

func do(req *http.Request, into any) error {
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", req.Method, req.URL.Path, res.Status, body)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(body, into)
}

func (r *rig) call(t testing.TB, method, path string, body, into any) {
	t.Helper()
	var send io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		send = bytes.NewReader(data)
	}
	req, err := http.NewRequest(method, r.base+path, send)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.token)
	req.Header.Set("Content-Type", "application/json")
	if err := do(req, into); err != nil {
		t.Fatal(err)
	}
}

// owner calls a method on the home's socket.
func (r *rig) owner(t testing.TB, method string, params any) {
	t.Helper()
	if err := (&daemonclient.Client{Home: r.home, NoStart: true}).Call(t.Context(), method, params, nil); err != nil {
		t.Fatal(err)
	}
}

// executor is what exists for a thread, not what a row says.
func (r *rig) executor(t testing.TB, id string) (executor.Info, bool) {
	t.Helper()
	list, err := r.driver.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range list {
		if string(info.Thread) == id {
			return info, true
		}
	}
	return executor.Info{}, false
}

// kill ends every process of an executor at once, as a power cut would.
func (r *rig) kill(t testing.TB, info executor.Info) {
	t.Helper()
	r.killThose(t, info, func(string) bool { return true })
}

// killAgent ends an executor's CLI and nothing else.
func (r *rig) killAgent(t testing.TB, info executor.Info, name string) {
	t.Helper()
	r.killThose(t, info, func(proc string) bool {
		exe, err := os.Readlink(filepath.Join(proc, "exe"))
		return err == nil && filepath.Base(exe) == name
	})
}

func (r *rig) killThose(t testing.TB, info executor.Info, which func(proc string) bool) {
	t.Helper()
	killed := 0
	for _, p := range marks(t) {
		if !bytes.Contains(p.data, []byte("THOLE_EXECUTOR="+string(info.ID))) || !which(p.dir) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(p.dir))
		if err != nil {
			t.Fatal(err)
		}
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	if killed == 0 {
		t.Fatal("there was no process to kill")
	}
}

func tail(b []byte) string {
	if len(b) > 4000 {
		b = b[len(b)-4000:]
	}
	return string(b)
}
