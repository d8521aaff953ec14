package notify

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/backoff"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/internal/thread"

	thole "github.com/tholehq/thole"
)

// hostile are titles that would do something if a shell, a terminal, an option parser or a
// desktop read them.
var hostile = map[string]string{
	"$(touch pwned); `touch pwned` | touch pwned & '\"": "$(touch pwned); `touch pwned` | touch pwned & '\"",
	"two\nlines\r\nTHOLE_EVENT=forged":                  "two lines THOLE_EVENT=forged",
	"\x1b]0;title\x07\x1b[31mred\u009b31m":              "]0;title[31mred31m",
	"--urgency=critical":                                "--urgency=critical",
	"-x\x00nul \xff\u202egnp.exe\u200b":                 "-xnul gnp.exe",
	`<img src="file:///x"/> &amp; \074b\076`:            `<img src="file:///x"/> &amp; \074b\076`,
}

func TestACommandGetsTitlesAsText(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "do-not-pass")
	for title, want := range hostile {
		dir := t.TempDir()
		b := newBench(t, storetest.SQLite(t))
		tell := script(t, dir, `cd "$1" && cat > body && env -0 > env && printf '%s' "$THOLE_TITLE" > title && printf '%s\n' "$@" > args`)
		target := Command([]string{tell, dir, "--flag $HOME"}, os.Getenv)
		failed := make(chan error, 1)
		stop := b.notify(Config{Page: "http://127.0.0.1:7433", Targets: []Target{{Name: "command", Send: func(ctx context.Context, n Notice) error {
			n.Title = line(title, titleRunes) // a store may refuse a NUL before
			err := target.Send(ctx, n)
			failed <- err
			return err
		}}}})
		b.turn(b.create(thread.Create{Name: "x"}), time.Second, ends(thole.OutcomeCompleted))
		if err := next(t, failed); err != nil {
			t.Fatal(err)
		}
		stop()
		read := func(name string) string {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		n := notice(t, []byte(read("body")))
		if read("title") != want || n.Title != want || n.Event != Done || n.URL != "http://127.0.0.1:7433/c/"+n.Thread {
			t.Errorf("%q: the variable is %q, the notice %+v", title, read("title"), n)
		}
		if read("args") != dir+"\n--flag $HOME\n" {
			t.Errorf("arguments %q", read("args"))
		}
		vars := map[string]string{}
		for entry := range strings.SplitSeq(strings.TrimSuffix(read("env"), "\x00"), "\x00") {
			name, value, _ := strings.Cut(entry, "=")
			vars[name] = value
		}
		if vars["THOLE_EVENT"] != Done || vars["THOLE_THREAD"] != n.Thread || vars["THOLE_URL"] != n.URL || vars["PATH"] == "" || vars["OPENAI_API_KEY"] != "" {
			t.Errorf("variables %v", vars)
		}
		if _, err := os.Stat(filepath.Join(dir, "pwned")); err == nil {
			t.Errorf("%q was run", title)
		}
	}
}

func TestTheDesktopGetsTitlesAsText(t *testing.T) {
	for title, want := range map[string]string{
		"--urgency=critical":                     "--urgency=critical",
		`<img src="file:///x"/> &amp; \074b\076`: `&lt;img src="file:///x"/&gt; &amp;amp; &#92;074b&#92;076`,
		"$(x)\n\x1b[31m":                         "$(x) [31m",
	} {
		dir := t.TempDir()
		sender := script(t, dir, `cd "${0%/*}" && printf '%s\n' "$@" > args`)
		err := Desktop(sender, os.Getenv).Send(t.Context(), Notice{Event: Ask, Title: line(title, titleRunes), Ask: &NoticeAsk{Kind: "file_change"}})
		args, _ := os.ReadFile(filepath.Join(dir, "args"))
		if err != nil || string(args) != "--app-name=thole\n--urgency=critical\n--\nWaits for you\n"+want+" (file change)\n" {
			t.Errorf("%v: %q", err, args)
		}
	}
}

