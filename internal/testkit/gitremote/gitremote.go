// Package gitremote serves bare repositories to tests as other machines do: over HTTP
// with git's own backend and a password, and over SSH with a real sshd. Both listen on
// loopback and end with the test.
package gitremote

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// User and Password are what the HTTP server asks for. As a token the password counts with
// any name, as it does at forges.
const User, Password = "ada", "s3cret"

// HTTP serves the repositories below a directory and returns its address.
func HTTP(t testing.TB, dir string) string {
	t.Helper()
	out, err := exec.Command(lab.Git(t), "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	backend := &cgi.Handler{Path: filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"), Env: []string{
		"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=" + User, "PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != Password {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// SSH serves what the user of this test can reach. It returns the beginning of its
// addresses, before an absolute path, and the command that logs in.
func SSH(t testing.TB) (address, command string) {
	t.Helper()
	sshd, dir := lab.SSHD(t), t.TempDir()
	for _, name := range []string{"host", "mine"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, name)).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	if os.Geteuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // it insists
			t.Fatal(err)
		}
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := free.Addr().String()
	free.Close()
	_, port, _ := net.SplitHostPort(at)
	key, err := os.ReadFile(filepath.Join(dir, "host.pub"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"config": fmt.Sprintf("ListenAddress 127.0.0.1\nPort %s\nHostKey %[2]s/host\nAuthorizedKeysFile %[2]s/mine.pub\nStrictModes no\nUsePAM no\nPidFile none\nPasswordAuthentication no\n", port, dir),
		"known":  "[127.0.0.1]:" + port + " " + string(key),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var said bytes.Buffer
	cmd := exec.Command(sshd, "-D", "-e", "-f", filepath.Join(dir, "config"))
	cmd.Stderr, cmd.SysProcAttr = &said, lab.Leash()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("sshd: %s", said.String())
		}
	})
	poll.Until(t, "sshd", func() bool {
		c, err := net.Dial("tcp", at)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return "ssh://" + me.Username + "@" + at, fmt.Sprintf("ssh -F /dev/null -o IdentitiesOnly=yes -i %s/mine -o UserKnownHostsFile=%s/known", dir, dir)
}
