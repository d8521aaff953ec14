//go:build linux

package exec_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/client/execclient"
	"github.com/tholehq/thole/internal/execserver"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/transport/inproc"
	"github.com/tholehq/thole/internal/transport/stdio"
	"github.com/tholehq/thole/protocol/exec"

	"github.com/coder/websocket"
	"golang.org/x/sys/unix"
)

// handshake opens a raw session.
func handshake(t testing.TB, url string) *wire {
	w := dial(t, url)
	w.send([]byte(`{"id":"init","method":"initialize","params":{"clientName":"t"}}`), false)
	w.send([]byte(`{"method":"initialized"}`), false)
	<-w.in
	return w
}

func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not come true", what)
		}
		time.Sleep(5 * time.Millisecond) // polls the kernel, which gives no signal
	}
}

func alive(pid int) bool { return unix.Kill(pid, 0) == nil }

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
	eventually(t, "descriptors and goroutines back to where they were", func() bool {
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

// TestLongPollDelaysNothing asks to terminate behind a long poll on the same
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
	eventually(t, "all processes", func() bool {
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
		eventually(t, f+" is gone", func() bool { return !alive(pid) })
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
	eventually(t, "the id is free", func() bool { return r.Call(t.Context(), exec.MethodProcessStart, shell("p", "true"), nil) == nil })
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
	srv := execserver.New(execserver.Config{})
	in, client := osPipe(t)
	out, server := osPipe(t)
	done := make(chan error, 1)
	go func() {
		err := srv.Serve(context.Background(), stdio.New(in, server, 0))
		srv.Close()
		done <- err
	}()
	dir := t.TempDir()
	fmt.Fprintf(client, "%s\n\n   \n{bad\n%s\n%s\n", `{"id":1,"method":"initialize","params":{"clientName":"t"}}`, `{"method":"initialized"}`,
		fmt.Sprintf(`{"id":2,"method":"process/start","params":{"processId":"p","argv":["/bin/sh","-c","echo $$ > pid; sleep 60"],"cwd":"%s","env":{"PATH":"/bin"},"tty":false}}`, exec.FormatURI(dir)))
	dec := json.NewDecoder(out)
	seen := map[string]bool{}
	for len(seen) < 3 {
		var m message
		if err := dec.Decode(&m); err != nil {
			t.Fatal(err)
		}
		seen[string(m.ID)] = true
	}
	if !seen["1"] || !seen["-1"] || !seen["2"] {
		t.Fatalf("answers %v", seen)
	}
	var pid int
	eventually(t, "the child", func() bool {
		raw, _ := os.ReadFile(filepath.Join(dir, "pid"))
		pid, _ = strconv.Atoi(strings.TrimSpace(string(raw)))
		return pid > 0
	})
	client.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if alive(pid) {
		t.Fatal("the child outlived its server")
	}
}

func osPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// TestReplayHTTP replays the watch and http recording against a server like the
// one it was recorded with.
func TestReplayHTTP(t *testing.T) {
	back := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/redir":
			http.Redirect(w, r, "/ok", http.StatusFound)
		case "/slow":
			<-r.Context().Done()
		case "/stream":
			w.Header()["X-A"] = []string{"1", "2"}
			for i := range 3 {
				fmt.Fprintf(w, "chunk%d", i)
				w.(http.Flusher).Flush()
				time.Sleep(80 * time.Millisecond) // so that chunks stay apart
			}
		case "/abort":
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "part")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		default:
			fmt.Fprintf(w, "%s %s %v %s", r.Method, r.URL.Path, r.Header["X-A"], r.Header.Get("Authorization"))
		}
	}))
	defer back.Close()
	url, _ := serve(t, execserver.Config{Environ: []string{"MYTOK=sekret", "OPENAI_API_KEY=k", "PATH=/bin"}})
	r := connect(t, url, execclient.Options{})
	do := func(p exec.HTTPRequestParams) (exec.HTTPRequestResult, error) {
		p.RequestID = "r"
		if p.Method == "" {
			p.Method = "GET"
		}
		if !strings.Contains(p.URL, "://") && p.URL != "nope" {
			p.URL = back.URL + p.URL
		}
		var res exec.HTTPRequestResult
		err := r.Call(t.Context(), exec.MethodHTTPRequest, p, &res)
		return res, err
	}
	env, secret, none := "MYTOK", "OPENAI_API_KEY", "NOPE"
	ms := uint64(200)
	for name, c := range map[string]struct {
		p      exec.HTTPRequestParams
		status int
		body   string
		code   int64
	}{
		"get":        {exec.HTTPRequestParams{URL: "/ok"}, 200, "GET /ok [] ", 0},
		"redirect":   {exec.HTTPRequestParams{URL: "/redir"}, 200, "GET /ok [] ", 0},
		"stop":       {exec.HTTPRequestParams{URL: "/redir", RedirectPolicy: "stop"}, 302, "", 0},
		"headers":    {exec.HTTPRequestParams{URL: "/ok", Method: "POST", Headers: []exec.HTTPHeader{{Name: "X-A", Value: "1"}, {Name: "x-a", Value: "2"}, {Name: "Authorization", Value: "Bearer ", ValueEnvVar: &env}}}, 200, "POST /ok [1 2] Bearer sekret", 0},
		"secret":     {exec.HTTPRequestParams{URL: "/ok", Headers: []exec.HTTPHeader{{Name: "A", ValueEnvVar: &secret}}}, 0, "", exec.CodeInvalidParams},
		"no var":     {exec.HTTPRequestParams{URL: "/ok", Headers: []exec.HTTPHeader{{Name: "A", ValueEnvVar: &none}}}, 0, "", exec.CodeInvalidParams},
		"bad header": {exec.HTTPRequestParams{URL: "/ok", Headers: []exec.HTTPHeader{{Name: "A", Value: "x\r\nB: y"}}}, 0, "", exec.CodeInvalidParams},
		"timeout":    {exec.HTTPRequestParams{URL: "/slow", TimeoutMs: &ms}, 0, "", exec.CodeInternal},
		"scheme":     {exec.HTTPRequestParams{URL: "ftp://x/"}, 0, "", exec.CodeInvalidParams},
		"relative":   {exec.HTTPRequestParams{URL: "nope"}, 0, "", exec.CodeInvalidParams},
		"method":     {exec.HTTPRequestParams{URL: "/ok", Method: "G T"}, 0, "", exec.CodeInvalidParams},
		"refused":    {exec.HTTPRequestParams{URL: "http://127.0.0.1:1/"}, 0, "", exec.CodeInternal},
	} {
		res, err := do(c.p)
		var e *execclient.Error
		switch {
		case c.code != 0 && (!asError(err, &e) || e.Code != c.code):
			t.Errorf("%s: %v, want code %d", name, err, c.code)
		case c.code == 0 && (err != nil || res.Status != c.status || c.body != "" && string(res.Body) != c.body):
			t.Errorf("%s: %d %q, %v", name, res.Status, res.Body, err)
		}
	}
	streamed(t, url, back.URL)
}

