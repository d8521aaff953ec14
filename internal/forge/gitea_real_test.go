package forge_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/forge"
	"github.com/tholehq/thole/internal/git"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// A real Gitea takes a branch over HTTP with a token and opens one request for it. It
// takes long to build, so this is part of the soak.
func TestRealGitea(t *testing.T) {
	if os.Getenv("THOLE_SOAK") == "" {
		t.Skip("set THOLE_SOAK to run a real Gitea")
	}
	program, work := lab.Gitea(t)
	dir := lab.Open(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := ln.Addr().String()
	ln.Close()
	port := at[strings.LastIndex(at, ":")+1:]
	ini := fmt.Sprintf("RUN_MODE = prod\nI_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true\n[server]\nHTTP_ADDR = 127.0.0.1\nHTTP_PORT = %s\nROOT_URL = http://%s/\nDISABLE_SSH = true\nOFFLINE_MODE = true\n[database]\nDB_TYPE = sqlite3\nPATH = %s/db\n"+
		"[repository]\nROOT = %s/repos\n[security]\nINSTALL_LOCK = true\nSECRET_KEY = x\n[log]\nLEVEL = error\n[indexer]\nISSUE_INDEXER_TYPE = db\n[service]\nDISABLE_REGISTRATION = true\n", port, at, dir, dir)
	file := filepath.Join(dir, "app.ini")
	if err := os.WriteFile(file, []byte(ini), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "work"), os.DirFS(work)); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) *exec.Cmd {
		cmd := exec.Command(program, append([]string{"--config", file, "--work-path", filepath.Join(dir, "work")}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}
		return cmd
	}
	must := func(args ...string) string {
		t.Helper()
		out, err := run(args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	must("migrate")
	must("admin", "user", "create", "--username", "ada", "--password", "Long-enough-1", "--email", "ada@example.com", "--admin", "--must-change-password=false")
	lines := strings.Fields(must("admin", "user", "generate-access-token", "--username", "ada", "--raw", "--scopes", "all"))
	token := lines[len(lines)-1] // after what it warns of
	var said bytes.Buffer
	server := run("web")
	server.Stdout, server.Stderr = &said, &said
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	base := "http://" + at
	transport := &http.Transport{DisableKeepAlives: true}
	call := func(method, path string, in any) int {
		body, _ := json.Marshal(in)
		req, _ := http.NewRequestWithContext(t.Context(), method, base+path, bytes.NewReader(body))
		req.Header.Set("Authorization", "token "+token)
		req.Header.Set("Content-Type", "application/json")
		res, err := (&http.Client{Transport: transport}).Do(req)
		if err != nil {
			return 0
		}
		res.Body.Close()
		return res.StatusCode
	}
	poll.Until(t, "Gitea to answer", func() bool { return call("GET", "/api/v1/version", nil) == 200 })
	if code := call("POST", "/api/v1/user/repos", map[string]any{"name": "proj", "auto_init": true, "default_branch": "trunk"}); code != 201 {
		t.Fatalf("make a repository: %d", code)
	}
	remote := base + "/ada/proj.git"
	g := &git.Runner{}
	clone := filepath.Join(dir, "clone.git")
	remoteGit := func(in string, args ...string) {
		t.Helper()
		if out, err := g.Remote(t.Context(), git.Cmd{Dir: in, Args: args, Config: git.Credential(remote, token)}); err != nil {
			t.Fatalf("%v: %v %s", args, err, out)
		}
	}
	remoteGit(dir, "clone", "-q", "--bare", remote, clone)
	tree, err := g.Own(t.Context(), clone, "rev-parse", "trunk^{tree}")
	if err != nil {
		t.Fatal(err)
	}
	commit := exec.Command("git", "-C", clone, "commit-tree", strings.TrimSpace(string(tree)), "-p", "trunk", "-m", "more")
	commit.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b"}
	id, err := commit.Output()
	if err != nil {
		t.Fatal(err)
	}
	remoteGit(clone, "push", "-q", remote, strings.TrimSpace(string(id))+":refs/heads/thole/more")

	c := &forge.Client{Transport: transport}
	found, err := c.Find(t.Context(), remote) // it says itself what it is
	if err != nil || found.Kind != forge.Gitea {
		t.Fatalf("%+v, %v", found, err)
	}
	r := forge.Request{Title: "More", Body: "text", Head: "thole/more", Draft: true}
	first, err := c.Open(t.Context(), found, token, r)
	if err != nil || first.Existing || first.Base != "trunk" || !strings.HasSuffix(first.URL, "/ada/proj/pulls/1") {
		t.Fatalf("%+v, %v", first, err)
	}
	if again, err := c.Open(t.Context(), found, token, r); err != nil || !again.Existing || again.Number != first.Number {
		t.Errorf("%+v, %v", again, err)
	}
	if _, err := c.Open(t.Context(), found, "0123456789012345678901234567890123456789", r); err == nil {
		t.Error("a wrong token was taken")
	}
}
