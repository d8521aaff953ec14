package up

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/test/e2e/home"
)

// certificate writes a self-signed one for 127.0.0.1 and returns the files and
// who trusts it.
func certificate(t *testing.T, dir string) (cert, key string, trust *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	shape := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, shape, shape, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	trust = x509.NewCertPool()
	trust.AddCert(parsed)
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", raw), trust
}

func configure(t *testing.T, h *home.Home, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(h.Dir, "config.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestUpOverTLS(t *testing.T) {
	h := home.New(t)
	cert, key, trust := certificate(t, t.TempDir())
	configure(t, h, "[http]\ntls_cert = \""+cert+"\"\ntls_key = \""+key+"\"\n")
	r := start(t, h)
	if !strings.HasPrefix(r.base, "https://127.0.0.1:") {
		t.Fatalf("the page is at %s", r.base)
	}
	browser := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust}, ForceAttemptHTTP2: true}}
	defer browser.CloseIdleConnections()
	res := enter(t, browser, r.url)
	var login struct{ Proof string }
	if err := json.NewDecoder(res.Body).Decode(&login); err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.ProtoMajor != 2 || res.Header.Get("Strict-Transport-Security") == "" {
		t.Errorf("%s, %v", res.Proto, res.Header)
	}
	cookies := res.Cookies()
	if len(cookies) != 1 || !cookies[0].Secure || !strings.HasPrefix(cookies[0].Name, "__Host-") {
		t.Fatalf("cookies %v", cookies)
	}
	for origin, want := range map[string]int{r.base: http.StatusCreated, strings.Replace(r.base, "https", "http", 1): http.StatusForbidden} {
		req, err := http.NewRequest("POST", r.base+"/sessions", strings.NewReader(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Origin", origin)
		req.Header.Set("Thole-Proof", login.Proof)
		req.AddCookie(cookies[0])
		res, err := browser.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("from %s: %s", origin, res.Status)
		}
	}
}

// A proxy of this machine passes on what strangers ask.
func TestUpBehindAProxy(t *testing.T) {
	h := home.New(t)
	configure(t, h, "[http]\npublic_url = \"https://agents.example.org\"\n")
	r := start(t, h)
	if !strings.HasPrefix(r.url, "https://agents.example.org/auth/login#code=") {
		t.Fatalf("the link is %s", r.url)
	}
	secret, words, code := h.Run("token", "create", "watch", "--json")
	if code != 0 {
		t.Fatal(words)
	}
	_, secret, _ = strings.Cut(secret, `"token":"`)
	secret, _, _ = strings.Cut(secret, `"`)
	ask := func(host, path, token string) int {
		req, err := http.NewRequest("GET", "http://"+r.addr+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	for _, c := range []struct {
		host, path, token string
		want              int
	}{
		{"agents.example.org", "/metrics", "", 401},
		{"agents.example.org", "/metrics", secret, 200},
		{"agents.example.org", "/auth/session", secret, 200},
		{"evil.example.org", "/metrics", secret, 403},
		{r.addr, "/metrics", "", 401},
		{r.addr, "/readyz", "", 200},
		{"evil.example.org", "/readyz", "", 403},
	} {
		if got := ask(c.host, c.path, c.token); got != c.want {
			t.Errorf("%s%s with token %t: %d, want %d", c.host, c.path, c.token != "", got, c.want)
		}
	}
}
