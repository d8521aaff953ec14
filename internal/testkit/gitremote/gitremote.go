// Package gitremote serves bare repositories to tests as other machines do: over HTTP
// with git's own backend and a password, and over SSH with a real sshd. Both listen on
// loopback and end with the test.
package gitremote

import (
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
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
