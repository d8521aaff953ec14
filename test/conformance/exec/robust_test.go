//go:build linux

package exec_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/client/execclient"
	"github.com/tholehq/thole/internal/execserver"
	"github.com/tholehq/thole/internal/procid"
	"github.com/tholehq/thole/internal/testkit/forks"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/internal/transport/inproc"
	"github.com/tholehq/thole/protocol/exec"
)

// handshake opens a raw session.
func handshake(t testing.TB, url string) *wire {
	w := dial(t, url)
	w.send([]byte(`{"id":"init","method":"initialize","params":{"clientName":"t"}}`), false)
	w.send([]byte(`{"method":"initialized"}`), false)
	<-w.in
	return w
}

// alive: a zombie that waits for init is dead.
func alive(pid int) bool { return procid.Of(pid).Alive() == nil }

// TestBurstOfTerminates writes 500 terminates before reading anything, which
// deadlocks a server that reads and writes in one task.
func TestBurstOfTerminates(t *testing.T) {
	const n = 500
	url, _ := serve(t, execserver.Config{})
	w := handshake(t, url)
	for i := range n {
		w.send(fmt.Appendf(nil, `{"id":%d,"method":"process/start","params":{"processId":"p%d","argv":["/bin/sleep","100"],"cwd":"file:///","env":{},"tty":false}}`, i, i), false)
	}
	for i := range n {
		w.send(fmt.Appendf(nil, `{"id":%d,"method":"process/terminate","params":{"processId":"p%d"}}`, n+i, i), false)
	}
	answers, closed := 0, 0
	for deadline := time.After(30 * time.Second); answers < 2*n || closed < n; {
		select {
		case m := <-w.in:
			switch {
			case m.Error != nil:
				t.Fatalf("%+v", m.Error)
			case m.Method == "":
				answers++
			case m.Method == exec.NotifyClosed:
				closed++
			}
		case <-deadline:
			t.Fatalf("%d answers and %d closed of %d", answers, closed, n)
		}
	}
}

// TestNoLeak runs many processes and looks for descriptors, goroutines and
// zombies left behind.
func TestNoLeak(t *testing.T) {
	n := 600
	if os.Getenv("THOLE_SOAK") != "" {
		n = 10_000
	}
	url, _ := serve(t, execserver.Config{RetainClosed: time.Millisecond})
	r := connect(t, url, execclient.Options{})
	one := func(i int) {
		params := shell(fmt.Sprint(i), "echo x")
		params.TTY, params.PipeStdin = i%10 == 0, i%10 == 1
		p := mustStart(t, t.Context(), r, params)
		mustWait(t, t.Context(), p)
	}
	one(0)
	fds := func() int { e, _ := os.ReadDir("/proc/self/fd"); return len(e) }
	beforeFds, beforeGo := fds(), runtime.NumGoroutine()
	for i := range n {
		one(i + 1)
	}
	poll.Until(t, "descriptors and goroutines back to where they were", func() bool {
		return fds() <= beforeFds+2 && runtime.NumGoroutine() <= beforeGo+2
	})
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range stats {
		raw, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		rest := string(raw[bytes.LastIndexByte(raw, ')')+2:])
		var state string
		var ppid int
		if _, err := fmt.Sscan(rest, &state, &ppid); err == nil && ppid == os.Getpid() && state == "Z" {
			t.Errorf("zombie: %s", raw)
		}
	}
}