func asError(err error, e **execclient.Error) bool {
	x, ok := err.(*jsonrpc.Error)
	*e = x
	return ok
}

func streamed(t *testing.T, url, back string) {
	w := handshake(t, url)
	ask := func(id, path string) {
		w.send(fmt.Appendf(nil, `{"id":%q,"method":"http/request","params":{"method":"GET","url":"%s%s","requestId":%q,"streamResponse":true}}`, id, back, path, id), false)
	}
	ask("s1", "/stream")
	ask("s2", "/abort")
	body, seqs := map[string]string{}, map[string]uint64{}
	failed := map[string]bool{}
	for done := 0; done < 2; {
		m := <-w.in
		if m.Method != exec.NotifyBodyDelta {
			continue
		}
		var d exec.BodyDeltaParams
		_ = json.Unmarshal(m.Params, &d)
		if d.Seq != seqs[d.RequestID]+1 {
			t.Fatalf("seq %d after %d", d.Seq, seqs[d.RequestID])
		}
		seqs[d.RequestID] = d.Seq
		body[d.RequestID] += string(d.Delta)
		if d.Done {
			done++
			failed[d.RequestID] = d.Error != nil
		}
	}
	if body["s1"] != "chunk0chunk1chunk2" || failed["s1"] || body["s2"] != "part" || !failed["s2"] {
		t.Fatalf("%q, failed %v", body, failed)
	}
}