// A command that takes too long is ended with its children.
func TestACommandIsEnded(t *testing.T) {
	dir := t.TempDir()
	hang := script(t, dir, "sleep 1000 & echo $! > "+dir+"/pid; wait")
	err := command([]string{hang}, os.Getenv, time.Second).Send(t.Context(), Notice{Event: Done})
	if err == nil || !strings.Contains(err.Error(), "more than 1s") {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "the child is gone", func() bool { return dead(pid) })
	failing := script(t, dir, "printf 'no\\033[31m way' >&2; exit 3")
	if err := Command([]string{failing}, os.Getenv).Send(t.Context(), Notice{}); err == nil || !strings.Contains(err.Error(), `exit status 3: no\u001b[31m way`) {
		t.Error(err)
	}
}

// dead counts one that nobody has waited for: its parent may be a container's first process.
func dead(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(stat), ") Z ")
}

var quick = backoff.Policy{Min: time.Millisecond, Max: time.Millisecond}

func TestAWebhookIsSigned(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	type heard struct {
		body      []byte
		signature string
		kind      string
	}
	got := make(chan heard, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- heard{body, r.Header.Get(SignatureHeader), r.Header.Get("Content-Type")}
	}))
	defer srv.Close()
	defer http.DefaultClient.CloseIdleConnections()
	b.notify(Config{Targets: []Target{Webhook(srv.URL+"/hook", "the key")}})
	b.turn(b.create(thread.Create{Name: "mend\nit"}), time.Second, said("words"), ends(thole.OutcomeCompleted))
	h := next(t, got)
	mac := hmac.New(sha256.New, []byte("the key"))
	mac.Write(h.body)
	if h.signature != "sha256="+hex.EncodeToString(mac.Sum(nil)) || h.kind != "application/json" {
		t.Errorf("%+v", h)
	}
	if n := notice(t, h.body); n.Title != "mend it" || n.Event != Done || strings.Contains(string(h.body), "words") || strings.Contains(string(h.body), "the key") {
		t.Errorf("%s", h.body)
	}
}

func TestAWebhookIsTriedAgain(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	var elsewhere, calls atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	hang := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		n := calls.Add(1)
		switch r.URL.Path {
		case "/third":
			if n < 3 {
				w.WriteHeader(http.StatusBadGateway)
			}
		case "/never":
			w.WriteHeader(http.StatusInternalServerError)
		case "/wrong":
			w.WriteHeader(http.StatusForbidden)
		case "/away":
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		case "/get":
			http.Redirect(w, r, "/ok", http.StatusFound)
		case "/here":
			http.Redirect(w, r, "/ok", http.StatusPermanentRedirect)
		case "/ok":
			if r.Method != http.MethodPost {
				t.Error(r.Method)
			}
		case "/hang":
			<-hang
		}
	}))
	defer srv.Close()
	defer close(hang)
	for path, want := range map[string]struct {
		calls int32
		err   string
	}{
		"/third": {3, ""}, "/never": {3, "answered 500"}, "/wrong": {1, "answered 403"}, "/away": {1, "redirects elsewhere"},
		"/get": {1, "redirects elsewhere"}, "/here": {2, ""}, "/hang": {3, "Timeout"},
	} {
		calls.Store(0)
		most := 5 * time.Second
		if path == "/hang" {
			most = 50 * time.Millisecond
		}
		err := webhook(srv.URL+path+"?token=hidden", "", most, quick).Send(t.Context(), Notice{Event: Done})
		if calls.Load() != want.calls || (err == nil) != (want.err == "") || err != nil && (!strings.Contains(err.Error(), want.err) || strings.Contains(err.Error(), "hidden")) {
			t.Errorf("%s: %d calls, %v", path, calls.Load(), err)
		}
	}
	if elsewhere.Load() != 0 {
		t.Error("another host was asked")
	}
}

// The end of the owner does not wait for a webhook that hangs.
func TestAHangingWebhookDelaysNoEnd(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	b := newBench(t, storetest.SQLite(t))
	hang, came := make(chan struct{}), make(chan struct{}, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { came <- struct{}{}; <-hang }))
	defer srv.Close()
	defer close(hang)
	stop := b.notify(Config{Targets: []Target{Webhook(srv.URL, "")}})
	b.turn(b.create(thread.Create{Name: "x"}), time.Second, ends(thole.OutcomeCompleted))
	next(t, came)
	began := time.Now()
	stop()
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("the end took %s", took)
	}
}
