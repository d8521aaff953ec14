package repository

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/test/e2e/home"
)

// rig is a home that is up, with all three CLIs on the scripted model.
type rig struct {
	testing.TB
	*home.Home
	base, token string
}

func newRig(t testing.TB, vars ...string) *rig {
	t.Helper()
	lab.Git(t)
	lab.Bwrap(t)
	r := &rig{TB: t, Home: home.New(t)}
	r.Vars = append(vars, config.Variable("providers.codex")+"="+lab.Codex(t), config.Variable("providers.claude")+"="+lab.Claude(t), config.Variable("providers.opencode")+"="+lab.Opencode(t))
	r.Up()
	return r
}

// of is the rig of a test below.
func (r *rig) of(t testing.TB) *rig {
	below := *r
	below.TB = t
	return &below
}

// in runs thole in a directory.
func (r *rig) in(dir string, args ...string) (stdout, stderr string, code int) {
	r.Helper()
	cmd := r.Command(args...)
	cmd.Dir = dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run()
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// thole runs a command that must succeed.
func (r *rig) thole(dir string, args ...string) string {
	r.Helper()
	out, errs, code := r.in(dir, args...)
	if code != 0 {
		r.Fatalf("thole %v: exit %d\n%s%s", args, code, out, errs)
	}
	return out
}

// run has an agent work, and returns its thread and what was shown of it.
func (r *rig) run(dir, model string, args ...string) (thread, out string) {
	r.Helper()
	out = r.thole(dir, append([]string{"run", "--profile", "full", "--model", model}, args...)...)
	_, rest, _ := strings.Cut(out, "thread ")
	return strings.Fields(rest)[0], out
}

// open logs in to the program's HTTP.
func (r *rig) open() {
	r.Helper()
	var link struct{ URL string }
	if err := json.Unmarshal([]byte(r.thole(r.Dir, "--json", "login")), &link); err != nil {
		r.Fatal(err)
	}
	u, err := url.Parse(link.URL)
	if err != nil {
		r.Fatal(err)
	}
	r.base = u.Scheme + "://" + u.Host
	for _, word := range strings.Fields(r.thole(r.Dir, "token", "create", "test")) {
		if strings.HasPrefix(word, "thole_") {
			r.token = word
		}
	}
}

func (r *rig) get(path string) []byte {
	r.Helper()
	req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, r.base+path, nil)
	if err != nil {
		r.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.token)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		r.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		r.Fatalf("%s: %s %s %v", path, res.Status, body, err)
	}
	return body
}

// files is where the machine has a thread's files.
func (r *rig) files(thread string) string {
	r.Helper()
	list, err := local.New(local.Config{Root: filepath.Join(r.Dir, "x"), Binary: r.Binary}).List(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	for _, x := range list {
		if string(x.Thread) == thread {
			return filepath.Join(r.Dir, "x", string(x.ID), "workspace")
		}
	}
	r.Fatalf("%s has no executor", thread)
	return ""
}

func (r *rig) write(path, text string) {
	r.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		r.Fatal(err)
	}
}

// text is what a file has, "" if there is none.
func text(path string) string {
	body, _ := os.ReadFile(path)
	return string(body)
}

// tool runs a program of the machine as the user would.
func (r *rig) tool(dir string, argv ...string) string {
	r.Helper()
	out, err := r.try(dir, argv...)
	if err != nil {
		r.Fatalf("%v: %v: %s", argv, err, out)
	}
	return out
}

func (r *rig) try(dir string, argv ...string) (string, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = append(r.Env(), "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.org")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String() + errs.String(), err
	}
	return out.String(), nil
}

func (r *rig) git(dir string, args ...string) string {
	r.Helper()
	return r.tool(dir, append([]string{"git"}, args...)...)
}

// commit makes a repository of a directory.
func (r *rig) commit(dir string) {
	r.Helper()
	r.git(dir, "init", "-q", "-b", "main", ".")
	r.git(dir, "config", "user.name", "A")
	r.git(dir, "config", "user.email", "a@example.org")
	r.git(dir, "add", "-A")
	r.git(dir, "commit", "-q", "-m", "one")
}
