package local_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/execclient"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/executord/terminal"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/testkit/forks"
	"github.com/tholehq/thole/internal/testkit/lab"
	execwire "github.com/tholehq/thole/protocol/exec"
)

var binary string

func TestMain(m *testing.M) {
	var err error
	if binary, err = lab.BuiltThole(); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

type bench struct {
	*testing.T
	driver *local.Driver
	root   string
	id     thole.ExecutorID
}

func setup(t *testing.T, bwrap string) *bench {
	t.Helper()
	root, err := os.MkdirTemp("", "ex") // short: it holds sockets
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, root: root, id: thole.NewID[thole.ExecutorID](time.Now())}
	b.driver = local.New(local.Config{Root: root, Binary: binary, Bwrap: bwrap})
	t.Cleanup(func() {
		if err := b.driver.Remove(context.Background(), b.id); err != nil {
			t.Error(err)
		}
		os.RemoveAll(root)
	})
	if err := b.driver.Create(t.Context(), executor.Spec{ID: b.id, Thread: "thread", Scope: executor.ScopeThread}); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) start() executor.Info {
	b.Helper()
	info, err := b.driver.Start(b.Context(), b.id)
	if err != nil {
		b.Fatal(err)
	}
	return info
}

// run takes one prompt to its end and returns what the commands printed.
func (b *bench) run(info executor.Info, prompt string) string {
	b.Helper()
	return b.take(info, b.request(prompt, thole.ProfileFull))
}

func each(t *testing.T, test func(t *testing.T, bwrap string)) {
	t.Run("bubblewrap", func(t *testing.T) { test(t, lab.Bwrap(t)) })
	t.Run("plain", func(t *testing.T) { test(t, "") })
}

func TestLifecycle(t *testing.T) {
	each(t, func(t *testing.T, bwrap string) {
		b := setup(t, bwrap)
		if info, err := b.driver.Inspect(t.Context(), b.id); err != nil || info.State != executor.Stopped {
			t.Fatal(info, err)
		}
		first := b.start()
		if again := b.start(); again.Boot != first.Boot {
			t.Fatal("a second start replaced a running executor")
		}
		b.run(first, "sim: run echo kept > file.txt")
		// Another driver on the same directory adopts what runs.
		if info, err := local.New(local.Config{Root: b.root, Binary: binary, Bwrap: bwrap}).Inspect(t.Context(), b.id); err != nil || info.Boot != first.Boot {
			t.Fatal(info, err)
		}
		if err := b.driver.Stop(t.Context(), b.id); err != nil {
			t.Fatal(err)
		}
		if info, err := b.driver.Inspect(t.Context(), b.id); err != nil || info.State != executor.Stopped {
			t.Fatal(info, err)
		}
		second := b.start()
		if second.Boot == first.Boot || second.Token == first.Token {
			t.Fatal("a new start kept the old identity")
		}
		if got := b.run(second, "sim: run cat file.txt"); !strings.Contains(got, "kept") {
			t.Fatalf("after a stop the file says %q", got)
		}
		if list, err := b.driver.List(t.Context()); err != nil || len(list) != 1 || list[0].ID != b.id || list[0].Thread != "thread" {
			t.Fatal(list, err)
		}
		if err := b.driver.Remove(t.Context(), b.id); err != nil {
			t.Fatal(err)
		}
		if info, err := b.driver.Inspect(t.Context(), b.id); err != nil || info.State != executor.Missing {
			t.Fatal(info, err)
		}
		if err := b.driver.Remove(t.Context(), b.id); err != nil {
			t.Fatal("removing twice:", err)
		}
	})
}

