// Package team tries `thole serve` as an operator does: the real binary on a real
// PostgreSQL and a real S3 server, from a file of configuration.
package team

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/test/e2e/home"
)

// configured writes the configuration of a server on a database and, if there is one, a bucket.
// store and rest are further lines of [store], and of [http] and what follows.
func configured(t *testing.T, dir, dsn string, bucket *lab.S3Bucket, store, rest string) string {
	t.Helper()
	text := fmt.Sprintf("[store]\nurl = %q\n%s\n[http]\nlisten = \"127.0.0.1:0\"\n%s\n", dsn, store, rest)
	if bucket != nil {
		secret := filepath.Join(dir, "s3.key")
		if err := os.WriteFile(secret, []byte(bucket.SecretKey+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("[objects]\nkind = \"s3\"\nendpoint = \"http://%s\"\nbucket = %q\nregion = %q\naccess_key = %q\nsecret_key_file = %q\n", bucket.Endpoint, bucket.Bucket, bucket.Region, bucket.AccessKey, secret)
	}
	path := filepath.Join(t.TempDir(), "team.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

type server struct {
	t      *testing.T
	cmd    *exec.Cmd
	url    string
	base   string
	listen string
	set    string // the set-up link
	errs   *bytes.Buffer
	over   chan struct{}
}

func serve(t *testing.T, h *home.Home, args ...string) *server {
	t.Helper()
	s := &server{t: t, errs: &bytes.Buffer{}, over: make(chan struct{})}
	s.cmd = h.Command(append([]string{"serve", "--demo", "--json"}, args...)...)
	s.cmd.Stderr = s.errs
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	go func() { _ = s.cmd.Wait(); close(s.over) }()
	t.Cleanup(s.kill)
	var page struct{ URL, Base, Listen, Setup string }
	if err != nil || json.Unmarshal(line, &page) != nil || page.URL == "" {
		t.Fatalf("thole serve printed %q and %s", line, s.errs)
	}
	s.url, s.base, s.listen, s.set = page.URL, page.Base, page.Listen, page.Setup
	return s
}

func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.over
}

func (s *server) stop() {
	s.t.Helper()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.over:
	case <-time.After(time.Minute):
		s.t.Fatalf("thole serve does not end: %s", s.errs)
	}
}

// browser is one that logged in.
type browser struct {
	http.Client
	proof string
}

func (s *server) login() *browser {
	s.t.Helper()
	jar, _ := cookiejar.New(nil)
	b := &browser{Client: http.Client{Jar: jar}}
	page, code, _ := strings.Cut(s.url, "#code=")
	res, err := b.Post(page, "application/json", strings.NewReader(`{"code":"`+code+`"}`))
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	var in struct{ Proof string }
	if err := json.NewDecoder(res.Body).Decode(&in); err != nil || in.Proof == "" {
		s.t.Fatalf("login: %d, %v", res.StatusCode, err)
	}
	b.proof = in.Proof
	return b
}

func (s *server) status(b *browser, path string) int {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), "GET", s.base+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Thole-Proof", b.proof)
	res, err := b.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// with asks with an API token.
func (s *server) with(token, path string) int {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), "GET", s.base+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	return res.StatusCode
}

func run(t *testing.T, h *home.Home, want int, args ...string) (string, string) {
	t.Helper()
	out, errs, code := h.Run(args...)
	if code != want {
		t.Fatalf("thole %v: exit %d, not %d\n%s%s", args, code, want, out, errs)
	}
	return strings.TrimSpace(out), errs
}

func password(t *testing.T, dsn, word string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "alter user thole password '"+word+"'"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(path, []byte(word+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestServeOnPostgreSQL(t *testing.T) {
	dsn, bucket := lab.Postgres(t), lab.S3(t)
	const word = "word-of-the-database"
	secret := password(t, dsn, word)
	h := home.New(t)
	file := configured(t, h.Dir, dsn, &bucket, fmt.Sprintf("password_file = %q", secret), "")

	if out, _ := run(t, h, 0, "db", "migrate", "--config", file); !strings.Contains(out, "applied 1 identity") {
		t.Errorf("migrate: %s", out)
	}
	if out, _ := run(t, h, 0, "db", "migrate", "--config", file); !strings.Contains(out, "up to date") {
		t.Errorf("a second migrate: %s", out)
	}
	s := serve(t, h, "--config", file)
	browser := s.login()
	if got := s.status(browser, "/readyz"); got != 200 {
		t.Errorf("/readyz: %d", got)
	}
	if got := s.status(browser, "/sessions"); got != 200 {
		t.Errorf("/sessions after the login: %d", got)
	}
	thread, _ := run(t, h, 0, "-q", "thread", "start", "--empty", "--profile", "full")
	run(t, h, 0, "thread", "send", thread, "sim: write notes.txt kept")
	if out, _ := run(t, h, 0, "check"); !strings.Contains(out, "all rules hold") {
		t.Errorf("check: %s", out)
	}
	if out, _, _ := h.Run("doctor"); !strings.Contains(out, "ok       store") || strings.Contains(out, word) {
		t.Errorf("doctor: %s", out)
	}
	for _, of := range [][]string{{"config", "show"}, {"db", "check"}} {
		if out, errs := run(t, h, 0, of...); strings.Contains(out+errs, word) || !strings.Contains(out, "postgres://") {
			t.Errorf("%v: %s%s", of, out, errs)
		}
	}
	if _, errs := run(t, h, 7, "db", "backup", "copy.db"); !strings.Contains(errs, "pg_dump") {
		t.Errorf("backup: %s", errs)
	}

	// A second process on the home is refused.
	other := home.New(t)
	if _, errs := run(t, h, 5, "serve", "--demo", "--config", file); !strings.Contains(errs, "up already") {
		t.Errorf("a second process: %s", errs)
	}

	// Killed, it goes on at once: the home proves that nobody else has its leases.
	s.kill()
	if _, err := os.Stat(filepath.Join(h.Dir, "thole.db")); err == nil {
		t.Error("the home has a SQLite store")
	}
	s = serve(t, h)
	if got := s.status(browser, "/sessions"); got != 200 {
		t.Errorf("the login did not outlive the server: %d", got)
	}
	if out, _ := run(t, h, 0, "thread", "send", thread, "sim: run cat notes.txt"); !strings.Contains(out, "| kept") {
		t.Errorf("the thread after a kill: %s", out)
	}
	run(t, h, 0, "thread", "close", thread)
	if strings.Contains(s.errs.String(), word) {
		t.Errorf("the password is in the log: %s", s.errs)
	}
	s.stop()

	// It left, so another machine takes over at once, with the files from the object store.
	next := serve(t, other, "--config", file)
	if out, _ := run(t, other, 0, "thread", "send", thread, "sim: run cat notes.txt"); !strings.Contains(out, "| kept") {
		t.Errorf("the thread on another machine: %s", out)
	}
	next.stop()

	// The home stays bound: what finds no server does not begin a SQLite store.
	plain := configured(t, h.Dir, "sqlite:", nil, "", "")
	if _, errs := run(t, h, 4, "serve", "--demo", "--config", plain); !strings.Contains(errs, "belongs to a PostgreSQL store") {
		t.Errorf("back to SQLite: %s", errs)
	}
}

func TestStoresThatCannotBeUsed(t *testing.T) {
	dsn := lab.Postgres(t)
	h := home.New(t)
	gone := strings.Replace(dsn, "postgres:///", "postgres:///nothing", 1)
	for what, c := range map[string]struct{ url, want string }{
		"nobody listens":     {"postgres://thole@127.0.0.1:1/thole", "gives no connection"},
		"no database":        {gone, "does not exist"},
		"a password in it":   {"postgres://thole:hush@127.0.0.1:1/thole", "password_file"},
		"another scheme":     {"mysql://thole@127.0.0.1/thole", "postgres://"},
		"a file of SQLite's": {"sqlite:/tmp/x", "sqlite: alone"},
	} {
		file := configured(t, h.Dir, c.url, nil, "", "")
		out, errs, code := h.Run("serve", "--demo", "--config", file)
		if code == 0 || !strings.Contains(errs, c.want) || !strings.Contains(errs, "try:") || strings.Contains(out+errs, "hush") {
			t.Errorf("%s: exit %d: %s%s", what, code, out, errs)
		}
	}
	if _, err := os.Stat(filepath.Join(h.Dir, "store.json")); err == nil {
		t.Error("a home was bound to a store that it never reached")
	}
}
