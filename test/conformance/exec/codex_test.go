//go:build linux

package exec_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/execserver"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/transport"
	"github.com/tholehq/thole/internal/transport/ws"
	"github.com/tholehq/thole/internal/version"
	"github.com/tholehq/thole/protocol/exec"
)

// tapped is our server with an ear on every message and a hand on every
// connection.
type tapped struct {
	URL  string
	srv  *execserver.Server
	http *http.Server

	mu       sync.Mutex
	methods  map[string]int
	sessions []string // resumeSessionId of every initialize, "" when new
	started  chan string
	conns    []net.Conn
}

type tapStream struct {
	jsonrpc.Stream
	tap *tapped
}

func (s tapStream) Read(ctx context.Context) ([]byte, error) {
	raw, err := s.Stream.Read(ctx)
	if err == nil {
		s.tap.saw(raw)
	}
	return raw, err
}

func (s tapStream) Write(ctx context.Context, raw []byte) error {
	if bytes.Contains(raw, []byte(`"`+exec.NotifyOutput+`"`)) {
		s.tap.mu.Lock()
		s.tap.methods[exec.NotifyOutput]++
		s.tap.mu.Unlock()
	}
	return s.Stream.Write(ctx, raw)
}

func (p *tapped) saw(raw []byte) {
	var m message
	if json.Unmarshal(raw, &m) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.methods[m.Method]++
	switch m.Method {
	case exec.MethodInitialize:
		var in exec.InitializeParams
		_ = json.Unmarshal(m.Params, &in)
		id := ""
		if in.ResumeSessionID != nil {
			id = *in.ResumeSessionID
		}
		p.sessions = append(p.sessions, id)
	case exec.MethodProcessStart:
		var in exec.ProcessParams
		_ = json.Unmarshal(m.Params, &in)
		p.started <- in.ProcessID
	}
}

func (p *tapped) count(method string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.methods[method]
}

// cut resets every connection.
func (p *tapped) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	}
	p.conns = nil
}

func tap(t testing.TB, auth *transport.Auth) *tapped {
	t.Helper()
	p := &tapped{methods: map[string]int{}, started: make(chan string, 100), srv: execserver.New(execserver.Config{Version: version.Codex})}
	h := ws.NewServer(ws.Options{Auth: auth, Path: "/"}, func(ctx context.Context, s jsonrpc.Stream) {
		_ = p.srv.Serve(ctx, tapStream{s, p})
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	hs := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute, ConnContext: func(ctx context.Context, c net.Conn) context.Context {
		p.mu.Lock()
		p.conns = append(p.conns, c)
		p.mu.Unlock()
		return ws.ConnContext(ctx, c)
	}}
	p.http = hs
	done := make(chan struct{})
	go func() { defer close(done); _ = hs.Serve(l) }()
	t.Cleanup(func() {
		_ = hs.Close()
		<-done
		h.Stop()
		p.srv.Close()
	})
	p.URL = "ws://" + l.Addr().String()
	return p
}

// codex is a real codex with a home of its own and the scripted model.
type codex struct {
	t         *testing.T
	bin       string
	home, dir string
	sim       *modelsim.Sim
	env       []string // more of its environment
}

func newCodex(t *testing.T) *codex {
	t.Helper()
	c := &codex{t: t, bin: lab.Codex(t), home: t.TempDir(), dir: t.TempDir(), sim: modelsim.Start(t)}
	if err := modelsim.CodexConfig(c.home, c.sim.URL()); err != nil {
		t.Fatal(err)
	}
	return c
}

// run runs one prompt and returns everything codex printed.
func (c *codex) run(url, prompt string, args ...string) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 50*time.Second)
	defer cancel()
	cmd := osexec.CommandContext(ctx, c.bin, append([]string{"exec", "--skip-git-repo-check"}, append(args, prompt)...)...)
	cmd.Dir = c.dir
	cmd.Env = []string{"HOME=" + c.home, "CODEX_HOME=" + c.home, "PATH=/usr/bin:/bin", "LANG=C.UTF-8"}
	if url != "" {
		cmd.Env = append(cmd.Env, "CODEX_EXEC_SERVER_URL="+url)
	}
	cmd.Env = append(cmd.Env, c.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if ctx.Err() != nil {
		c.t.Fatalf("codex did not end: %v\n%s", err, out.String())
	}
	return out.String()
}