// A stop reaches whatever the agent started, in a session of its own or not, also
// when executord died without a word before it.
func TestStopReachesEveryDescendant(t *testing.T) {
	each(t, func(t *testing.T, bwrap string) {
		b := setup(t, bwrap)
		info := b.start()
		// A number of seconds nobody else sleeps, to find the process by.
		mark := fmt.Sprint(80000 + os.Getpid()%9999)
		sleeping := func() bool {
			out, err := exec.Command("ps", "-eo", "args").Output()
			if err != nil {
				t.Fatal(err)
			}
			return strings.Contains(string(out), "sleep "+mark)
		}
		client := executorclient.Dial(info.Endpoint, info.Token)
		defer client.Close()
		req := wire.RunRequest{
			Turn: provider.Turn{ID: thole.NewID[thole.TurnID](time.Now()), Input: thole.Text("sim: run setsid sleep " + mark + " & echo up; wait")},
			For:  thole.NewID[thole.TurnID](time.Now()), Thread: "thread", Provider: "test", Session: wire.SessionSettings{Settings: event.Settings{Profile: thole.ProfileFull}},
		}
		if _, err := client.Run(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		await(t, sleeping)
		out, err := exec.Command("pgrep", "-f", "executor serve .*"+b.root).Output()
		if bwrap == "" && err != nil {
			t.Fatal("find executord:", err)
		}
		for _, pid := range strings.Fields(string(out)) {
			if n, err := strconv.Atoi(pid); err == nil && bwrap == "" {
				_ = syscall.Kill(n, syscall.SIGKILL)
			}
		}
		if bwrap == "" {
			await(t, func() bool {
				info, err := b.driver.Inspect(t.Context(), b.id)
				return err == nil && info.State == executor.Stopped
			})
			if !sleeping() {
				t.Fatal("the stray ended by itself: nothing is proven")
			}
		}
		if err := b.driver.Stop(t.Context(), b.id); err != nil {
			t.Fatal(err)
		}
		if sleeping() {
			t.Fatal("a process of the executor outlived its stop")
		}
	})
}

// A stop that ends a person's command is not recorded as the command's own end.
func TestAStopIsNoEndOfACommand(t *testing.T) {
	each(t, func(t *testing.T, bwrap string) {
		b := setup(t, bwrap)
		for range 3 {
			info := b.start()
			client := executorclient.Dial(info.Endpoint, info.Token)
			req := b.request("", thole.ProfileFull)
			req.Turn.Input = thole.Shell("echo up; exec sleep 600")
			if _, err := client.Run(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			up := errors.New("up")
			err := client.Events(t.Context(), req.Turn.ID, 0, func(batch []wire.LogEvent) error {
				for _, ev := range batch {
					if strings.Contains(ev.Event.Delta, "up") {
						return up
					}
				}
				return nil
			})
			if !errors.Is(err, up) {
				t.Fatal(err)
			}
			client.Close()
			if err := b.driver.Stop(t.Context(), b.id); err != nil {
				t.Fatal(err)
			}
			info = b.start()
			client = executorclient.Dial(info.Endpoint, info.Token)
			err = client.Events(t.Context(), req.Turn.ID, 0, func(batch []wire.LogEvent) error {
				for _, ev := range batch {
					if ev.Event.Kind == event.TurnEnded && ev.Event.Outcome == thole.OutcomeCompleted || ev.Event.Kind == event.ItemCompleted && ev.Event.Item.Command.ExitCode != nil {
						t.Errorf("the log says that the command ended: %+v", ev.Event)
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			client.Close()
		}
	})
}

// A stop ends a chain of forks, in order and when executord is dead and nothing
// knows the links but the marker.
func TestStopEndsAChainOfForks(t *testing.T) {
	for name, killed := range map[string]bool{"in order": false, "executord is dead": true} {
		t.Run(name, func(t *testing.T) {
			b := setup(t, "")
			info := b.start()
			client := executorclient.Dial(info.Endpoint, info.Token)
			defer client.Close()
			chain := forks.New(t)
			req := wire.RunRequest{
				Turn: provider.Turn{ID: thole.NewID[thole.TurnID](time.Now()), Input: thole.Text("sim: run " + chain.Command() + " wait; sleep 600")},
				For:  thole.NewID[thole.TurnID](time.Now()), Thread: "thread", Provider: "test", Session: wire.SessionSettings{Settings: event.Settings{Profile: thole.ProfileFull}},
			}
			if _, err := client.Run(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			chain.Await(t)
			if killed {
				if err := syscall.Kill(b.pid(), syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.driver.Stop(t.Context(), b.id); err != nil {
				t.Fatal(err)
			}
			chain.Gone(t)
		})
	}
}

// await polls what has no signal to wait on: another process's state.
func await(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it never came")
		}
	}
}

// Tools lie wherever their user put them, below /tmp too, which is the executor's
// own inside.
func TestToolsAreSeenWhereverTheyLie(t *testing.T) {
	b := setup(t, lab.Bwrap(t))
	dir, err := os.MkdirTemp("/tmp", "tools")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	tool := filepath.Join(dir, "tool")
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(tool, []byte("#!/bin/sh\necho reached\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.driver = local.New(local.Config{Root: b.root, Binary: binary, Bwrap: lab.Bwrap(t), Tools: func() local.Tools { return local.Tools{Readable: []string{tool}} }})
	got := b.run(b.start(), "sim: run "+tool+"; tool; touch /tmp/mine && echo writable; rm "+tool+" 2>/dev/null || echo kept")
	if want := "reached\nreached\nwritable\nkept\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTheSandboxSeesItsOwnFilesOnly(t *testing.T) {
	b := setup(t, lab.Bwrap(t))
	info := b.start()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("do not read"), 0o644); err != nil {
		t.Fatal(err)
	}
	got := b.run(info, "sim: run pwd; cat "+secret+" 2>/dev/null || echo unreadable; touch /usr/x 2>/dev/null || echo readonly; ls /root /home; echo $HOME; ls "+b.root+" 2>&1 || true")
	for _, want := range []string{"/workspace\n", "unreadable", "readonly", "agent", "/home/agent"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	for _, bad := range []string{"do not read", string(b.id)} {
		if strings.Contains(got, bad) {
			t.Errorf("the sandbox saw %q: %q", bad, got)
		}
	}
}

// Terminals and processes are reached through the exec-server on the same
// listener, with the same token.
func TestProcessesThroughTheSameListener(t *testing.T) {
	b := setup(t, lab.Bwrap(t))
	info := b.start()
	addr := "unix://" + strings.TrimPrefix(info.Endpoint, "unix:")
	if _, err := execclient.Dial(t.Context(), addr, execclient.Options{Token: "wrong"}); err == nil {
		t.Fatal("served without the token")
	}
	c, err := execclient.Dial(t.Context(), addr, execclient.Options{Token: info.Token})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p, err := c.Start(t.Context(), execwire.StartParams{ProcessID: "p1", Argv: []string{"/bin/sh", "-c", "pwd"}, Cwd: execwire.FormatURI("/workspace"), Env: map[string]string{}})
	if err != nil {
		t.Fatal(err)
	}
	res, err := p.Wait(t.Context())
	if err != nil || res.ExitCode != 0 || string(res.Stdout) != "/workspace\n" {
		t.Fatalf("%+v, %v", res, err)
	}
}

// Files are opened by executord, which sees more than the agent: links that the agent lays
// in the workspace lead a client of the exec-server to nothing that is executord's.
func TestFilesThroughTheSameListener(t *testing.T) {
	b := setup(t, lab.Bwrap(t))
	info := b.start()
	c, err := execclient.Dial(t.Context(), "unix://"+strings.TrimPrefix(info.Endpoint, "unix:"), execclient.Options{Token: info.Token})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	at := filepath.Join(b.root, string(b.id), "workspace")
	for name, to := range map[string]string{"plain": "kept", "state": "/run/thole/state", "environ": "/proc/self/environ", "made": "/run/thole/state/made", "hop": "state"} {
		if err := os.Symlink(to, filepath.Join(at, name)); err != nil {
			t.Fatal(err)
		}
	}
	write := func(path string) error {
		return c.Call(t.Context(), execwire.MethodWriteFile, execwire.WriteFileParams{Path: execwire.FormatURI(path), Data: "eA=="}, nil)
	}
	read := func(path string) error {
		return c.Call(t.Context(), execwire.MethodReadFile, execwire.PathParams{Path: execwire.FormatURI(path)}, &execwire.ReadFileResult{})
	}
	if err := errors.Join(write("/workspace/kept"), read("/workspace/plain"), write("/workspace/plain")); err != nil {
		t.Errorf("files of the workspace: %v", err)
	}
	for _, path := range []string{"/workspace/made", "/workspace/state/made", "/workspace/hop/made", "/run/thole/state/made"} {
		if err := write(path); err == nil {
			t.Errorf("%s was written", path)
		}
	}
	if err := read("/workspace/environ"); err == nil {
		t.Error("executord's environment was read")
	}
	list := execwire.PathParams{Path: execwire.FormatURI("/workspace/hop")}
	if err := c.Call(t.Context(), execwire.MethodReadDirectory, list, &execwire.ReadDirectoryResult{}); err == nil {
		t.Error("executord's state was listed")
	}
}

func TestAStartThatFailsSaysWhy(t *testing.T) {
	b := setup(t, "")
	d := local.New(local.Config{Root: b.root, Binary: "/bin/false"})
	if _, err := d.Start(t.Context(), b.id); thole.CodeOf(err) != thole.CodeUnavailable || !strings.Contains(err.Error(), "ended at once") {
		t.Fatal(err)
	}
	long := local.New(local.Config{Root: "/" + strings.Repeat("x", 100), Binary: binary})
	if err := long.Check(t.Context()); thole.CodeOf(err) != thole.CodeInvalid || thole.HintOf(err) == "" {
		t.Fatal(err)
	}
}

// Listing takes nothing away: neither from a caller that creates, nor files
// whose label another process deleted.
func TestListTakesNothingAway(t *testing.T) {
	b := setup(t, "")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 300 {
			if _, err := b.driver.List(b.Context()); err != nil {
				b.Error(err)
			}
		}
	}()
	for i := 0; ; i++ {
		id := thole.NewID[thole.ExecutorID](time.Now())
		if err := b.driver.Create(b.Context(), executor.Spec{ID: id, Thread: "thread"}); err != nil {
			t.Fatal(err)
		}
		if info, err := b.driver.Inspect(b.Context(), id); err != nil || info.State != executor.Stopped {
			t.Fatalf("executor %d is %v, %v", i, info.State, err)
		}
		if err := b.driver.Remove(b.Context(), id); err != nil {
			t.Fatal(err)
		}
		select {
		case <-done:
		default:
			continue
		}
		break
	}
	kept := filepath.Join(b.root, string(b.id), "workspace", "file")
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(b.root, string(b.id), "spec.json")); err != nil {
		t.Fatal(err)
	}
	if list, err := b.driver.List(t.Context()); err != nil || len(list) != 0 {
		t.Fatal(list, err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
}

// Executors that take a call and never answer are asked side by side, so that a
// server does not begin later for each of them.
func TestHungExecutorsAreAskedTogether(t *testing.T) {
	b := setup(t, "")
	ids := []thole.ExecutorID{b.id}
	for range 2 {
		id := thole.NewID[thole.ExecutorID](time.Now())
		if err := b.driver.Create(t.Context(), executor.Spec{ID: id, Thread: "thread"}); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	var asked atomic.Int32
	all := make(chan struct{})
	for _, id := range ids {
		own := filepath.Join(b.root, string(id), "own")
		err := os.MkdirAll(own, 0o700)
		if err == nil {
			err = os.WriteFile(filepath.Join(own, "token"), []byte("token"), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		ln, err := net.Listen("unix", filepath.Join(own, "d.sock"))
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		go func() {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			if asked.Add(1) == int32(len(ids)) {
				close(all)
			}
			left := make(chan struct{})
			go func() { defer close(left); _, _ = io.Copy(io.Discard, conn) }()
			select {
			case <-all:
			case <-left:
				t.Error("one was given up before the others were asked")
			}
			_ = conn.Close()
		}()
	}
	if _, err := b.driver.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := asked.Load(); n != int32(len(ids)) {
		t.Errorf("%d were asked", n)
	}
}

// A terminal is inside the same walls as an agent, and ends with the executor.
func TestTerminal(t *testing.T) {
	each(t, func(t *testing.T, bwrap string) {
		b := setup(t, bwrap)
		info := b.start()
		c := executorclient.Dial(info.Endpoint, info.Token)
		defer c.Close()
		conn, err := c.Terminal(t.Context(), terminal.DefaultSize)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		defer time.AfterFunc(2*time.Minute, func() { conn.Close() }).Stop()
		said, buf := "", make([]byte, 4096)
		expect := func(want string) {
			t.Helper()
			for !strings.Contains(said, want) {
				n, err := conn.Read(buf)
				if err != nil {
					t.Fatalf("%v; waited for %q, was told %q", err, want, said)
				}
				said += string(buf[:n])
			}
			_, said, _ = strings.Cut(said, want)
		}
		mark := fmt.Sprint(90000 + os.Getpid()%9999)
		fmt.Fprintf(conn, "echo made here > file.txt; (env -i setsid nohup sleep %s &); stty size; ls -d /root /home/*; echo at=$PWD=\n", mark)
		expect("24 80")
		if bwrap == "" {
			expect("at=" + b.root)
		} else {
			expect("cannot access '/root'")
			expect("/home/agent")
			expect("at=/workspace=")
		}
		if got := b.run(info, "sim: run cat file.txt"); !strings.Contains(got, "made here") {
			t.Errorf("the agent finds %q", got)
		}
		sleeping := func() bool {
			out, err := exec.Command("ps", "-eo", "args").Output()
			if err != nil {
				t.Fatal(err)
			}
			return strings.Contains(string(out), "sleep "+mark)
		}
		await(t, sleeping)
		fmt.Fprint(conn, "sleep 1000\n")
		lost := make(chan error, 1)
		go func() {
			_, err := io.Copy(io.Discard, struct{ io.Reader }{conn})
			lost <- err
		}()
		if err := b.driver.Stop(t.Context(), b.id); err != nil {
			t.Fatal(err)
		}
		if sleeping() {
			t.Error("a process of the terminal outlived the executor")
		}
		if err := <-lost; thole.CodeOf(err) != thole.CodeUnavailable {
			t.Errorf("the client was told %v", err)
		}
	})
}
