//go:build linux

package daywork

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/cgi"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/testkit/lab"
)

// site is a server of a company's own: git, an npm registry and a module proxy, with
// a certificate that no system knows.
type site struct {
	target string // NAME:PORT, as programs in the box write it
	url    string
	ca     string // file of the authority
}

// loopback is a name of this machine's own loopback that programs do not take for
// it: they ask no proxy for localhost, nor for an address of it.
func loopback(t *testing.T) (name string, addr netip.Addr) {
	t.Helper()
	text, err := os.ReadFile("/etc/hosts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		addr, err := netip.ParseAddr(f[0])
		if err != nil || !addr.IsLoopback() {
			continue
		}
		for _, name := range f[1:] {
			if ln, err := net.Listen("tcp", netip.AddrPortFrom(addr, 0).String()); err == nil && !strings.HasPrefix(name, "localhost") {
				ln.Close()
				return name, addr
			}
		}
	}
	lab.Need(t, "a name of the loopback besides localhost", errors.New("none in /etc/hosts: scripts/lab install system adds one"))
	return "", netip.Addr{}
}

func newSite(t *testing.T) *site {
	t.Helper()
	name, addr := loopback(t)
	dir := t.TempDir()
	s := &site{ca: filepath.Join(dir, "ca.pem")}
	cert := s.certify(t, name)
	ln, err := net.Listen("tcp", netip.AddrPortFrom(addr, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	s.target = net.JoinHostPort(name, strconv.Itoa(ln.Addr().(*net.TCPAddr).Port))
	s.url = "https://" + s.target
	mux := http.NewServeMux()
	mux.Handle("/git/", repository(t, dir))
	s.registry(t, mux)
	modules(t, mux)
	srv := &http.Server{Handler: mux, TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}}, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = srv.ServeTLS(ln, "", "") }()
	t.Cleanup(func() { _ = srv.Close() })
	return s
}

// certify makes an authority and a certificate of the server.
func (s *site) certify(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	rootKey, leafKey := key(), key()
	root := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
	root.Subject.CommonName = "A company's own authority"
	rootDER, err := x509.CreateCertificate(rand.Reader, root, root, &rootKey.PublicKey, rootKey)
	if err != nil {
		t.Fatal(err)
	}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), DNSNames: []string{name}, NotBefore: root.NotBefore, NotAfter: root.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, root, &leafKey.PublicKey, rootKey)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: rootDER}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{leafDER}, PrivateKey: leafKey}
}

// repository serves one git repository by git's own server.
func repository(t *testing.T, dir string) http.Handler {
	t.Helper()
	git := lab.Git(t)
	env := []string{"PATH=/usr/bin:/bin", "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com"}
	run := func(args ...string) string {
		cmd := exec.Command(git, args...)
		cmd.Env, cmd.Dir = env, dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run("init", "-q", "work")
	if err := os.WriteFile(filepath.Join(dir, "work", "README"), []byte("cloned\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	run("-C", "work", "add", "README")
	run("-C", "work", "commit", "-q", "-m", "first")
	run("clone", "-q", "--bare", "work", "repo.git")
	return &cgi.Handler{Path: filepath.Join(run("--exec-path"), "git-http-backend"), Root: "/git", Env: append(slices.Clone(env), "GIT_PROJECT_ROOT="+dir, "GIT_HTTP_EXPORT_ALL=1")}
}

// registry serves one npm package, "left".
func (s *site) registry(t *testing.T, mux *http.ServeMux) {
	t.Helper()
	var packed bytes.Buffer
	gz := gzip.NewWriter(&packed)
	tw := tar.NewWriter(gz)
	for name, text := range map[string]string{"package/package.json": `{"name":"left","version":"1.0.0","main":"index.js"}`, "package/index.js": `module.exports = "installed"`} {
		if err := tw.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(tw, text)
	}
	_, _ = tw.Close(), gz.Close()
	sum := sha512.Sum512(packed.Bytes())
	mux.HandleFunc("/npm/left", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"name":"left","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"left","version":"1.0.0","dist":{"tarball":"%s/npm/left/-/left-1.0.0.tgz","integrity":"sha512-%s"}}}}`,
			s.url, base64.StdEncoding.EncodeToString(sum[:]))
	})
	mux.HandleFunc("/npm/left/-/left-1.0.0.tgz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(packed.Bytes()) })
}

// modules serves one Go module, example.com/dep.
func modules(t *testing.T, mux *http.ServeMux) {
	t.Helper()
	const mod = "module example.com/dep\n\ngo 1.20\n"
	var packed bytes.Buffer
	zw := zip.NewWriter(&packed)
	for name, text := range map[string]string{"go.mod": mod, "dep.go": "package dep\n\nfunc Word() string { return \"fetched\" }\n"} {
		w, err := zw.Create("example.com/dep@v1.0.0/" + name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(w, text)
	}
	_ = zw.Close()
	for name, body := range map[string]string{"list": "v1.0.0\n", "v1.0.0.info": `{"Version":"v1.0.0","Time":"2026-01-01T00:00:00Z"}`, "v1.0.0.mod": mod, "v1.0.0.zip": packed.String()} {
		mux.HandleFunc("/go/example.com/dep/@v/"+name, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })
	}
}