// TestWatchMissing follows the recording's sequence of watches.
func TestWatchMissing(t *testing.T) {
	url, _ := serve(t, execserver.Config{})
	w := handshake(t, url)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	u := exec.FormatURI(dir)
	for i, c := range []struct {
		id       int
		rest     string
		watching bool
	}{
		{1, `"missing":["%s/m","%s/no/x"]`, true},
		{2, `"missing":["%s/a"]`, false},
		{3, `"missing":["%s/z"],"present":"%s/a"`, true},
		{4, `"missing":["%s/z"],"present":"%s/nothere"`, false},
		{1, `"missing":["%s/m"]`, false},
		{5, `"missing":["%s/deep/er/x"]`, true},
	} {
		w.send(fmt.Appendf(nil, `{"id":%d,"method":"fs/watchMissing","params":{"watchId":%d,%s}}`, i, c.id, strings.ReplaceAll(c.rest, "%s", u)), false)
		var res exec.WatchMissingResult
		m := <-w.in
		if json.Unmarshal(m.Result, &res) != nil || res.Watching != c.watching {
			t.Fatalf("watch %d: %+v %s", c.id, m.Error, m.Result)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "deep/er/x"), 0o700); err != nil {
		t.Fatal(err)
	}
	select {
	case m := <-w.in:
		if m.Method != exec.NotifyMissingChanged || string(m.Params) != `{"watchId":5}` {
			t.Fatalf("%+v", m)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("no notification")
	}
}

// TestEndpoints asks for what the recording of the HTTP endpoints asked for.
func TestEndpoints(t *testing.T) {
	url, _ := serve(t, execserver.Config{})
	base := "http" + strings.TrimPrefix(url, "ws")
	for _, c := range []struct {
		method, path, origin string
		status               int
	}{
		{"GET", "/readyz", "", 200}, {"GET", "/", "", 400}, {"GET", "/healthz", "", 404}, {"GET", "/foo", "", 404},
		{"GET", "/readyz", "http://x", 403}, {"POST", "/readyz", "", 405}, {"HEAD", "/readyz", "", 200},
	} {
		req, _ := http.NewRequestWithContext(t.Context(), c.method, base+c.path, nil)
		if c.origin != "" {
			req.Header.Set("Origin", c.origin)
		}
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.status {
			t.Errorf("%s %s with origin %q: %d, recorded %d", c.method, c.path, c.origin, resp.StatusCode, c.status)
		}
	}
}

// TestLargeReply sends a file whose encoding needs several frames.
func TestLargeReply(t *testing.T) {
	url, _ := serve(t, execserver.Config{})
	r := connect(t, url, execclient.Options{})
	path := filepath.Join(t.TempDir(), "big")
	data := bytes.Repeat([]byte{0, 1, 2, 3, 4, 5, 6, 255}, 20<<17) // 20 MiB
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	var got exec.ReadFileResult
	if err := r.Call(t.Context(), exec.MethodReadFile, exec.PathParams{Path: exec.FormatURI(path)}, &got); err != nil || !bytes.Equal(got.Data, data) {
		t.Fatalf("%d bytes, %v", len(got.Data), err)
	}
}

// TestFrameLimits sends the sizes that the recording of the limits sent.
func TestFrameLimits(t *testing.T) {
	url, _ := serve(t, execserver.Config{})
	other := handshake(t, url)
	message := func(mib float64) []byte {
		return append(append([]byte(`{"id":7,"method":"environment/status","params":{},"pad":"`), bytes.Repeat([]byte("x"), int(mib*(1<<20)))...), '"', '}')
	}
	w := handshake(t, url)
	w.send(message(15.9), false)
	if m := <-w.in; string(m.ID) != "7" || m.Error != nil {
		t.Fatalf("15.9 MiB in one frame: %+v", m)
	}
	_ = w.c.Write(context.Background(), websocket.MessageText, message(20))
	if !w.isClosed(10 * time.Second) {
		t.Error("20 MiB in one frame was taken")
	}
	w = handshake(t, url)
	out, err := w.c.Writer(context.Background(), websocket.MessageText)
	if err != nil {
		t.Fatal(err)
	}
	whole := message(40)
	for len(whole) > 0 { // every Write is a frame
		n := min(8<<20, len(whole))
		if _, err := out.Write(whole[:n]); err != nil {
			t.Fatal(err)
		}
		whole = whole[n:]
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if m := <-w.in; string(m.ID) != "7" || m.Error != nil {
		t.Fatalf("40 MiB in frames of 8: %+v", m)
	}
	_ = w.c.Write(context.Background(), websocket.MessageText, message(65))
	if !w.isClosed(10 * time.Second) {
		t.Error("65 MiB was taken")
	}
	other.send([]byte(`{"id":8,"method":"environment/status"}`), false)
	if m := <-other.in; string(m.ID) != "8" || m.Error != nil {
		t.Fatalf("another session was disturbed: %+v", m)
	}
}
