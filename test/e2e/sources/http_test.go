package sources

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/testkit/poll"
)

// work has the agent of a session do something and returns what it said.
func (p *page) work(session, text string) string {
	p.t.Helper()
	var run struct{ ID, Outcome string }
	p.call(201, "POST", "/sessions/"+session+"/runs", obj{"text": text}, &run)
	poll.Until(p.t, "the end of the run", func() bool {
		p.call(200, "GET", "/runs/"+run.ID, nil, &run)
		return run.Outcome != ""
	})
	if run.Outcome != "completed" {
		p.t.Fatalf("the run %s", run.Outcome)
	}
	var items struct {
		Items []struct{ Kind, Text string }
	}
	text = p.call(200, "GET", "/runs/"+run.ID+"/items", nil, &items)
	return text
}

type session struct {
	ID, Dir string
	Source  struct{ Kind, Repo, Branch, Upload string }
}

// The page of this machine chooses among its folders, repositories and uploads.
func TestThePageChooses(t *testing.T) {
	r := newRig(t)
	p := r.page()
	var folders struct {
		Items []struct {
			Name, Path string
			Repository bool
		}
	}
	p.call(200, "GET", "/sources/folders?path="+filepath.Dir(r.repo), nil, &folders)
	if len(folders.Items) != 1 || folders.Items[0].Path != r.repo || !folders.Items[0].Repository {
		t.Errorf("folders: %+v", folders)
	}
	p.call(403, "GET", "/sources/folders?path="+r.Dir, nil, nil)
	r.write("new.txt", "x")
	var repo struct {
		Repo, Dir, Branch  string
		Branches           []struct{ Name string }
		Changed, Untracked int
	}
	p.call(200, "GET", "/sources/inspect?repo="+filepath.Join(r.repo, "web"), nil, &repo)
	if repo.Repo != r.repo || repo.Dir != "web" || repo.Branch != "main" || len(repo.Branches) != 2 || repo.Changed != 0 || repo.Untracked != 1 {
		t.Errorf("inspected: %+v", repo)
	}

	var s session
	p.call(201, "POST", "/sessions", obj{"provider": "test", "execution_profile": "edit", "source": obj{"kind": "branch", "repo": r.repo, "dir": "web", "name": "From the page"}}, &s)
	if s.Source.Kind != "branch" || !strings.HasPrefix(s.Source.Branch, "thole/from-the-page-") || s.Dir != "/workspace/web" {
		t.Errorf("the session: %+v", s)
	}
	if said := p.work(s.ID, "sim: run pwd; cat index.html ;; say %tool%"); !strings.Contains(said, "/workspace/web") || !strings.Contains(said, "two") {
		t.Errorf("its agent said %s", said)
	}
	var recent struct{ Items []struct{ Kind, At string } }
	p.call(200, "GET", "/sources/recent", nil, &recent)
	if len(recent.Items) != 1 || recent.Items[0].At != r.repo {
		t.Errorf("recent: %+v", recent)
	}

	// A token may be anywhere: it names no directory of this machine.
	out, errs, code := r.Run("token", "create", "elsewhere")
	fields := strings.Fields(out)
	if code != 0 || len(fields) == 0 {
		t.Fatalf("thole token create: %d %s%s", code, out, errs)
	}
	token := ""
	for _, f := range fields {
		if strings.HasPrefix(f, "thole_") {
			token = f
		}
	}
	for body, want := range map[string]int{
		`{"provider":"test","source":{"kind":"here","dir":"` + r.repo + `"}}`:    403,
		`{"provider":"test","source":{"kind":"branch","repo":"` + r.repo + `"}}`: 403,
		`{"provider":"test","dir":"/a/label"}`:                                   422,
		`{"provider":"test"}`:                                                    201,
	} {
		req, err := http.NewRequest("POST", p.base+"/sessions", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s with a token: %s, want %d", body, res.Status, want)
		}
	}
}

// What is sent is what the agent finds, with its modes and links; what is up to something
// is refused.
func TestUploads(t *testing.T) {
	r := newRig(t)
	p := r.page()
	var tgz bytes.Buffer
	z := gzip.NewWriter(&tgz)
	w := tar.NewWriter(z)
	for _, h := range []*tar.Header{
		{Name: "bin/run", Typeflag: tar.TypeReg, Mode: 0o755, Size: 11, ModTime: time.Now()}, {Name: "current", Typeflag: tar.TypeSymlink, Linkname: "bin/run"},
	} {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			_, _ = io.WriteString(w, "echo it-ran")
		}
	}
	_, _ = w.Close(), z.Close()
	var up struct {
		ID    string
		Files int
	}
	p.send(201, "POST", "/uploads", "application/gzip", bytes.NewReader(tgz.Bytes()), &up)
	var s session
	p.call(201, "POST", "/sessions", obj{"provider": "test", "execution_profile": "edit", "source": obj{"kind": "upload", "upload": up.ID}}, &s)
	if said := p.work(s.ID, "sim: run ./current; readlink current ;; say %tool%"); !strings.Contains(said, "it-ran") || !strings.Contains(said, "bin/run") {
		t.Errorf("the agent of an archive said %s", said)
	}

	var form bytes.Buffer
	m := multipart.NewWriter(&form)
	for path, text := range map[string]string{"src/main.txt": "deep", "top.txt": "top"} {
		f, err := m.CreateFormFile(path, filepath.Base(path))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(f, text)
	}
	_ = m.Close()
	p.send(201, "POST", "/uploads", m.FormDataContentType(), &form, &up)
	p.call(201, "POST", "/sessions", obj{"provider": "test", "execution_profile": "edit", "source": obj{"kind": "upload", "upload": up.ID}}, &s)
	if said := p.work(s.ID, "sim: run cat src/main.txt top.txt ;; say %tool%"); up.Files != 2 || !strings.Contains(said, "deeptop") {
		t.Errorf("the agent of %d files said %s", up.Files, said)
	}

	form.Reset()
	m = multipart.NewWriter(&form)
	f, err := m.CreateFormFile("../../evil", "evil")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(f, "x")
	_ = m.Close()
	if text := p.send(422, "POST", "/uploads", m.FormDataContentType(), &form, nil); !strings.Contains(text, "leads out") {
		t.Errorf("refused by %s", text)
	}
	p.send(422, "POST", "/uploads", "application/zip", strings.NewReader("no archive"), nil)
	p.call(404, "POST", "/sessions", obj{"provider": "test", "source": obj{"kind": "upload", "upload": "01900000-0000-7000-8000-000000000001"}}, nil)
	if left, err := os.ReadDir(filepath.Join(r.Dir, "uploads")); err != nil || len(left) != 0 {
		t.Errorf("left in the home: %v %v", left, err)
	}
}
