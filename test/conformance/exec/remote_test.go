//go:build linux

package exec_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	osexec "os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tholehq/thole/client/execclient"
	"github.com/tholehq/thole/internal/execserver"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/relay"
	"github.com/tholehq/thole/internal/relay/noise"
	"github.com/tholehq/thole/internal/relay/registry"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/transport/ws"
	"github.com/tholehq/thole/internal/version"
	"github.com/tholehq/thole/protocol/exec"
	frames "github.com/tholehq/thole/protocol/relay"
)

const relayToken = "a-token-for-both-roles"

// door is a listener whose connections can be cut.
type door struct {
	URL string

	mu    sync.Mutex
	conns []net.Conn
}

// cut resets every connection.
func (d *door) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.conns {
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	}
	d.conns = nil
}

// relayDoors serves one registry with a door for executors and one for harnesses:
// each is given a rendezvous behind the door at which it asked.
func relayDoors(t testing.TB) (executors, harnesses *door) {
	t.Helper()
	tokens, err := registry.ParseTokens(relayToken)
	if err != nil {
		t.Fatal(err)
	}
	reg := registry.New(registry.Config{Tokens: tokens})
	open := func() *door {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		d := &door{URL: "http://" + l.Addr().String()}
		srv := &http.Server{Handler: reg, ReadHeaderTimeout: time.Minute, ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.conns = append(d.conns, c)
			return ctx
		}}
		done := make(chan struct{})
		go func() { defer close(done); _ = srv.Serve(l) }()
		t.Cleanup(func() { _ = srv.Close(); <-done })
		return d
	}
	executors, harnesses = open(), open()
	t.Cleanup(reg.Close) // before its listeners
	return executors, harnesses
}

// quick are timers for tests that wait for a reconnection.
var quick = relay.Timers{RetryMin: 50 * time.Millisecond, RetryMax: 200 * time.Millisecond, ConnectRetry: 50 * time.Millisecond}

func registryClient(t testing.TB, d *door, environment string) *relay.Registry {
	t.Helper()
	r, err := relay.NewRegistry(d.URL, environment, func() (string, error) { return relayToken, nil })
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func identity(t testing.TB) *noise.Identity {
	t.Helper()
	id, err := noise.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// runExecutor runs an Executor until the test ends, and returns when it can be reached.
func runExecutor(t testing.TB, e *relay.Executor) {
	t.Helper()
	ready := make(chan struct{}, 100)
	e.OnReady = func(frames.Registration) { ready <- struct{}{} }
	if e.Timers == (relay.Timers{}) {
		e.Timers = quick
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("executor: %v", err)
		}
	})
	select {
	case <-ready:
	case err := <-done:
		done <- nil
		t.Fatalf("executor: %v", err)
	}
}

// ourExecutor serves a tapped exec-server of thole at a door.
func ourExecutor(t testing.TB, d *door, environment string) *tapped {
	t.Helper()
	p := &tapped{methods: map[string]int{}, started: make(chan string, 100), srv: execserver.New(execserver.Config{Version: version.Codex})}
	t.Cleanup(p.srv.Close)
	runExecutor(t, &relay.Executor{Registry: registryClient(t, d, environment), Identity: identity(t), Serve: func(ctx context.Context, s jsonrpc.Stream) {
		_ = p.srv.Serve(ctx, tapStream{s, p})
	}})
	return p
}

// realRemote starts the real codex as executor, or as forwarder.
func realRemote(t testing.TB, d *door, environment string, args ...string) {
	t.Helper()
	home := t.TempDir()
	cmd := osexec.Command(lab.Codex(t), append(append([]string{"exec-server"}, args...), "--remote", d.URL, "--environment-id", environment)...)
	cmd.Env = []string{"HOME=" + home, "CODEX_HOME=" + home, "PATH=/usr/bin:/bin", "CODEX_API_KEY=" + relayToken}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = io.Discard
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
}

// through is our client's way to an environment.
func through(t testing.TB, d *door, environment string) func(context.Context) (execclient.Stream, error) {
	t.Helper()
	return (&relay.Dialer{Registry: registryClient(t, d, environment), Identity: identity(t), Timers: quick}).Dial
}

// noiseHarness is the environment of a real codex that uses a relay.
func noiseHarness(d *door, environment string) []string {
	return []string{
		"CODEX_EXEC_SERVER_NOISE_REGISTRY_URL=" + d.URL, "CODEX_EXEC_SERVER_NOISE_ENVIRONMENT_ID=" + environment,
		"CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN=" + relayToken,
	}
}

// TestRelayClientConformance runs the client suite through a relay, on our executor,
// the real one, and on forwarders of both to servers of both.
func TestRelayClientConformance(t *testing.T) {
	for name, start := range map[string]func(t *testing.T, d *door){
		"thole": func(t *testing.T, d *door) { ourExecutor(t, d, "box") },
		"codex": func(t *testing.T, d *door) { realRemote(t, d, "box") },
		"thole forwards codex": func(t *testing.T, d *door) {
			url, _ := realServer(t)
			runExecutor(t, &relay.Executor{Registry: registryClient(t, d, "box"), Identity: identity(t), Serve: func(ctx context.Context, s jsonrpc.Stream) {
				dest, err := ws.Dial(ctx, url, ws.DialOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				relay.Pipe(ctx, s, dest)
			}})
		},
		"codex forwards thole": func(t *testing.T, d *door) {
			url, _ := serve(t, execserver.Config{})
			realRemote(t, d, "box", "forward", "--connect", url)
		},
	} {
		t.Run(name, func(t *testing.T) {
			executors, harnesses := relayDoors(t)
			start(t, executors)
			for _, c := range []struct {
				name string
				run  func(t *testing.T, ctx context.Context, r *remote)
			}{
				{"one shot", oneShot}, {"stdin", stdinEcho}, {"terminal", terminalEcho}, {"terminate", terminate},
				{"refusals", refusals}, {"large output", largeOutput}, {"cut", cutAndResume}, {"files", files},
			} {
				t.Run(c.name, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
					defer cancel()
					c.run(t, ctx, connectBy(t, through(t, harnesses, "box"), execclient.Options{CallFor: 20 * time.Second}))
				})
			}
		})
	}
}

