package vault

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/test/e2e/home"
)

// screen is thole at a terminal.
type screen struct {
	t   *testing.T
	tty *os.File
	end chan error

	mu  sync.Mutex
	got bytes.Buffer
	new chan struct{} // has a token after more was shown
}

func terminal(t *testing.T, h *home.Home, args ...string) *screen {
	t.Helper()
	cmd := h.Command(args...)
	cmd.Env = append(cmd.Env, "TERM=xterm")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 200})
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{t: t, tty: tty, end: make(chan error, 1), new: make(chan struct{}, 1)}
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := tty.Read(b)
			s.mu.Lock()
			s.got.Write(b[:n])
			s.mu.Unlock()
			select {
			case s.new <- struct{}{}:
			default:
			}
			if err != nil {
				s.end <- cmd.Wait()
				return
			}
		}
	}()
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = tty.Close() })
	return s
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got.String()
}

func (s *screen) until(text string) {
	s.t.Helper()
	late := time.After(60 * time.Second)
	for !strings.Contains(s.text(), text) {
		select {
		case <-s.new:
		case <-late:
			s.t.Fatalf("%q is not shown:\n%s", text, s.text())
		}
	}
}

func (s *screen) types(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.tty, text); err != nil {
		s.t.Fatal(err)
	}
}

func (s *screen) ends(ok bool) {
	s.t.Helper()
	select {
	case err := <-s.end:
		if (err == nil) != ok {
			s.t.Fatalf("ended with %v:\n%s", err, s.text())
		}
	case <-time.After(60 * time.Second):
		s.t.Fatalf("does not end:\n%s", s.text())
	}
}

// kept wants one login in the vault, its kind of note, and nothing left of the room.
func kept(t *testing.T, h *home.Home, name, note string) {
	t.Helper()
	if out := run(t, h, 0, "", "secret", "test", name); !strings.Contains(out, note) {
		t.Errorf("%s is %q, want %q", name, out, note)
	}
	empty(t, h)
}

func empty(t *testing.T, h *home.Home) {
	t.Helper()
	rooms, err := os.ReadDir(filepath.Join(h.Dir, "login-rooms"))
	if err != nil || len(rooms) > 0 {
		t.Errorf("left: %v, %v", rooms, err)
	}
}

func TestLogInWithCodex(t *testing.T) {
	h := home.New(t)
	h.Vars = []string{"THOLE_PROVIDERS_CODEX=" + lab.Codex(t), "OPENAI_API_KEY=sk-of-the-user"}
	run(t, h, 0, "sk-dummy-codex", "provider", "login", "codex", "--", "--with-api-key")
	kept(t, h, "codex", "a login file of codex")
	if _, err := os.Stat(filepath.Join(h.Dir, ".codex")); err == nil {
		t.Error("the user's own directory was used")
	}
	// Again is a new value of the same secret.
	if out := run(t, h, 0, "sk-dummy-other", "provider", "login", "codex", "--", "--with-api-key"); !strings.Contains(out, "version 2") {
		t.Error(out)
	}
	// A CLI that fails leaves the vault as it was.
	run(t, h, 7, "", "provider", "login", "codex", "--", "--no-such-flag")
	run(t, h, 3, "", "provider", "login", "nothing")
	run(t, h, 7, "", "provider", "login", "test") // the scripted agent has no login
	kept(t, h, "codex", "a login file of codex")
	run(t, h, 0, "", "daemon", "stop")
}

func TestLogInWithOpencode(t *testing.T) {
	h := home.New(t)
	h.Vars = []string{"THOLE_PROVIDERS_OPENCODE=" + lab.Opencode(t)}
	s := terminal(t, h, "provider", "login", "opencode", "--", "-p", "openai", "-m", "Manually enter API Key")
	s.until("Enter your API key")
	s.types("sk-dummy-opencode\r")
	s.until("the login is kept as opencode")
	s.ends(true)
	kept(t, h, "opencode", "a login file of opencode")
	run(t, h, 0, "", "daemon", "stop")
}

// claude shows where to log in, takes the code and asks its service for tokens; the
// service is played here, through the proxy and the certificates of the user.
func TestLogInWithClaude(t *testing.T) {
	h := home.New(t)
	proxy, ca := fakeService(t)
	h.Vars = []string{"THOLE_PROVIDERS_CLAUDE=" + lab.Claude(t), "HTTPS_PROXY=" + proxy, "NODE_EXTRA_CA_CERTS=" + ca}
	s := terminal(t, h, "provider", "login", "claude")
	s.until("state=")
	s.until("Paste code here")
	_, rest, _ := strings.Cut(s.text(), "state=")
	state := rest[:strings.IndexFunc(rest, func(r rune) bool {
		return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", r)
	})]
	s.types("code-of-the-page#" + state + "\r")
	s.until("the login is kept as claude")
	s.ends(true)
	kept(t, h, "claude", "a login file of claude; its access token ends")
	run(t, h, 0, "", "daemon", "stop")
}

