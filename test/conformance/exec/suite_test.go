//go:build linux

package exec_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/tholehq/thole/client/execclient"
	"github.com/tholehq/thole/internal/execserver"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/transport/ws"
	"github.com/tholehq/thole/protocol/exec"
)

// realServer starts the real codex exec-server and returns its URL. It puts the links that its
// sandbox helper is started by below its home, but not if that lies in the temporary directory,
// and then every restricted file call fails: it gets a temporary directory of its own.
func realServer(t testing.TB) (url string, pid int) {
	t.Helper()
	return lab.Launch(t, "/usr/bin/env", "TMPDIR="+t.TempDir(), lab.Codex(t), "exec-server", "--listen", "ws://127.0.0.1:0")
}

// remote is a server under test and our client's connections to it.
type remote struct {
	*execclient.Client
	mu      sync.Mutex
	streams []execclient.Stream
}

func (r *remote) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.streams {
		_ = s.Close("")
	}
	r.streams = nil
}

func connect(t testing.TB, url string, o execclient.Options) *remote {
	t.Helper()
	return connectBy(t, func(ctx context.Context) (execclient.Stream, error) { return ws.Dial(ctx, url, ws.DialOptions{}) }, o)
}

func connectBy(t testing.TB, dial func(context.Context) (execclient.Stream, error), o execclient.Options) *remote {
	t.Helper()
	r := &remote{}
	o.Dial = func(ctx context.Context) (execclient.Stream, error) {
		s, err := dial(ctx)
		if err == nil {
			r.mu.Lock()
			r.streams = append(r.streams, s)
			r.mu.Unlock()
		}
		return s, err
	}
	c, err := execclient.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	r.Client = c
	t.Cleanup(func() { _ = c.Close() })
	return r
}

func shell(id, script string) exec.StartParams {
	return exec.StartParams{ProcessID: id, Argv: []string{"/bin/sh", "-c", script}, Cwd: "file:///", Env: map[string]string{"PATH": "/usr/bin:/bin"}}
}

// TestClientConformance runs our client against our server and the real one.
func TestClientConformance(t *testing.T) {
	servers := map[string]func(t *testing.T) string{
		"thole": func(t *testing.T) string { url, _ := serve(t, execserver.Config{}); return url },
		"codex": func(t *testing.T) string { url, _ := realServer(t); return url },
	}
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			url := start(t)
			for _, c := range []struct {
				name string
				run  func(t *testing.T, ctx context.Context, r *remote)
			}{
				{"one shot", oneShot}, {"stdin", stdinEcho}, {"terminal", terminalEcho}, {"terminate", terminate},
				{"refusals", refusals}, {"large output", largeOutput}, {"lag", lag}, {"cut", cutAndResume}, {"files", files}, {"edges of files", fileEdges},
			} {
				t.Run(c.name, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
					defer cancel()
					c.run(t, ctx, connect(t, url, execclient.Options{}))
				})
			}
		})
	}
}