// TestSlowReaderThrottlesOnlyItself has a client that never reads while its
// process floods.
func TestSlowReaderThrottlesOnlyItself(t *testing.T) {
	srv := execserver.New(execserver.Config{})
	defer srv.Close()
	slowEnd, serverEnd := inproc.Pipe()
	served := make(chan struct{})
	go func() { defer close(served); _ = srv.Serve(context.Background(), serverEnd) }()
	ctx := t.Context()
	for _, m := range []string{
		`{"id":1,"method":"initialize","params":{"clientName":"t"}}`, `{"method":"initialized"}`,
		`{"id":2,"method":"process/start","params":{"processId":"flood","argv":["/bin/cat","/dev/zero"],"cwd":"file:///","env":{},"tty":false}}`,
	} {
		if err := slowEnd.Write(ctx, []byte(m)); err != nil {
			t.Fatal(err)
		}
	}
	quickEnd, serverEnd2 := inproc.Pipe()
	served2 := make(chan struct{})
	go func() { defer close(served2); _ = srv.Serve(context.Background(), serverEnd2) }()
	c, err := execclient.Open(ctx, execclient.Options{Dial: func(context.Context) (execclient.Stream, error) { return quickEnd, nil }})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		p, err := c.Start(ctx, shell(fmt.Sprint(i), "echo quick"))
		if err != nil {
			t.Fatal(err)
		}
		if res, err := p.Wait(ctx); err != nil || string(res.Stdout) != "quick\n" {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	runtime.GC() // of what other tests left
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	if mem.HeapAlloc > 200<<20 {
		t.Errorf("%d MB of heap: the flood is not throttled", mem.HeapAlloc>>20)
	}
	_ = c.Close()
	_ = slowEnd.Close("")
	<-served
	<-served2
}

// TestLongPollDelaysNothing asks to terminate after a long poll on the same
// connection.
func TestLongPollDelaysNothing(t *testing.T) {
	url, _ := serve(t, execserver.Config{})
	w := handshake(t, url)
	w.send([]byte(`{"id":1,"method":"process/start","params":{"processId":"p","argv":["/bin/sleep","100"],"cwd":"file:///","env":{},"tty":false}}`), false)
	w.send([]byte(`{"id":2,"method":"process/read","params":{"processId":"p","waitMs":60000}}`), false)
	w.send([]byte(`{"id":3,"method":"process/terminate","params":{"processId":"p"}}`), false)
	began := time.Now()
	for {
		m := <-w.in
		if string(m.ID) == "3" {
			break
		}
	}
	if d := time.Since(began); d > 5*time.Second {
		t.Fatalf("terminate took %s", d)
	}
}

// TestDetachedSessionEnds loses a connection for longer than the grace period:
// every process group goes, background children included.
func TestDetachedSessionEnds(t *testing.T) {
	const grace = 400 * time.Millisecond
	url, _ := serve(t, execserver.Config{DetachTTL: grace, RetainClosed: grace})
	w := handshake(t, url)
	dir := t.TempDir()
	for i, script := range []string{
		"echo $$ > a; exec sleep 100",
		"sleep 100 & echo $! > b; wait",                                // in the group
		"sleep 100 >/dev/null 2>&1 </dev/null & echo $! > c",           // outlives its leader, closed
		"trap '' TERM HUP INT; echo $$ > d; while :; do sleep 1; done", // deaf
	} {
		w.send(fmt.Appendf(nil, `{"id":%d,"method":"process/start","params":{"processId":"p%d","argv":["/bin/sh","-c",%q],"cwd":%q,"env":{"PATH":"/bin:/usr/bin"},"tty":false}}`,
			i, i, script, exec.FormatURI(dir)), false)
	}
	pids := map[string]int{}
	poll.Until(t, "all processes", func() bool {
		for _, f := range []string{"a", "b", "c", "d"} {
			raw, err := os.ReadFile(filepath.Join(dir, f))
			pid, perr := strconv.Atoi(strings.TrimSpace(string(raw)))
			if err != nil || perr != nil {
				return false
			}
			pids[f] = pid
		}
		return true
	})
	_ = w.c.CloseNow()
	lost := time.Now()
	for f, pid := range pids {
		if !alive(pid) {
			t.Errorf("%s died with the connection", f)
		}
	}
	for f, pid := range pids {
		poll.Until(t, f+" is gone", func() bool { return !alive(pid) })
	}
	if d := time.Since(lost); d < grace {
		t.Errorf("killed after %s, grace is %s", d, grace)
	}
}

// TestClosedProcessIsForgotten frees the id when its time is over.
func TestClosedProcessIsForgotten(t *testing.T) {
	url, _ := serve(t, execserver.Config{RetainClosed: 200 * time.Millisecond})
	r := connect(t, url, execclient.Options{})
	mustWait(t, t.Context(), mustStart(t, t.Context(), r, shell("p", "true")))
	if err := r.Call(t.Context(), exec.MethodProcessStart, shell("p", "true"), nil); err == nil {
		t.Fatal("the id was free at once")
	}
	poll.Until(t, "the id is free", func() bool { return r.Call(t.Context(), exec.MethodProcessStart, shell("p", "true"), nil) == nil })
}

// TestResize sets a terminal's size, which the original cannot.
func TestResize(t *testing.T) {
	url, _ := serve(t, execserver.Config{})
	r := connect(t, url, execclient.Options{})
	params := shell("p", "read x; stty size")
	params.TTY = true
	p := mustStart(t, t.Context(), r, params)
	if err := p.Resize(t.Context(), 40, 132); err != nil {
		t.Fatal(err)
	}
	if err := p.Write(t.Context(), []byte("\n")); err != nil {
		t.Fatal(err)
	}
	if res := mustWait(t, t.Context(), p); !bytes.Contains(res.Stdout, []byte("40 132")) {
		t.Fatalf("%q", res.Stdout)
	}
	if !r.Info().Capabilities.ProcessResize {
		t.Fatal("resize is not advertised")
	}
}

// TestFilesAndProcessesKeepOrder pipelines a file and the program that needs it.
func TestFilesAndProcessesKeepOrder(t *testing.T) {
	url, _ := serve(t, execserver.Config{})
	w := handshake(t, url)
	dir := t.TempDir()
	data, _ := json.Marshal(bytes.Repeat([]byte("x"), 4<<20))
	for i := range 5 {
		w.send(fmt.Appendf(nil, `{"id":%d,"method":"fs/writeFile","params":{"path":"%s/f%d","dataBase64":%s}}`, 10*i, exec.FormatURI(dir), i, data), false)
		w.send(fmt.Appendf(nil, `{"id":%d,"method":"process/start","params":{"processId":"p%d","argv":["/usr/bin/wc","-c","f%d"],"cwd":"%s","env":{},"tty":false}}`, 10*i+1, i, i, exec.FormatURI(dir)), false)
	}
	for closed := 0; closed < 5; {
		m := <-w.in
		if m.Error != nil {
			t.Fatalf("%+v", m.Error)
		}
		if m.Method == exec.NotifyExited {
			var e exec.ExitedParams
			_ = json.Unmarshal(m.Params, &e)
			if e.ExitCode != 0 {
				t.Fatalf("%s: a start overtook its file", e.ProcessID)
			}
		}
		if m.Method == exec.NotifyClosed {
			closed++
		}
	}
}

// TestStdioEnd kills everything when the one connection ends.
func TestStdioEnd(t *testing.T) {
	w, served := dialStdio(t, execserver.New(execserver.Config{}))
	dir := t.TempDir()
	for _, m := range []string{`{"id":1,"method":"initialize","params":{"clientName":"t"}}`, `{"method":"initialized"}`,
		fmt.Sprintf(`{"id":2,"method":"process/start","params":{"processId":"p","argv":["/bin/sh","-c","echo $$ > pid; sleep 60"],"cwd":"%s","env":{"PATH":"/bin"},"tty":false}}`, exec.FormatURI(dir))} {
		w.send([]byte(m), false)
	}
	var pid int
	poll.Until(t, "the child", func() bool {
		raw, _ := os.ReadFile(filepath.Join(dir, "pid"))
		pid, _ = strconv.Atoi(strings.TrimSpace(string(raw)))
		return pid > 0
	})
	w.cut()
	<-served
	if alive(pid) {
		t.Fatal("the child outlived its server")
	}
}

func osPipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// A chain of forks ends with its process: while its leader lives, and after that with
// the session.
func TestAChainOfForksEnds(t *testing.T) {
	for name, c := range map[string]struct {
		then string // what the leader does
		end  func(t *testing.T, p *execclient.Process, srv *execserver.Server)
	}{
		"terminated": {"sleep 300", func(t *testing.T, p *execclient.Process, _ *execserver.Server) {
			if _, err := p.Terminate(t.Context()); err != nil {
				t.Fatal(err)
			}
		}},
		"the server closes": {"sleep 300", func(_ *testing.T, _ *execclient.Process, srv *execserver.Server) { srv.Close() }},
		"its leader has ended": {"exit 0", func(t *testing.T, p *execclient.Process, srv *execserver.Server) {
			if _, err := p.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			srv.Close()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			url, srv := serve(t, execserver.Config{})
			client, err := execclient.Dial(t.Context(), url, execclient.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			chain := forks.New(t)
			p, err := client.Start(t.Context(), exec.StartParams{
				ProcessID: "p", Argv: []string{"/bin/sh", "-c", "exec >/dev/null 2>&1; " + chain.Command() + " " + c.then}, Cwd: "file:///", Env: map[string]string{"PATH": os.Getenv("PATH")},
			})
			if err != nil {
				t.Fatal(err)
			}
			chain.Await(t)
			c.end(t, p, srv)
			chain.AwaitEnd(t)
		})
	}
}
