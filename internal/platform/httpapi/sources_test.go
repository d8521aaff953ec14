package httpapi_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/platform/view"
	"github.com/tholehq/thole/internal/source"
)

// doors records what it is asked for and takes everything.
type doors struct {
	mu    sync.Mutex
	asked []source.Request
	bytes int64
	media string
}

func (d *doors) Resolve(_ context.Context, _ thole.ThreadID, r source.Request) (thole.Source, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, r)
	return thole.Source{Kind: r.Kind, Repo: r.Repo, Ref: r.Ref, Dir: r.Dir, Upload: r.Upload, Branch: "thole/x", Commit: "c0ffee"}, nil
}

func (d *doors) last() (source.Request, int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.asked[len(d.asked)-1], len(d.asked)
}

func (d *doors) Folders(_ context.Context, path string) (view.Folders, error) {
	return view.Folders{Folder: view.Folder{Path: path}, Items: []view.Folder{{Name: "a", Path: path + "/a", Repository: true}}}, nil
}

func (d *doors) Recent(context.Context, thole.Actor) ([]view.RecentSource, error) { return nil, nil }

func (d *doors) Default() view.SourceChoice { return view.SourceChoice{Kind: thole.SourceEmpty} }

func (d *doors) Inspect(_ context.Context, repo string) (view.Repository, error) {
	return view.Repository{Repo: repo, Branches: []view.BranchRef{}}, nil
}

func (d *doors) SearchFiles(_ context.Context, of view.SourceChoice, query string) ([]view.FoundFile, error) {
	return []view.FoundFile{{Path: of.Repo + "@" + of.Ref + "/" + query, Kind: "file"}}, nil
}

func (d *doors) TakeUpload(_ context.Context, _ thole.Actor, media string, _ map[string]string, body io.Reader) (view.Upload, error) {
	n, err := io.Copy(io.Discard, body)
	if err != nil {
		return view.Upload{}, thole.Errorf(thole.CodeInvalid, "read: %w", err)
	}
	d.bytes, d.media = n, media
	return view.Upload{ID: "u", Files: 1, Bytes: n}, nil
}

func TestASessionHasTheSourceThatItWasGiven(t *testing.T) {
	d := &doors{}
	g := newRig(t, func(c *httpapi.Config) { c.Sources, c.Local = d, true })
	var s obj
	g.me.call(201, "POST", "/sessions", obj{"source": obj{"kind": "branch", "repo": "/src/app", "ref": "main", "dir": "web", "dirty": true, "name": "Fix it"}}, &s)
	if from := s["source"].(obj); from["kind"] != "branch" || from["repo"] != "/src/app" || from["branch"] != "thole/x" || s["dir"] != "/workspace/web" {
		t.Errorf("the session shows %v in %v", from, s["dir"])
	}
	if r, _ := d.last(); r.Repo != "/src/app" || r.Ref != "main" || !r.Dirty || r.Name != "Fix it" || !r.Local || r.Actor.User != thole.LocalUser {
		t.Errorf("asked for %+v", r)
	}
	g.me.call(201, "POST", "/sessions", obj{"name": "named"}, &s)
	if r, _ := d.last(); r.Kind != "" || r.Name != "named" || s["dir"] != "/workspace" {
		t.Errorf("without a source: %+v in %v", r, s["dir"])
	}
	g.me.call(422, "POST", "/sessions", obj{"dir": "/a/label"}, nil)
	g.me.call(422, "POST", "/sessions", obj{"source": obj{"kind": "elsewhere"}}, nil)
	g.me.call(422, "POST", "/sessions", obj{"source": obj{"repo": "/src/app"}}, nil)

	once := g.me.with("Idempotency-Key", "k1")
	var again obj
	once.call(201, "POST", "/sessions", obj{"source": obj{"kind": "empty"}}, &s)
	_, before := d.last()
	once.call(201, "POST", "/sessions", obj{"source": obj{"kind": "empty"}}, &again)
	if _, after := d.last(); after != before || again["id"] != s["id"] {
		t.Errorf("a repeated create made its source again, or another session: %v %v", s["id"], again["id"])
	}
	g.me.call(409, "POST", "/sessions", obj{"id": s["id"], "source": obj{"kind": "empty"}}, nil)
	if _, after := d.last(); after != before {
		t.Error("a source was made for a session that exists")
	}
}

