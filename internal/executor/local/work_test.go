package local_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/testkit/gitremote"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// git works over ssh, through the proxy, where a person named the server.
func TestGitOverSSH(t *testing.T) {
	t.Parallel()
	sshd := gitremote.SSH(t)
	encoded := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return base64.StdEncoding.EncodeToString(text)
	}
	repo := filepath.Join(t.TempDir(), "repo")
	for _, args := range [][]string{{"init", "-q", repo}, {"-C", repo, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "over ssh"}} {
		if out, err := exec.Command(lab.Git(t), args...).CombinedOutput(); err != nil {
			t.Fatalf("git: %v %s", err, out)
		}
	}
	script := fmt.Sprintf("mkdir -p ~/.ssh; chmod 700 ~/.ssh; echo %s | base64 -d >~/.ssh/id_ed25519; chmod 600 ~/.ssh/id_ed25519; echo %s | base64 -d >~/.ssh/known_hosts; git clone -q %s%s got 2>&1; git -C got log --format=%%s 2>&1",
		encoded(sshd.Key), encoded(sshd.Known), sshd.URL, repo)
	for policy, want := range map[string]string{"list": "over ssh\n", "gateway": "allows the configured models only"} {
		b := setup(t, lab.Bwrap(t))
		b.driver = local.New(local.Config{Root: b.root, Binary: binary, Bwrap: lab.Bwrap(t), Egress: wire.Egress{Policy: policy, Private: []string{sshd.Addr}}})
		if got := b.take(b.start(), b.request("sim: run "+script, thole.ProfileFull)); !strings.Contains(got, want) || policy == "list" && got != want {
			t.Errorf("%s: %q, want %q", policy, got, want)
		}
	}
}

// npm installs through the proxy; node's own fetch goes through it from the version on that knows how to.
func TestNPMAndNode(t *testing.T) {
	t.Parallel()
	_, err := exec.LookPath("npm")
	lab.Need(t, "npm", err)
	pack := tarball(t, map[string]string{"package/package.json": `{"name":"oar","version":"1.0.0"}`, "package/index.js": `module.exports = "of the registry"`})
	var registry *httptest.Server
	registry = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/oar":
			sum := sha512.Sum512(pack)
			_ = json.NewEncoder(w).Encode(map[string]any{"name": "oar", "dist-tags": map[string]string{"latest": "1.0.0"}, "versions": map[string]any{"1.0.0": map[string]any{
				"name": "oar", "version": "1.0.0", "dist": map[string]string{"tarball": registry.URL + "/oar.tgz", "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}}}})
		case "/oar.tgz":
			_, _ = w.Write(pack)
		case "/fetched":
			fmt.Fprint(w, "fetched")
		default:
			http.NotFound(w, r)
		}
	}))
	defer registry.Close()
	b := setup(t, lab.Bwrap(t))
	b.driver = local.New(local.Config{Root: b.root, Binary: binary, Bwrap: lab.Bwrap(t), Egress: wire.Egress{Policy: "list", Private: []string{strings.TrimPrefix(registry.URL, "http://")}}})
	info := b.start()
	free := "export NO_PROXY= no_proxy=; " // the registry is on loopback, which is not proxied otherwise
	if got := b.take(info, b.request("sim: run "+free+"npm install --silent --no-audit --no-fund --registry "+registry.URL+" oar 2>&1; node -p 'require(\"oar\")'", thole.ProfileFull)); !strings.HasSuffix(got, "of the registry\n") {
		t.Errorf("npm: %q", got)
	}
	out, err := exec.Command("node", "-p", "process.versions.node").Output()
	if err != nil {
		t.Fatal(err)
	}
	major, _ := strconv.Atoi(strings.Split(string(out), ".")[0])
	want := "failed\n" // node 20 knows no proxy for fetch: docs/operate/security.md says so
	if major >= 24 {
		want = "fetched\n"
	}
	fetch := "node -e 'fetch(\"" + registry.URL + "/fetched\").then(r => r.text()).catch(() => \"failed\").then(console.log)'"
	if got := b.take(info, b.request("sim: run "+free+fetch, thole.ProfileFull)); major != 22 && got != want { // 22 learned it on the way
		t.Errorf("fetch of node %s: %q, want %q", out, got, want)
	}
}

func tarball(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