func mustStart(t *testing.T, ctx context.Context, r *remote, p exec.StartParams) *execclient.Process {
	t.Helper()
	proc, err := r.Start(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	return proc
}

func mustWait(t *testing.T, ctx context.Context, p *execclient.Process) execclient.Result {
	t.Helper()
	res, err := p.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func oneShot(t *testing.T, ctx context.Context, r *remote) {
	p := mustStart(t, ctx, r, shell("a", "echo out; echo err >&2; exit 3"))
	res := mustWait(t, ctx, p)
	if string(res.Stdout) != "out\n" || string(res.Stderr) != "err\n" || res.ExitCode != 3 || res.SandboxDenied {
		t.Fatalf("%+v", res)
	}
	if p.Reads() != 0 {
		t.Fatalf("%d reads on the clean path", p.Reads())
	}
}

func stdinEcho(t *testing.T, ctx context.Context, r *remote) {
	params := shell("a", "read a; read b; echo $b-$a")
	params.PipeStdin = true
	p := mustStart(t, ctx, r, params)
	for _, s := range []string{"x\n", "y\n"} {
		if err := p.Write(ctx, []byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	if res := mustWait(t, ctx, p); string(res.Stdout) != "y-x\n" {
		t.Fatalf("%+v", res)
	}
}

func terminalEcho(t *testing.T, ctx context.Context, r *remote) {
	params := shell("a", "stty size; read a; echo got:$a")
	params.TTY = true
	p := mustStart(t, ctx, r, params)
	if err := p.Write(ctx, []byte("hi\n")); err != nil {
		t.Fatal(err)
	}
	if res := mustWait(t, ctx, p); !bytes.Contains(res.Stdout, []byte("24 80\r\n")) || !bytes.Contains(res.Stdout, []byte("got:hi\r\n")) {
		t.Fatalf("%q", res.Stdout)
	}
}

func terminate(t *testing.T, ctx context.Context, r *remote) {
	p := mustStart(t, ctx, r, shell("a", "sleep 100 & wait"))
	if running, err := p.Terminate(ctx); err != nil || !running {
		t.Fatal(running, err)
	}
	if res := mustWait(t, ctx, p); res.ExitCode != 137 {
		t.Fatalf("%+v", res)
	}
	if running, err := p.Terminate(ctx); err != nil || running {
		t.Fatal(running, err)
	}
}

func refusals(t *testing.T, ctx context.Context, r *remote) {
	p := mustStart(t, ctx, r, shell("a", "sleep 100"))
	defer p.Terminate(ctx)
	code := func(err error) int64 {
		var e *execclient.Error
		if !errors.As(err, &e) {
			return 0
		}
		return e.Code
	}
	for name, c := range map[string]struct {
		method string
		params any
		code   int64
	}{
		"duplicate id":   {exec.MethodProcessStart, shell("a", "true"), exec.CodeInvalidRequest},
		"empty argv":     {exec.MethodProcessStart, map[string]any{"processId": "b", "argv": []string{}, "cwd": "file:///", "env": map[string]string{}, "tty": false}, exec.CodeInvalidParams},
		"native cwd":     {exec.MethodProcessStart, map[string]any{"processId": "b", "argv": []string{"true"}, "cwd": "/", "env": map[string]string{}, "tty": false}, exec.CodeInvalidParams},
		"missing cwd":    {exec.MethodProcessStart, map[string]any{"processId": "b", "argv": []string{"/bin/true"}, "cwd": "file:///no/such", "env": map[string]string{}, "tty": false}, exec.CodeInternal},
		"unknown read":   {exec.MethodProcessRead, exec.ProcessParams{ProcessID: "nope"}, exec.CodeInvalidRequest},
		"foreign path":   {exec.MethodReadFile, exec.PathParams{Path: "file:///C:/x"}, exec.CodeInvalidRequest},
		"http path":      {exec.MethodReadFile, exec.PathParams{Path: "http://x/"}, exec.CodeInvalidParams},
		"empty PATH":     {exec.MethodProcessStart, map[string]any{"processId": "b", "argv": []string{"true"}, "cwd": "file:///", "env": map[string]string{"PATH": ""}, "tty": false}, exec.CodeInternal},
		"unknown method": {"no/such", nil, exec.CodeMethodNotFound},
		"null path":      {exec.MethodReadFile, map[string]any{"path": nil}, exec.CodeInvalidParams},
	} {
		if err := r.Call(ctx, c.method, c.params, nil); code(err) != c.code {
			t.Errorf("%s: %v, want code %d", name, err, c.code)
		}
	}
	for id, status := range map[string]string{"nope": exec.WriteUnknownProcess, "a": exec.WriteStdinClosed} {
		var res exec.WriteResult
		if err := r.Call(ctx, exec.MethodProcessWrite, exec.WriteParams{ProcessID: id, Chunk: []byte("x"), WriteID: "1"}, &res); err != nil || res.Status != status {
			t.Errorf("write to %s: %+v, %v", id, res, err)
		}
	}
	if err := r.Call(ctx, exec.MethodProcessStart, shell("b", "true"), nil); err != nil {
		t.Errorf("a refused start left a trace: %v", err)
	}
}

func largeOutput(t *testing.T, ctx context.Context, r *remote) {
	p := mustStart(t, ctx, r, shell("a", "seq 1 400000"))
	res := mustWait(t, ctx, p)
	var want bytes.Buffer
	for i := 1; i <= 400000; i++ {
		fmt.Fprintln(&want, i)
	}
	if res.Lost == 0 && !bytes.Equal(res.Stdout, want.Bytes()) {
		t.Fatalf("got %d bytes, want %d", len(res.Stdout), want.Len())
	}
	if res.Lost != 0 && p.Reads() == 0 {
		t.Fatal("output was lost without a read")
	}
}

// lag lets the consumer sleep through more output than the window holds.
func lag(t *testing.T, ctx context.Context, r *remote) {
	p := mustStart(t, ctx, r, shell("a", "i=0; while [ $i -lt 30 ]; do head -c 100000 /dev/zero | tr '\\0' a; i=$((i+1)); done; printf end"))
	watch := func() bool { // by a second door: the process is over
		var res exec.ReadResult
		wait := uint64(1000)
		after := uint64(1 << 40)
		err := r.Call(ctx, exec.MethodProcessRead, exec.ReadParams{ProcessID: "a", AfterSeq: &after, WaitMs: &wait}, &res)
		return err == nil && res.Closed
	}
	for !watch() {
		if ctx.Err() != nil {
			t.Fatal("the process did not end")
		}
	}
	res := mustWait(t, ctx, p)
	if !bytes.HasSuffix(res.Stdout, []byte("end")) || res.ExitCode != 0 {
		t.Fatalf("%d bytes, %+v", len(res.Stdout), res.ExitCode)
	}
	if n := len(res.Stdout); n > 3_000_003 || n < 3_000_003 && res.Lost == 0 {
		t.Fatalf("%d bytes with %d lost", n, res.Lost)
	}
	if p.Reads() != 1 {
		t.Fatalf("%d reads, want 1", p.Reads())
	}
}

func cutAndResume(t *testing.T, ctx context.Context, r *remote) {
	params := shell("a", "for i in 0 1 2 3 4 5 6 7 8 9; do echo tick$i; sleep 0.1; done; read x; echo got:$x; exit 7")
	params.PipeStdin = true
	p := mustStart(t, ctx, r, params)
	var out bytes.Buffer
	var last uint64
	for cuts := 0; ; {
		ev, err := p.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind == execclient.Output {
			out.Write(ev.Data)
			if ev.Seq <= last {
				t.Fatalf("sequence %d after %d", ev.Seq, last)
			}
			last = ev.Seq
		}
		if ev.Kind == execclient.Lost || ev.Kind == execclient.Failed {
			t.Fatalf("%+v", ev)
		}
		if cuts < 2 && bytes.Contains(out.Bytes(), fmt.Appendf(nil, "tick%d", 2+4*cuts)) {
			cuts++
			r.cut()
			if cuts == 2 {
				if err := p.Write(ctx, []byte("once\n")); err != nil {
					t.Fatal(err)
				}
			}
		}
		if ev.Kind == execclient.Exited && ev.ExitCode != 7 {
			t.Fatalf("%+v", ev)
		}
		if ev.Kind == execclient.Closed {
			break
		}
	}
	want := "tick0\ntick1\ntick2\ntick3\ntick4\ntick5\ntick6\ntick7\ntick8\ntick9\ngot:once\n"
	if out.String() != want {
		t.Fatalf("%q", out.String())
	}
	if r.Resumed() != 2 {
		t.Fatalf("resumed %d times", r.Resumed())
	}
}

func files(t *testing.T, ctx context.Context, r *remote) {
	dir := t.TempDir()
	uri := exec.FormatURI(filepath.Join(dir, "a b#.txt"))
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<17) // 2 MiB
	open := exec.OpenParams{HandleID: "w", Path: uri, Mode: exec.OpenReplace}
	if err := r.Call(ctx, exec.MethodOpen, open, nil); err != nil {
		t.Fatal(err)
	}
	for off := 0; off < len(data); off += exec.MaxBlock {
		if err := r.Call(ctx, exec.MethodWriteBlock, exec.WriteBlockParams{HandleID: "w", Offset: uint64(off), Chunk: data[off : off+exec.MaxBlock]}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Call(ctx, exec.MethodClose, exec.HandleParams{HandleID: "w"}, nil); err != nil {
		t.Fatal(err)
	}
	var got exec.ReadFileResult
	if err := r.Call(ctx, exec.MethodReadFile, exec.PathParams{Path: uri}, &got); err != nil || !bytes.Equal(got.Data, data) {
		t.Fatalf("%d bytes, %v", len(got.Data), err)
	}
	var meta exec.FileMetadata
	if err := r.Call(ctx, exec.MethodGetMetadata, exec.PathParams{Path: uri}, &meta); err != nil || !meta.IsFile || meta.Size != uint64(len(data)) {
		t.Fatalf("%+v, %v", meta, err)
	}
	if err := r.Call(ctx, exec.MethodRemove, exec.RemoveParams{Path: uri}, nil); err != nil {
		t.Fatal(err)
	}
	var e *execclient.Error
	if err := r.Call(ctx, exec.MethodGetMetadata, exec.PathParams{Path: uri}, &meta); !errors.As(err, &e) || e.Code != exec.CodeNotFound {
		t.Fatal(err)
	}
}

func fileEdges(t *testing.T, ctx context.Context, r *remote) {
	var at exec.PathResult
	if err := r.Call(ctx, exec.MethodCanonicalize, exec.PathParams{Path: "file:///"}, &at); err != nil || at.Path != "file:///" {
		t.Errorf("the root is %q, %v", at.Path, err)
	}
	uri := exec.FormatURI(filepath.Join(t.TempDir(), "f"))
	if err := r.Call(ctx, exec.MethodOpen, exec.OpenParams{HandleID: "w", Path: uri, Mode: exec.OpenReplace}, nil); err != nil {
		t.Fatal(err)
	}
	var e *execclient.Error
	for name, p := range map[string]exec.WriteBlockParams{
		"nothing": {HandleID: "w", Chunk: []byte{}}, "beyond the end": {HandleID: "w", Offset: math.MaxInt64, Chunk: []byte("x")},
		"beyond, of no file": {HandleID: "none", Offset: math.MaxUint64, Chunk: []byte("x")},
	} {
		if err := r.Call(ctx, exec.MethodWriteBlock, p, nil); !errors.As(err, &e) || e.Code != exec.CodeInvalidRequest {
			t.Errorf("writing %s: %v", name, err)
		}
	}
	// A refused write costs nothing.
	if err := r.Call(ctx, exec.MethodWriteBlock, exec.WriteBlockParams{HandleID: "w", Chunk: []byte("hi")}, nil); err != nil {
		t.Error(err)
	}
	var got exec.ReadFileResult
	if err := r.Call(ctx, exec.MethodReadFile, exec.PathParams{Path: uri + "/"}, &got); err != nil || string(got.Data) != "hi" {
		t.Errorf("with a slash behind it: %q, %v", got.Data, err)
	}
	if err := r.Call(ctx, exec.MethodOpen, exec.OpenParams{HandleID: "r", Path: uri}, nil); err != nil {
		t.Fatal(err)
	}
	if err := r.Call(ctx, exec.MethodReadBlock, exec.ReadBlockParams{HandleID: "r", Offset: math.MaxUint64, Len: 1}, nil); !errors.As(err, &e) || e.Code != exec.CodeInvalidRequest {
		t.Errorf("reading beyond the end: %v", err)
	}
}