// A chat gets its source with its first message, which names the branch; later ones change
// nothing.
func TestAChatHasTheSourceOfItsFirstMessage(t *testing.T) {
	d := &doors{}
	g := newRig(t, func(c *httpapi.Config) { c.Sources = d })
	for i, text := range []string{"sim: say first", "sim: say second"} {
		body := say("a-chat", text)
		body["provider"], body["source"] = "test", obj{"kind": "empty"}
		res := g.me.do("POST", "/api/chat", body)
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if r, n := d.last(); res.StatusCode != 200 || n != 1 || r.Name != "sim: say first" {
			t.Errorf("message %d: %s, %d sources, the last %+v", i, res.Status, n, r)
		}
	}
}

// Only a browser of this machine, logged in as its user and coming directly, is local.
func TestWhoIsLocal(t *testing.T) {
	for _, server := range []bool{true, false} {
		d := &doors{}
		g := newRig(t, func(c *httpapi.Config) { c.Sources, c.Local = d, server })
		token := &caller{g: g, header: http.Header{"Authorization": {"Bearer " + g.Token}}}
		for name, tc := range map[string]struct {
			c    *caller
			want bool
		}{
			"the page":             {g.me, server},
			"a token":              {token, false},
			"another user":         {g.you, false},
			"behind a proxy":       {g.me.with("X-Forwarded-For", "127.0.0.1"), false},
			"behind another proxy": {g.me.with("Forwarded", "for=1.2.3.4"), false},
		} {
			tc.c.call(201, "POST", "/sessions", obj{"provider": "test"}, nil)
			if r, _ := d.last(); r.Local != tc.want {
				t.Errorf("%s is local: %v, want %v", name, r.Local, tc.want)
			}
			var me struct{ Local bool }
			if tc.c.call(200, "GET", "/auth/session", nil, &me); me.Local != tc.want {
				t.Errorf("%s is said to be local: %v, want %v", name, me.Local, tc.want)
			}
			status := 403
			if tc.want {
				status = 200
			}
			tc.c.call(status, "GET", "/sources/folders?path=/src", nil, nil)
			tc.c.call(status, "GET", "/sources/inspect?repo=/src", nil, nil)
			tc.c.call(status, "GET", "/sources/files?kind=branch&repo=/src&ref=main&q=x", nil, nil)
			tc.c.call(200, "GET", "/sources/recent", nil, nil)
		}
	}
}

func TestUploadsAreLargerThanMessages(t *testing.T) {
	d := &doors{}
	g := newRig(t, func(c *httpapi.Config) { c.Sources = d })
	post := func(media string, body io.Reader, size int64) (int, string) {
		t.Helper()
		r := g.me.request("POST", "/uploads", nil)
		r.Body, r.ContentLength = io.NopCloser(body), size
		if media != "" {
			r.Header.Set("Content-Type", media)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(b)
	}
	big := bytes.Repeat([]byte{1}, 30<<20)
	if status, text := post("application/zip", bytes.NewReader(big), int64(len(big))); status != 201 || d.bytes != int64(len(big)) || d.media != "application/zip" {
		t.Errorf("30 MB: %d %s, %d bytes taken", status, text, d.bytes)
	}
	if status, _ := post("application/zip", strings.NewReader("x"), httpapi.MaxUpload+1); status != 413 && status != 0 {
		t.Errorf("a body that is announced to be too large: %d", status)
	}
	if status, text := post("", strings.NewReader("x"), 1); status != 415 || !strings.Contains(text, "Content-Type") {
		t.Errorf("no media type: %d %s", status, text)
	}
}