const fullAccess = "--sandbox=danger-full-access"

func TestCodexRunsCommands(t *testing.T) {
	c, srv := newCodex(t), tap(t, nil)
	out := c.run(srv.URL, "sim: run echo sum-$((40+2)); pwd ;; say Result: %tool%", fullAccess)
	if !strings.Contains(out, "sum-42") || !strings.Contains(out, c.dir) {
		t.Fatalf("the command's output is missing:\n%s", out)
	}
	if n := srv.count(exec.MethodProcessRead); n != 0 {
		t.Fatalf("codex read %d times; a complete event stream needs no read", n)
	}
	if srv.count(exec.MethodProcessStart) != 1 || srv.count(exec.MethodProcessTerminate) == 0 {
		t.Fatalf("codex did not use our server: %v", srv.methods)
	}
}

// Codex reads what its queue of 256 events had no room for. Large output written in
// large pieces comes in fewer, however fast each side is.
func TestCodexLargeOutputNeedsNoRead(t *testing.T) {
	c, srv := newCodex(t), tap(t, nil)
	out := c.run(srv.URL, "sim: run head -c 4000000 /dev/zero | tr '\\0' x > big; dd if=big bs=65536 2>/dev/null; echo; echo the-end ;; say Result: %tool%", fullAccess)
	if !strings.Contains(out, "the-end") {
		t.Fatalf("output is missing:\n%.2000s", out)
	}
	if n, parts := srv.count(exec.MethodProcessRead), srv.count(exec.NotifyOutput); n != 0 || parts == 0 || parts >= 256 {
		t.Fatalf("codex read %d times; the output was told in %d parts", n, parts)
	}
}

func TestCodexPatchesUnderASandbox(t *testing.T) {
	c, srv := newCodex(t), tap(t, nil)
	out := c.run(srv.URL, "sim: write made.txt hello patch ;; run echo denied > /etc/thole-probe || echo blocked-$? ;; say Result: %tool%", "--sandbox=workspace-write")
	got, err := os.ReadFile(filepath.Join(c.dir, "made.txt"))
	if err != nil || !strings.Contains(string(got), "hello patch") {
		t.Fatalf("the patch was not applied: %q, %v\n%s", got, err, out)
	}
	if srv.count(exec.MethodWriteFile) == 0 {
		t.Fatalf("the patch did not go through our server: %v", srv.methods)
	}
	if _, err := os.Stat("/etc/thole-probe"); err == nil {
		os.Remove("/etc/thole-probe")
		t.Fatal("a sandboxed command wrote outside its workspace")
	}
	if !strings.Contains(out, "blocked-") {
		t.Fatalf("the sandboxed command did not run:\n%s", out)
	}
}

// TestCodexPlantsNothing: a sandboxed command of the real client leaves behind
// no settings, and neither does what kept it from doing so.
func TestCodexPlantsNothing(t *testing.T) {
	c, srv := newCodex(t), tap(t, nil)
	before, err := os.ReadDir(c.dir)
	if err != nil {
		t.Fatal(err)
	}
	out := c.run(srv.URL, "sim: run (mkdir -p .codex; echo x > .codex/config.toml) || echo blocked-$? ;; say Result: %tool%", "--sandbox=workspace-write")
	if !strings.Contains(out, "blocked-") {
		t.Errorf("the command was not stopped:\n%s", out)
	}
	if after, err := os.ReadDir(c.dir); err != nil || len(after) != len(before) {
		t.Errorf("before %v, after %v, %v", before, after, err)
	}
}

func TestCodexTerminalSession(t *testing.T) {
	c, srv := newCodex(t), tap(t, nil)
	step := func(name, args string) string {
		return fmt.Sprintf(`{"calls":[{"verb":"call","name":%q,"input":%s}]}`, name, args)
	}
	set := func(steps ...string) {
		s, err := modelsim.ParseScript([]byte(`{"steps":[` + strings.Join(steps, ",") + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		c.sim.SetScript("terminal", s)
	}
	start := step("exec_command", `{"cmd":"read line; echo got:$line; tty","tty":true,"yield_time_ms":1500}`)
	set(start)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case id := <-srv.started: // the session's number leads the process id
			n, _, _ := strings.Cut(id, "-")
			set(start, step("write_stdin", `{"session_id":`+n+`,"chars":"typed\n","yield_time_ms":3000}`), `{"text":"over"}`)
		case <-stop:
		}
	}()
	out := c.run(srv.URL, "sim: script terminal", fullAccess)
	if !strings.Contains(out, "over") {
		t.Fatalf("codex did not finish:\n%s", out)
	}
	found := false
	for _, r := range c.sim.Requests() {
		found = found || bytes.Contains(r.Body, []byte("got:typed")) && bytes.Contains(r.Body, []byte("/dev/pts/"))
	}
	if !found || srv.count(exec.MethodProcessWrite) == 0 {
		t.Fatalf("what was typed did not come back: %v\n%s", srv.methods, out)
	}
}