// TestRelayCodexHarness: the real client on our executor through our relay, with
// either socket cut in the middle of a command.
func TestRelayCodexHarness(t *testing.T) {
	for _, cut := range []string{"nothing", "executor", "harness"} {
		t.Run(cut, func(t *testing.T) {
			executors, harnesses := relayDoors(t)
			c, srv := newCodex(t), ourExecutor(t, executors, "box")
			c.env = noiseHarness(harnesses, "box")
			dir := t.TempDir()
			stop := make(chan struct{})
			cutter := make(chan struct{})
			go func() {
				defer close(cutter)
				for srv.count(exec.NotifyOutput) == 0 { // the start was answered, output has begun
					select {
					case <-time.After(10 * time.Millisecond):
					case <-stop:
						return
					}
				}
				switch cut { // the command waits until the cut is done
				case "executor":
					executors.cut()
				case "harness":
					harnesses.cut()
				}
				_ = os.WriteFile(dir+"/go", nil, 0o600)
			}()
			out := c.run("", "sim: write made.txt by patch ;; run echo before-$((1+1)); while [ ! -e "+dir+"/go ]; do sleep 0.1; done; sleep 1; echo after-$((2+2)) ;; say Result: %tool%", fullAccess)
			close(stop)
			<-cutter
			if !strings.Contains(out, "before-2") || !strings.Contains(out, "after-4") {
				t.Fatalf("output is missing:\n%s", out)
			}
			if got, err := os.ReadFile(c.dir + "/made.txt"); err != nil || !strings.Contains(string(got), "by patch") {
				t.Fatalf("the patch was not applied: %q, %v\n%s", got, err, out)
			}
			srv.mu.Lock()
			defer srv.mu.Unlock()
			if resumed := len(srv.sessions) > 1 && srv.sessions[len(srv.sessions)-1] != ""; resumed != (cut != "nothing") {
				t.Fatalf("sessions %q after cutting %s", srv.sessions, cut)
			}
		})
	}
}

// TestRelayBothReal: nothing but the relay is thole's.
func TestRelayBothReal(t *testing.T) {
	executors, harnesses := relayDoors(t)
	realRemote(t, executors, "box")
	c := newCodex(t)
	c.env = noiseHarness(harnesses, "box")
	if out := c.run("", "sim: run echo both-$((20+3)) ;; say Result: %tool%", fullAccess); !strings.Contains(out, "both-23") {
		t.Fatalf("the command did not run:\n%s", out)
	}
}

// TestRelayCredentialOnStdin: the real executor with a token that it is given line by line.
func TestRelayCredentialOnStdin(t *testing.T) {
	executors, harnesses := relayDoors(t)
	home := t.TempDir()
	cmd := osexec.Command(lab.Codex(t), "exec-server", "--remote", executors.URL, "--environment-id", "box", "--executor-credential-stdin")
	cmd.Env = []string{"HOME=" + home, "CODEX_HOME=" + home, "PATH=/usr/bin:/bin"}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := json.Marshal(frames.Credential{Version: 1, EnvironmentID: "box", Token: relayToken, ExpiresAt: time.Now().Add(time.Hour).Unix()})
	if _, err := in.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
	r := connectBy(t, through(t, harnesses, "box"), execclient.Options{CallFor: 20 * time.Second})
	oneShot(t, t.Context(), r)
	_ = in.Close()
	if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() < 0 {
		t.Fatal(err)
	}
}

// TestRelayCutInOutput: every byte arrives once although sockets are cut while it is
// written, on both sides in turn.
func TestRelayCutInOutput(t *testing.T) {
	executors, harnesses := relayDoors(t)
	ourExecutor(t, executors, "box")
	r := connectBy(t, through(t, harnesses, "box"), execclient.Options{CallFor: 20 * time.Second, RetryEvery: 10 * time.Millisecond})
	script := shell("a", "for i in 1 2 3 4 5 6; do echo line-$i; read x; done")
	script.PipeStdin = true
	p, err := r.Start(t.Context(), script)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for n := 0; ; {
		ev, err := p.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind == execclient.Output {
			got.Write(ev.Data)
			if n++; n%2 == 0 {
				executors.cut()
			} else {
				harnesses.cut()
			}
			if err := p.Write(t.Context(), []byte("go\n")); err != nil {
				t.Fatal(err)
			}
		}
		if ev.Kind == execclient.Failed || ev.Kind == execclient.Lost {
			t.Fatalf("%+v", ev)
		}
		if ev.Kind == execclient.Closed {
			break
		}
	}
	if want := "line-1\nline-2\nline-3\nline-4\nline-5\nline-6\n"; got.String() != want {
		t.Fatalf("got %q", got.String())
	}
	if r.Resumed() == 0 {
		t.Fatal("nothing was cut")
	}
}
