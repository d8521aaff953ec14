//go:build linux

package exec_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/tholehq/thole/client/execclient"
	"github.com/tholehq/thole/internal/execserver"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/protocol/exec"
)

// Recordings that need more than lines sent and received: an HTTP server, plain
// HTTP, pipes, or time.

// recordedBack is the address of the http server in recording 11.
const recordedBack = "127.0.0.1:40495"

// back answers as the recording's server did.
func back(t *testing.T) string {
	aborting := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h["Content-Type"] = nil
		h["Connection"], h["Keep-Alive"] = []string{"keep-alive"}, []string{"timeout=5"}
		flush := w.(http.Flusher).Flush
		switch r.URL.Path {
		case "/redir":
			h.Set("Location", "/ok")
			w.WriteHeader(http.StatusFound)
			flush()
			fmt.Fprint(w, "moved")
		case "/slow":
			<-r.Context().Done()
		case "/stream":
			h["X-A"] = []string{"1", "2"}
			fmt.Fprint(w, "chunk0")
			flush()
			<-aborting // by then the second request for this stream was refused
			fmt.Fprint(w, "chunk1")
			flush()
			fmt.Fprint(w, "chunk2")
		case "/abort":
			close(aborting)
			h.Set("Content-Length", "100")
			fmt.Fprint(w, "part")
			flush()
			panic(http.ErrAbortHandler)
		default:
			body, _ := io.ReadAll(r.Body)
			h.Set("Content-Type", "text/plain")
			flush()
			seen := map[string]string{"host": r.Host}
			for name, values := range r.Header {
				seen[strings.ToLower(name)] = strings.Join(values, ", ")
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"m": r.Method, "u": r.URL.Path, "h": seen, "b": string(body)})
		}
	}))
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String()
}

func TestReplayWatchAndHTTP(t *testing.T) {
	url, _ := serve(t, execserver.Config{Environ: []string{"MYTOK=sekret", "OPENAI_API_KEY=k", "PATH=/bin", "HOME=" + recordedRoot}})
	r := newReplay(t, "11_0166_watch_discover_http", url)
	root := r.places[0][1]
	r.places = append(r.places, [2]string{recordedBack, back(t)})
	r.before = map[string]func(){exec.NotifyMissingChanged: func() {
		if err := os.WriteFile(filepath.Join(root, "fs/wm2"), nil, 0o600); err != nil {
			t.Error(err)
		}
	}}
	r.run()
}

// TestHTTPHeaderIsNoSmuggler: a header's value cannot become a second header.
func TestHTTPHeaderIsNoSmuggler(t *testing.T) {
	url, _ := serve(t, execserver.Config{})
	r := connect(t, url, execclient.Options{})
	err := r.Call(t.Context(), exec.MethodHTTPRequest, exec.HTTPRequestParams{Method: "GET", URL: "http://127.0.0.1:1/", RequestID: "r",
		Headers: []exec.HTTPHeader{{Name: "A", Value: "x\r\nB: y"}}}, nil)
	if e, ok := err.(*execclient.Error); !ok || e.Code != exec.CodeInvalidParams {
		t.Fatal(err)
	}
}

func TestReplayStdio(t *testing.T) {
	srv := execserver.New(execserver.Config{Environ: []string{"HOME=" + recordedRoot}})
	r := newReplay(t, "18_stdio", "")
	var served chan struct{}
	r.dial = func() (w *wire) { w, served = dialStdio(t, srv); return w }
	r.run()
	<-served
}

// TestReplayDetach is recording 14: what a lost connection leaves for how long.
// By default time runs six times faster.
func TestReplayDetach(t *testing.T) {
	t.Parallel()
	grace := 5 * time.Second
	if os.Getenv("THOLE_SOAK") != "" {
		grace = 30 * time.Second
	}
	url, _ := serve(t, execserver.Config{DetachTTL: grace, RetainClosed: grace, Environ: []string{"HOME=" + recordedRoot}})
	r := newReplay(t, "14_detach_ttl", url)
	began := time.Now()
	r.before = map[string]func(){
		"t=25s alive: 25758":           func() { r.conns["c1"].cut(); <-r.conns["c1"].closed },
		"quick read ~32 s after close": func() { r.conns["c2"].untilForgotten("quick", began.Add(grace)) },
		"process killed 30.1 s after the disconnect": func() {
			cut := time.Now()
			r.conns["c2"].cut()
			<-r.conns["c2"].closed
			poll.Until(t, "the session's process is gone", func() bool { return !child("/bin/sleep 300") })
			if d := time.Since(cut); d < grace {
				t.Errorf("the session ended after %v, recorded after 30.1 s", d)
			}
		},
	}
	r.run()
}

// untilForgotten asks for a process until nobody knows it, which must not be
// before a time.
func (p *player) untilForgotten(id string, before time.Time) {
	p.t.Helper()
	poll.Until(p.t, "process "+id+" is forgotten", func() bool {
		p.send(fmt.Appendf(nil, `{"id":900,"method":"process/read","params":{"processId":%q}}`, id), false)
		return p.answer("900").Error != nil
	})
	if early := time.Until(before); early > 0 {
		p.t.Errorf("process %s was forgotten %v early", id, early)
	}
}

// child reports whether this process has a child with a command line.
func child(line string) bool {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range all {
		raw, _ := os.ReadFile(f)
		if strings.Trim(strings.ReplaceAll(string(raw), "\x00", " "), " ") != line {
			continue
		}
		status, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "status"))
		if strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n", os.Getpid())) {
			return true
		}
	}
	return false
}

// TestReplayUpgrade is recording 08: which upgrades are taken.
func TestReplayUpgrade(t *testing.T) {
	url, _ := serve(t, execserver.Config{})
	f, err := os.Open("testdata/08_http_ws_upgrade.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got := ""
	for scan := bufio.NewScanner(f); scan.Scan(); {
		var l line
		var try struct {
			Try string
			Hdr map[string]string
		}
		if err := json.Unmarshal(scan.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		var verdict string
		switch {
		case json.Unmarshal(l.Msg, &verdict) == nil:
			if got != verdict {
				t.Errorf("%s, recorded %s", got, verdict)
			}
		case json.Unmarshal(l.Msg, &try) == nil && try.Try != "":
			h := http.Header{}
			for k, v := range try.Hdr {
				h.Set(k, v)
			}
			c, resp, err := websocket.Dial(t.Context(), url+try.Try, &websocket.DialOptions{HTTPHeader: h,
				HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
			if got = "upgrade ok"; err != nil {
				got = fmt.Sprintf("upgrade failed HTTP %d", resp.StatusCode)
				continue
			}
			_ = c.CloseNow()
		}
	}
}

// TestWatchMissingMovesDown watches for a path whose directories do not exist yet.
func TestWatchMissingMovesDown(t *testing.T) {
	url, _ := serve(t, execserver.Config{})
	w := handshake(t, url)
	dir := t.TempDir()
	w.send(fmt.Appendf(nil, `{"id":1,"method":"fs/watchMissing","params":{"watchId":5,"missing":["%s/deep/er/x"]}}`, exec.FormatURI(dir)), false)
	if m := <-w.in; string(m.Result) != `{"watching":true}` {
		t.Fatalf("%+v %s", m.Error, m.Result)
	}
	if err := os.MkdirAll(filepath.Join(dir, "deep/er/x"), 0o700); err != nil {
		t.Fatal(err)
	}
	select {
	case m := <-w.in:
		if m.Method != exec.NotifyMissingChanged || string(m.Params) != `{"watchId":5}` {
			t.Fatalf("%+v", m)
		}
	case <-time.After(patience):
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
