package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
)

// shelf is a page of releases on loopback.
type shelf struct {
	mu    sync.Mutex
	files map[string][]byte
	url   string
}

func newShelf(t *testing.T) *shelf {
	s := &shelf{files: map[string][]byte{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if text, ok := s.files[r.URL.Path]; ok {
			_, _ = w.Write(text)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func archive(t *testing.T, program []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, text := range map[string][]byte{"LICENSE": []byte("licence"), "thole": program} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// put lays a release on the shelf, for this machine and others.
func (s *shelf) put(at string, program []byte, t *testing.T) (name string) {
	t.Helper()
	name = fmt.Sprintf("thole_1.2.3_%s_%s.tar.gz", runtime.GOOS, runtime.GOARCH)
	s.mu.Lock()
	defer s.mu.Unlock()
	body := archive(t, program)
	s.files[at+name] = body
	s.files[at+"checksums.txt"] = fmt.Appendf(nil, "%064d  thole_1.2.3_plan9_amd64.tar.gz\n%x  %s\n%064d  thole_1.2.3_amd64.deb\n", 0, sha256.Sum256(body), name, 0)
	return name
}

func (s *shelf) change(path string, change func([]byte) []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[path] = change(s.files[path])
}

func install(t *testing.T, s *shelf, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("sh", append([]string{"../../scripts/install.sh"}, args...)...)
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=/usr/bin:/bin", "THOLE_RELEASES=" + s.url, "THOLE_INSTALL_DIR=" + dir, "TMPDIR=" + t.TempDir()}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// The real program is installed, named or newest, over an older one, and runs.
func TestInstall(t *testing.T) {
	program, err := os.ReadFile(lab.Thole(t))
	if err != nil {
		t.Fatal(err)
	}
	s := newShelf(t)
	s.put("/latest/download/", program, t)
	s.put("/download/v1.2.3/", program, t)
	for _, args := range [][]string{nil, {"v1.2.3"}} {
		dir := filepath.Join(t.TempDir(), "bin")
		for range 2 { // the second over the first
			out, err := install(t, s, dir, args...)
			if err != nil || !strings.Contains(out, "installed thole ") || !strings.Contains(out, "export PATH") {
				t.Fatalf("%v: %v: %s", args, err, out)
			}
		}
		if out, err := exec.Command(filepath.Join(dir, "thole"), "version").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "thole ") {
			t.Errorf("%v: %s", err, out)
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 1 {
			t.Errorf("it left %v", entries)
		}
	}
}

// What is not the release is not installed, and what was there stays.
func TestInstallRefuses(t *testing.T) {
	good := []byte("#!/bin/sh\necho thole 1.2.3\n")
	const at = "/latest/download/"
	for name, c := range map[string]struct {
		spoil func(s *shelf, archive string)
		want  string
	}{
		"another archive": {func(s *shelf, a string) {
			s.change(at+a, func([]byte) []byte { return archive(t, []byte("#!/bin/sh\necho evil\n")) })
		}, "checksum"},
		"half an archive":    {func(s *shelf, a string) { s.change(at+a, func(b []byte) []byte { return b[:len(b)/2] }) }, "checksum"},
		"no archive":         {func(s *shelf, a string) { s.mu.Lock(); delete(s.files, at+a); s.mu.Unlock() }, "cannot download"},
		"no checksums":       {func(s *shelf, _ string) { s.mu.Lock(); delete(s.files, at+"checksums.txt"); s.mu.Unlock() }, "cannot download"},
		"empty checksums":    {func(s *shelf, _ string) { s.change(at+"checksums.txt", func([]byte) []byte { return nil }) }, "not exactly one archive"},
		"a name that climbs": {func(s *shelf, a string) { s.change(at+"checksums.txt", climb(a)) }, "not exactly one archive"},
		"two archives": {func(s *shelf, a string) {
			s.change(at+"checksums.txt", func(b []byte) []byte { return append(b, strings.ReplaceAll(string(b), "1.2.3", "1.2.4")...) })
		}, "not exactly one archive"},
		"a program that fails": {func(s *shelf, _ string) { s.put(at, []byte("#!/bin/sh\nexit 1\n"), t) }, "does not run"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t)
			c.spoil(s, s.put(at, good, t))
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "thole"), []byte("old"), 0o700); err != nil {
				t.Fatal(err)
			}
			out, err := install(t, s, dir)
			if err == nil || !strings.Contains(out, c.want) {
				t.Errorf("%v: %s", err, out)
			}
			if text, _ := os.ReadFile(filepath.Join(dir, "thole")); string(text) != "old" {
				t.Errorf("the old program became %q", text)
			}
			if entries, _ := os.ReadDir(dir); len(entries) != 1 {
				t.Errorf("it left %v", entries)
			}
		})
	}
}

func climb(name string) func([]byte) []byte {
	return func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(name), []byte("../"+name)) }
}