// fakeService is a proxy that plays every service that claude asks, and the file with
// the certificate to trust.
func fakeService(t *testing.T) (proxy, ca string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"platform.claude.com", "api.anthropic.com", "claude.ai", "claude.com", "console.anthropic.com"},
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	ca = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	service := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/oauth/token"):
			_ = json.NewEncoder(w).Encode(map[string]any{
				"access_token": "sk-ant-oat01-dummy", "refresh_token": "sk-ant-ort01-dummy", "expires_in": 28800, "token_type": "Bearer",
				"scope":   "user:inference user:profile",
				"account": map[string]any{"uuid": "00000000-0000-4000-8000-000000000001", "email_address": "a@example.com"}, "organization": map[string]any{"uuid": "00000000-0000-4000-8000-000000000002", "name": "o"},
			})
		case strings.HasSuffix(r.URL.Path, "/oauth/profile"):
			_ = json.NewEncoder(w).Encode(map[string]any{
				"account":      map[string]any{"uuid": "00000000-0000-4000-8000-000000000001", "email": "a@example.com", "display_name": "a"},
				"organization": map[string]any{"uuid": "00000000-0000-4000-8000-000000000002", "organization_type": "claude_max", "rate_limit_tier": "default"},
			})
		default:
			_, _ = io.WriteString(w, "{}")
		}
	}))
	service.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	service.StartTLS()
	t.Cleanup(service.Close)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			http.Error(w, "only CONNECT", http.StatusBadRequest)
			return
		}
		to, err := net.Dial("tcp", service.Listener.Addr().String())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		from, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			_ = to.Close()
			return
		}
		_, _ = io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(to, from); _ = to.Close() }()
		_, _ = io.Copy(from, to)
		_ = from.Close()
	}))
	t.Cleanup(front.Close)
	return front.URL, ca
}

// What a killed login left is removed by the next owner, and a login in progress is not.
func TestLeftLoginsAreSwept(t *testing.T) {
	h := home.New(t)
	h.Vars = []string{"THOLE_PROVIDERS_CODEX=" + lab.Codex(t)}
	run(t, h, 0, "x", "secret", "set", "n", "-")
	rooms := filepath.Join(h.Dir, "login-rooms")
	in, out := io.Pipe()
	defer out.Close()
	cmd := h.Command("provider", "login", "codex", "--", "--with-api-key") // waits for the key
	cmd.Stdin, cmd.SysProcAttr = in, &syscall.SysProcAttr{Setpgid: true}
	waiting, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read(t, waiting, "Reading API key")
	held, _ := os.ReadDir(rooms)
	run(t, h, 0, "", "daemon", "stop")
	run(t, h, 0, "", "secret", "list") // another owner
	if now, _ := os.ReadDir(rooms); len(held) != 1 || len(now) != 1 {
		t.Errorf("a login in progress lost its room: %v, then %v", held, now)
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	in.Close()
	_ = cmd.Wait()
	run(t, h, 0, "", "daemon", "stop")
	run(t, h, 0, "", "secret", "list")
	empty(t, h)
	run(t, h, 0, "", "daemon", "stop")
}

func read(t *testing.T, r io.Reader, want string) {
	t.Helper()
	var got bytes.Buffer
	b := make([]byte, 256)
	for !strings.Contains(got.String(), want) {
		n, err := r.Read(b)
		got.Write(b[:n])
		if err != nil {
			t.Fatalf("%v after %s", err, &got)
		}
	}
}

// A secret that is typed is not shown.
func TestTypedSecretsAreNotShown(t *testing.T) {
	h := home.New(t)
	s := terminal(t, h, "secret", "set", "typed")
	s.until("value (not shown): ")
	s.types("typed-value\n")
	s.until("set typed (env), version 1")
	s.ends(true)
	if strings.Contains(s.text(), "typed-value") {
		t.Errorf("it was shown:\n%s", s.text())
	}
	s = terminal(t, h, "secret", "set", "typed")
	s.until("value (not shown): ")
	s.types("\x03")
	s.ends(false)
	if out := run(t, h, 0, "", "secret", "show", "typed"); strings.Count(out, "changed") != 1 {
		t.Error(out)
	}
	run(t, h, 0, "", "daemon", "stop")
}
