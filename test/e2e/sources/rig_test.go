// Package sources proves with the real program how a thread is given its files: by the
// command line, the contract and HTTP, with the scripted agent in a real box.
package sources

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/test/e2e/home"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

type obj = map[string]any

// rig is a home that is up, and a repository of its user.
type rig struct {
	*home.Home
	t    *testing.T
	repo string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	_, err := exec.LookPath("git")
	lab.Need(t, "git", err)
	h := home.New(t)
	h.Up()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for dir := top; len(dir) > len("/tmp"); dir = filepath.Dir(dir) { // agents of root are other users
		_ = os.Chmod(dir, 0o755)
	}
	r := &rig{Home: h, t: t, repo: filepath.Join(top, "app")}
	r.write("README.md", "# App\n")
	r.write("web/index.html", "<p>one</p>\n")
	r.git("init", "-q", "-b", "main", ".")
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "one")
	r.git("branch", "old")
	r.write("web/index.html", "<p>two</p>\n")
	r.git("commit", "-q", "-a", "-m", "two")
	return r
}

func (r *rig) write(path, text string) {
	r.t.Helper()
	file := filepath.Join(r.repo, path)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = r.repo
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.t.TempDir(), "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.org"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return string(out)
}

// in runs thole in a directory.
func (r *rig) in(dir string, args ...string) (stdout, stderr string, code int) {
	r.t.Helper()
	cmd := r.Command(args...)
	cmd.Dir = dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run()
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// ran is the last line of thole run --json.
type ran struct {
	ThreadID string `json:"thread_id"`
	Outcome  string `json:"outcome"`
	Cwd      string `json:"cwd"`
	Source   struct {
		Kind, Repo, Ref, Commit, Branch, Upload string
		Dirty                                   bool
	} `json:"source"`
}

// run runs thole run in a directory, and returns how it ended and what the agent said
// last.
func (r *rig) run(dir string, args ...string) (got ran, said string) {
	r.t.Helper()
	out, errs, code := r.in(dir, append([]string{"--json", "run", "--model", "test/script", "--profile", "edit"}, args...)...)
	if code != 0 {
		r.t.Fatalf("thole run %v: exit %d: %s%s", args, code, out, errs)
	}
	for line := range strings.Lines(out) {
		var l struct {
			Method string
			Params struct{ Item struct{ Type, Text string } }
			Ran    *ran
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			r.t.Fatalf("%q: %v", line, err)
		}
		if l.Method == "item/completed" && l.Params.Item.Type == "agentMessage" {
			said = l.Params.Item.Text
		}
		if l.Ran != nil {
			got = *l.Ran
		}
	}
	return got, said
}

// page is a browser that is logged in.
type page struct {
	t           *testing.T
	base, proof string
	http        *http.Client
}

func (r *rig) page() *page {
	r.t.Helper()
	out, errs, code := r.Run("--json", "login")
	var link struct{ URL string }
	if err := json.Unmarshal([]byte(out), &link); code != 0 || err != nil {
		r.t.Fatalf("thole login: %d %v: %s%s", code, err, out, errs)
	}
	u, err := url.Parse(link.URL)
	if err != nil {
		r.t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	p := &page{t: r.t, base: u.Scheme + "://" + u.Host, http: &http.Client{Jar: jar}}
	var in struct{ Proof string }
	p.call(200, "POST", "/auth/login", obj{"code": strings.TrimPrefix(u.Fragment, "code=")}, &in)
	p.proof = in.Proof
	return p
}

func (p *page) call(status int, method, path string, body, out any) string {
	p.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}
	return p.send(status, method, path, "application/json", bytes.NewReader(data), out)
}

func (p *page) send(status int, method, path, media string, body io.Reader, out any) string {
	p.t.Helper()
	req, err := http.NewRequest(method, p.base+path, body)
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Origin", p.base)
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	req.Header.Set("Content-Type", media)
	if p.proof != "" {
		req.Header.Set("Thole-Proof", p.proof)
	}
	res, err := p.http.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != status {
		p.t.Fatalf("%s %s: %s, want %d: %s %v", method, path, res.Status, status, text, err)
	}
	if out != nil {
		if err := json.Unmarshal(text, out); err != nil {
			p.t.Fatal(err)
		}
	}
	return string(text)
}
