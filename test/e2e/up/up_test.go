// Package up tries `thole up` as a person does: the real binary on a home of its
// own, from the first line it prints to Ctrl-C.
package up

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/test/e2e/home"
)

type running struct {
	t    *testing.T
	home *home.Home
	cmd  *exec.Cmd
	url  string // the one-time link
	base string
	addr string // it listens there

	token string // sent with requests
	errs  *bytes.Buffer
	over  chan struct{} // closed when the process has ended
}

func start(t *testing.T, h *home.Home, args ...string) *running {
	t.Helper()
	r := &running{t: t, home: h, errs: &bytes.Buffer{}, over: make(chan struct{})}
	r.cmd = h.Command(append([]string{"up", "--demo", "--no-browser", "--json", "--listen", "127.0.0.1:0"}, args...)...)
	r.cmd.Stderr = r.errs
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	go func() { _ = r.cmd.Wait(); close(r.over) }()
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		<-r.over
	})
	var page struct{ URL, Base, Listen string }
	if err != nil || json.Unmarshal(line, &page) != nil || page.URL == "" {
		t.Fatalf("thole up printed %q and %s", line, r.errs)
	}
	r.url, r.base, r.addr = page.URL, page.Base, page.Listen
	return r
}

// as sends a token with each request.
func (r *running) as(token string) *running {
	with := *r
	with.token = token
	return &with
}

// token makes one on the command line.
func token(t *testing.T, h *home.Home, flags ...string) string {
	t.Helper()
	out, words, code := h.Run(append([]string{"token", "create", "test"}, flags...)...)
	if code != 0 {
		t.Fatal(words)
	}
	return strings.TrimSpace(out)
}

// enter posts the code of a link, as the page that it opens does.
func enter(t *testing.T, browser *http.Client, link string) *http.Response {
	t.Helper()
	page, code, _ := strings.Cut(link, "#code=")
	res, err := browser.Post(page, "application/json", strings.NewReader(`{"code":"`+code+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func (r *running) get(path string) (int, string) {
	r.t.Helper()
	req, err := http.NewRequest("GET", r.base+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func (r *running) waits() {
	r.t.Helper()
	select {
	case <-r.over:
	case <-time.After(60 * time.Second):
		r.t.Fatalf("thole does not end; it said %s", r.errs)
	}
}

func TestUpFromTheFirstLineToCtrlC(t *testing.T) {
	h := home.New(t)
	r := start(t, h)
	if code, body := r.get("/readyz"); code != http.StatusOK {
		t.Errorf("/readyz: %d %s", code, body)
	}
	if code, body := r.get("/metrics"); code != http.StatusUnauthorized {
		t.Errorf("/metrics without a token: %d %s", code, body)
	}
	if code, body := r.as(token(t, h, "--scope", "read")).get("/metrics"); code != http.StatusOK || !strings.Contains(body, "thole_build_info{") {
		t.Errorf("/metrics: %d %s", code, body)
	}

	// A second one says so and how to get to the first.
	if _, words, code := h.Run("up", "--demo", "--no-browser"); code != 5 || !strings.Contains(words, "is up already") || !strings.Contains(words, "thole login") {
		t.Errorf("a second one: exit %d: %s", code, words)
	}

	// The link works once; another comes from the command it names.
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	follow := func(link string) int {
		res := enter(t, browser, link)
		defer res.Body.Close()
		return res.StatusCode
	}
	if got := follow(r.url); got != http.StatusOK {
		t.Errorf("the link: %d", got)
	}
	if got := follow(r.url); got == http.StatusOK {
		t.Error("the link logged a second browser in")
	}
	link, words, _ := h.Run("login")
	if got := follow(strings.TrimSpace(link)); got != http.StatusOK {
		t.Errorf("thole login: %d %s", got, words)
	}

	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	r.waits()
	if code := r.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("Ctrl-C: exit %d: %s", code, r.errs)
	}
	if _, err := os.Stat(filepath.Join(h.Dir, "thole.sock")); !os.IsNotExist(err) {
		t.Errorf("the socket stayed: %v", err)
	}
}

func TestUpRefuses(t *testing.T) {
	t.Run("an address in use", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		h := home.New(t)
		_, words, code := h.Run("up", "--demo", "--no-browser", "--listen", l.Addr().String())
		if code != 7 || !strings.Contains(words, "in use") || !strings.Contains(words, "try:") {
			t.Errorf("exit %d: %s", code, words)
		}
	})
	t.Run("an address that strangers reach", func(t *testing.T) {
		h := home.New(t)
		_, words, code := h.Run("up", "--demo", "--no-browser", "--listen", "0.0.0.0:0")
		if code != 2 && code != 6 || !strings.Contains(words, "loopback") || !strings.Contains(words, "thole token create") {
			t.Errorf("exit %d: %s", code, words)
		}
	})
	t.Run("a key nobody knows", func(t *testing.T) {
		h := home.New(t)
		if err := os.WriteFile(filepath.Join(h.Dir, "config.toml"), []byte("[http]\nlissen = \"x\"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, words, code := h.Run("up", "--demo", "--no-browser"); code != 2 || !strings.Contains(words, "http.lissen") {
			t.Errorf("exit %d: %s", code, words)
		}
	})
	t.Run("a home that cannot be written", func(t *testing.T) {
		h := home.New(t)
		lab.Disk(t, h.Dir, "size=1m,mode=0700", true)
		_, words, code := h.Run("up", "--demo", "--no-browser")
		if code != 7 || !strings.Contains(words, "read-only") || !strings.Contains(words, "try:") {
			t.Errorf("exit %d: %s", code, words)
		}
	})
}