func TestCodexSurvivesACut(t *testing.T) {
	c, srv := newCodex(t), tap(t, nil)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-srv.started:
			select {
			case <-time.After(500 * time.Millisecond): // in the middle of the command
				srv.cut()
			case <-stop:
			}
		case <-stop:
		}
	}()
	out := c.run(srv.URL, "sim: run echo before-$((1+1)); sleep 1.5; echo after-$((2+2)) ;; say Result: %tool%", fullAccess)
	if !strings.Contains(out, "before-2") || !strings.Contains(out, "after-4") {
		t.Fatalf("output around the cut is missing:\n%s", out)
	}
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if len(srv.sessions) < 2 || srv.sessions[len(srv.sessions)-1] == "" {
		t.Fatalf("codex did not resume its session: %q", srv.sessions)
	}
}

func TestCodexThroughEnvironmentsFile(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("s3cret-capability"), 0o600); err != nil {
		t.Fatal(err)
	}
	auth, err := transport.NewAuth(transport.AuthOptions{Mode: transport.ModeCapability, TokenFile: token})
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := func(t *testing.T, entry string) string {
		c := newCodex(t)
		toml := "default = \"box\"\ninclude_local = false\n[[environments]]\nid = \"box\"\n" + entry + "\n"
		if err := os.WriteFile(filepath.Join(c.home, "environments.toml"), []byte(toml), 0o600); err != nil {
			t.Fatal(err)
		}
		return c.run("", "sim: run echo via-$((20+3)) ;; say Result: %tool%", fullAccess)
	}
	t.Run("token", func(t *testing.T) {
		srv := tap(t, auth)
		out := run(t, fmt.Sprintf("url = %q\nauth_bearer_token = \"s3cret-capability\"", srv.URL))
		if !strings.Contains(out, "via-23") || srv.count(exec.MethodProcessStart) != 1 {
			t.Fatalf("the command did not run on our server: %v\n%s", srv.methods, out)
		}
	})
	t.Run("program", func(t *testing.T) {
		out := run(t, fmt.Sprintf("program = %q\nargs = [%q]", self, serveStdioArg))
		if !strings.Contains(out, "via-23") {
			t.Fatalf("the command did not run on our server:\n%s", out)
		}
	})
}

// TestCodexReportsALostSession: the server is there, its sessions are gone.
func TestCodexReportsALostSession(t *testing.T) {
	if os.Getenv("THOLE_SOAK") == "" {
		t.Skip("waits for codex's patience with a silent command; set THOLE_SOAK=1")
	}
	c, srv := newCodex(t), tap(t, nil)
	go func() {
		<-srv.started
		time.Sleep(500 * time.Millisecond) // into the command
		srv.srv.Close()
	}()
	out := c.run(srv.URL, "sim: run sleep 60; echo never-$((1+1)) ;; say Result: %tool%", fullAccess)
	if !strings.Contains(out, "Result:") || strings.Contains(out, "never-2") {
		t.Fatalf("the turn did not go on after the loss:\n%s", out)
	}
}

func TestCodexReportsAKilledServer(t *testing.T) {
	if os.Getenv("THOLE_SOAK") == "" {
		t.Skip("waits for codex's recovery; set THOLE_SOAK=1")
	}
	c, srv := newCodex(t), tap(t, nil)
	go func() {
		<-srv.started
		time.Sleep(500 * time.Millisecond) // into the command
		_ = srv.http.Close()
		srv.cut()
		srv.srv.Close()
	}()
	out := c.run(srv.URL, "sim: run sleep 60; echo never-$((1+1)) ;; say Result: %tool%", fullAccess)
	if !strings.Contains(out, "Result:") || strings.Contains(out, "never-2") {
		t.Fatalf("the turn did not go on after the loss:\n%s", out)
	}
}
