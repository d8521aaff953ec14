package workspace_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/unguarded"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/beneath"
	"github.com/tholehq/thole/internal/workspace/side"
)

// trap is a directory next to the workspace that nothing may touch.
func trap(t *testing.T, b *box) string {
	t.Helper()
	dir := filepath.Join(filepath.Dir(b.dir), "outside")
	if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := listing(t, dir)
	t.Cleanup(func() {
		if got := listing(t, dir); got != before {
			t.Errorf("something outside the workspace changed:\n%s", got)
		}
	})
	return dir
}

func (r *rig) object(key, body string) objects.Link {
	r.t.Helper()
	if err := r.objects.Put(context.Background(), key, strings.NewReader(body), int64(len(body))); err != nil {
		r.t.Fatal(err)
	}
	l, err := r.objects.SignGet(context.Background(), key, time.Minute)
	if err != nil {
		r.t.Fatal(err)
	}
	return l
}

// plainLayer is a layer of one-object files.
func (r *rig) plainLayer(entries ...workspace.Entry) workspace.LayerContent {
	c := workspace.LayerContent{Plain: &workspace.Tree{Version: 1, Objects: []workspace.Object{{ID: "o", Size: 4}}}, Links: map[string]objects.Link{"o": r.object("layer/o", "evil")}}
	for _, e := range entries {
		if e.Kind == beneath.File {
			e.Size = 4
		}
		c.Plain.Entries = append(c.Plain.Entries, e)
	}
	return c
}

func file(path string) workspace.Entry {
	return workspace.Entry{Path: path, Kind: beneath.File, Mode: 0o644}
}
func folder(path string) workspace.Entry {
	return workspace.Entry{Path: path, Kind: beneath.Folder, Mode: 0o755}
}
func link(path, to string) workspace.Entry {
	return workspace.Entry{Path: path, Kind: beneath.Link, Link: to}
}

func plan(entries ...workspace.PlanEntry) workspace.RestorePlan {
	return workspace.RestorePlan{AppID: "a", RuntimeVersion: "1", ConflictPolicy: workspace.KeepSession, Entries: entries,
		ProtectedPaths: []string{"/workspace/.agent_data", "/workspace/deep/kept"}}
}

func entry(l workspace.Layer, to string) workspace.PlanEntry {
	return workspace.PlanEntry{Layer: l, ToPath: to, Optional: true}
}

// Every way out of the workspace, and every way around a protected path, is
// refused or leaves what is there alone.
func TestRestorePlanAttacks(t *testing.T) {
	t.Parallel()
	const base, session, kb, user = workspace.RegistryBase, workspace.SessionOverlay, workspace.KnowledgeOverlay, workspace.UserOverlay
	for _, tc := range []struct {
		name  string
		req   func(r *rig, out string) workspace.RestoreRequest
		allow bool // it may succeed, harmlessly
	}{
		{"absolute target", func(r *rig, out string) workspace.RestoreRequest {
			return workspace.RestoreRequest{Plan: plan(entry(base, out)), Layers: []workspace.LayerContent{r.plainLayer(file("x"))}}
		}, false},
		{"target with dots", func(r *rig, out string) workspace.RestoreRequest {
			return workspace.RestoreRequest{Plan: plan(entry(kb, "/workspace/../outside")), Layers: []workspace.LayerContent{r.plainLayer(file("x"))}}
		}, false},
		{"target that only looks like the workspace", func(r *rig, out string) workspace.RestoreRequest {
			return workspace.RestoreRequest{Plan: plan(entry(kb, "/workspace-2/x")), Layers: []workspace.LayerContent{r.plainLayer(file("x"))}}
		}, false},
		{"entry with dots", func(r *rig, out string) workspace.RestoreRequest {
			return workspace.RestoreRequest{Plan: plan(entry(base, "/workspace")), Layers: []workspace.LayerContent{r.plainLayer(file("../outside/x"))}}
		}, false},
		{"absolute entry", func(r *rig, out string) workspace.RestoreRequest {
			return workspace.RestoreRequest{Plan: plan(entry(base, "/workspace")), Layers: []workspace.LayerContent{r.plainLayer(file(out + "/x"))}}
		}, false},
		{"entry below a link of its own layer", func(r *rig, out string) workspace.RestoreRequest {
			return workspace.RestoreRequest{Plan: plan(entry(base, "/workspace")), Layers: []workspace.LayerContent{r.plainLayer(link("way", "../outside"), file("way/x"))}}
		}, false},
		{"entry that makes a link a directory", func(r *rig, out string) workspace.RestoreRequest {
			return workspace.RestoreRequest{Plan: plan(entry(base, "/workspace")), Layers: []workspace.LayerContent{r.plainLayer(link("way", "../outside"), folder("way"), file("way/x"))}}
		}, false},
		{"layer through a link of an earlier one", func(r *rig, out string) workspace.RestoreRequest {
			return workspace.RestoreRequest{Plan: plan(entry(base, "/workspace"), entry(kb, "/workspace/.kb/app")),
				Layers: []workspace.LayerContent{r.plainLayer(link(".kb", "../outside")), r.plainLayer(file("x"))}}
		}, false},
		{"mount on a link", func(r *rig, out string) workspace.RestoreRequest {
			return workspace.RestoreRequest{Plan: plan(entry(base, "/workspace"), entry(user, "/workspace/files")),
				Layers: []workspace.LayerContent{r.plainLayer(link("files", "../outside")), r.plainLayer(file("x"))}}
		}, false},
		{"file over a link to outside", func(r *rig, out string) workspace.RestoreRequest {
			return workspace.RestoreRequest{Plan: plan(entry(base, "/workspace"), entry(session, "/workspace")),
				Layers: []workspace.LayerContent{r.plainLayer(link("f", "../outside/secret")), r.plainLayer(file("f"))}}
		}, true},
		{"seed through a link", func(r *rig, out string) workspace.RestoreRequest {
			return workspace.RestoreRequest{Plan: plan(entry(base, "/workspace")), Layers: []workspace.LayerContent{r.plainLayer(link("way", "../outside"))},
				Seeds: []workspace.SeedContent{{To: "/workspace/way/x", Size: 4, Link: r.object("seed", "evil")}}}
		}, true},
		{"seed onto a link", func(r *rig, out string) workspace.RestoreRequest {
			return workspace.RestoreRequest{Plan: plan(entry(base, "/workspace")), Layers: []workspace.LayerContent{r.plainLayer(link("f", "../outside/secret"))},
				Seeds: []workspace.SeedContent{{To: "/workspace/f", Size: 4, Link: r.object("seed", "evil")}}}
		}, true},
		{"seed onto a directory", func(r *rig, out string) workspace.RestoreRequest {
			return workspace.RestoreRequest{Plan: plan(entry(session, "/workspace")), Layers: []workspace.LayerContent{r.plainLayer(folder("d"), file("d/x"))},
				Seeds: []workspace.SeedContent{{To: "/workspace/d", Size: 4, Link: r.object("seed", "evil")}}}
		}, true},
		{"seed into a closed directory", func(r *rig, out string) workspace.RestoreRequest {
			shut := folder("d")
			shut.Mode = 0
			return workspace.RestoreRequest{Plan: plan(entry(session, "/workspace")), Layers: []workspace.LayerContent{r.plainLayer(shut)},
				Seeds: []workspace.SeedContent{{To: "/workspace/d/x", Size: 4, Link: r.object("seed", "evil"), IfMissingOnly: true}}}
		}, true},
		{"seed if missing through a link", func(r *rig, out string) workspace.RestoreRequest {
			return workspace.RestoreRequest{Plan: plan(entry(session, "/workspace")), Layers: []workspace.LayerContent{r.plainLayer(link("way", "../outside"))},
				Seeds: []workspace.SeedContent{{To: "/workspace/way/x", Size: 4, Link: r.object("seed", "evil"), IfMissingOnly: true}}}
		}, true},
		{"seed outside", func(r *rig, out string) workspace.RestoreRequest {
			return workspace.RestoreRequest{Plan: plan(), Seeds: []workspace.SeedContent{{To: out + "/x", Size: 4, Link: r.object("seed", "evil")}}}
		}, false},
		{"cleanup outside", func(r *rig, out string) workspace.RestoreRequest {
			return workspace.RestoreRequest{Plan: plan(), Cleanup: []workspace.CleanupRule{{Action: workspace.RemoveIfExists, Path: "/workspace/../outside"}}}
		}, false},
		{"cleanup of everything", func(r *rig, out string) workspace.RestoreRequest {
			return workspace.RestoreRequest{Plan: plan(), Cleanup: []workspace.CleanupRule{{Action: workspace.RemoveIfExists, Path: "/workspace"}}}
		}, false},
		{"cleanup of a protected path", func(r *rig, out string) workspace.RestoreRequest {
			return workspace.RestoreRequest{Plan: plan(), Cleanup: []workspace.CleanupRule{{Action: workspace.RemoveIfExists, Path: "/workspace/deep"}}}
		}, false},
		{"cleanup through a link", func(r *rig, out string) workspace.RestoreRequest {
			return workspace.RestoreRequest{Plan: plan(entry(base, "/workspace")), Layers: []workspace.LayerContent{r.plainLayer(link("way", "../outside"))},
				Cleanup: []workspace.CleanupRule{{Action: workspace.RemoveIfExists, Path: "/workspace/way/secret"}}}
		}, true},
		{"truncate a link", func(r *rig, out string) workspace.RestoreRequest {
			return workspace.RestoreRequest{Plan: plan(entry(base, "/workspace")), Layers: []workspace.LayerContent{r.plainLayer(link("f", "../outside/secret"))},
				Cleanup: []workspace.CleanupRule{{Action: workspace.TruncateIfExists, Path: "/workspace/f"}}}
		}, true},
		{"truncate a directory", func(r *rig, out string) workspace.RestoreRequest {
			return workspace.RestoreRequest{Plan: plan(entry(session, "/workspace")), Layers: []workspace.LayerContent{r.plainLayer(folder("f"))},
				Cleanup: []workspace.CleanupRule{{Action: workspace.TruncateIfExists, Path: "/workspace/f"}}}
		}, true},
		{"remove a link", func(r *rig, out string) workspace.RestoreRequest {
			return workspace.RestoreRequest{Plan: plan(entry(base, "/workspace")), Layers: []workspace.LayerContent{r.plainLayer(link("f", "../outside"))},
				Cleanup: []workspace.CleanupRule{{Action: workspace.RemoveIfExists, Path: "/workspace/f"}}}
		}, true},
		{"protected path by its name", func(r *rig, out string) workspace.RestoreRequest {
			return workspace.RestoreRequest{Plan: plan(entry(user, "/workspace")), Layers: []workspace.LayerContent{r.plainLayer(folder(".agent_data"), file(".agent_data/conversation"))}}
		}, true},
		{"protected path through a layer's target", func(r *rig, out string) workspace.RestoreRequest {
			return workspace.RestoreRequest{Plan: plan(entry(user, "/workspace/.agent_data")), Layers: []workspace.LayerContent{r.plainLayer(file("conversation"))}}
		}, true},
		{"protected path through an alias", func(r *rig, out string) workspace.RestoreRequest {
			return workspace.RestoreRequest{Plan: plan(entry(base, "/workspace"), entry(user, "/workspace/alias")),
				Layers: []workspace.LayerContent{r.plainLayer(link("alias", ".agent_data")), r.plainLayer(file("conversation"))}}
		}, false},
		{"protected path under its parent", func(r *rig, out string) workspace.RestoreRequest {
			p := plan(entry(user, "/workspace"))
			p.ConflictPolicy = workspace.PreferRegistry
			return workspace.RestoreRequest{Plan: p, Layers: []workspace.LayerContent{r.plainLayer(file("deep"))}}
		}, false},
		{"protected path under a read-only mount", func(r *rig, out string) workspace.RestoreRequest {
			return workspace.RestoreRequest{Plan: plan(entry(kb, "/workspace/deep")), Layers: []workspace.LayerContent{r.plainLayer(file("x"))},
				Mounts: []workspace.MountPoint{{Name: workspace.MountAppKB, TargetPath: "/workspace/deep", ReadOnly: true}}}
		}, false},
		{"layers out of order", func(r *rig, out string) workspace.RestoreRequest {
			return workspace.RestoreRequest{Plan: plan(entry(user, "/workspace/u"), entry(base, "/workspace")),
				Layers: []workspace.LayerContent{r.plainLayer(file("x")), r.plainLayer(file("y"))}}
		}, false},
		{"bytes outside their object", func(r *rig, out string) workspace.RestoreRequest {
			c := r.plainLayer(file("x"))
			c.Plain.Entries[0].Offset = 1 << 62
			return workspace.RestoreRequest{Plan: plan(entry(base, "/workspace")), Layers: []workspace.LayerContent{c}}
		}, false},
		{"an unknown kind", func(r *rig, out string) workspace.RestoreRequest {
			return workspace.RestoreRequest{Plan: plan(entry(base, "/workspace")), Layers: []workspace.LayerContent{r.plainLayer(workspace.Entry{Path: "dev", Kind: 'c'})}}
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t)
			r.t = t
			b := r.box(newThread())
			out := trap(t, b)
			b.put(t, ".agent_data/conversation", "kept")
			b.put(t, "deep/kept", "kept")
			req := tc.req(r, out)
			for len(req.Layers) < len(req.Plan.Entries) {
				req.Layers = append(req.Layers, workspace.LayerContent{})
			}
			_, err := b.local.Restore(context.Background(), req)
			if err == nil && !tc.allow {
				t.Error("it was not refused")
			}
			if tc.allow && err != nil {
				t.Errorf("refused: %v", err)
			}
			if err != nil && thole.CodeOf(err) != thole.CodeInvalid {
				t.Errorf("class %s: %v", thole.CodeOf(err), err)
			}
			for _, path := range []string{".agent_data/conversation", "deep/kept"} {
				if got, err := os.ReadFile(b.at(path)); err != nil || string(got) != "kept" {
					t.Errorf("%s is %q, %v", path, got, err)
				}
			}
		})
	}
}

// While a directory is swapped for a link and back, nobody reads or writes
// through it.
func TestSwappedDirectoriesAreNotFollowed(t *testing.T) {
	r := newRig(t)
	b := r.box(newThread())
	out := trap(t, b)
	b.put(t, "d/secret", "inside")
	h := side.Handler(b.local)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		d, aside := filepath.Join(b.dir, "d"), filepath.Join(b.dir, "aside")
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Rename(d, aside)
			_ = os.Symlink(out, d)
			_ = os.Remove(d)
			_ = os.Rename(aside, d)
		}
	})
	served := 0
	for i := range 3000 {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest("GET", "/workspace/file?path=d/secret", nil))
		if rec.Code == http.StatusOK {
			served++
			if rec.Body.String() != "inside" {
				t.Fatalf("read %q", rec.Body.String())
			}
		}
		if i%10 == 0 {
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, httptest.NewRequest("PUT", "/workspace/file?path=d/new", strings.NewReader("new")))
			if i%100 == 0 {
				rec = httptest.NewRecorder()
				h.ServeHTTP(rec, httptest.NewRequest("GET", "/workspace/tree?depth=9", nil))
				if strings.Contains(rec.Body.String(), `"d/sub"`) {
					t.Fatal("listed through a link")
				}
			}
		}
	}
	close(stop)
	wg.Wait()
	if served == 0 {
		t.Error("the file was never served: the test proves nothing")
	}
}

func TestFilesAreServedByPathWithoutLeaving(t *testing.T) {
	r := newRig(t)
	b := r.box(newThread())
	out := trap(t, b)
	b.put(t, "a/b.txt", "0123456789")
	if err := os.Symlink(out, filepath.Join(b.dir, "way")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a/b.txt", filepath.Join(b.dir, "alias")); err != nil {
		t.Fatal(err)
	}
	h := side.Handler(b.local)
	do := func(method, path, body string, headers ...string) *httptest.ResponseRecorder {
		req := httptest.NewRequest(method, path, strings.NewReader(body))
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, req)
		return rec
	}
	for _, path := range []string{"way/secret", "../outside/secret", out + "/secret", "alias", "a/../a/b.txt", "a//b.txt", "./a/b.txt", "a/b.txt/", "a\x00", "way"} {
		q := url.QueryEscape(path)
		for _, route := range []string{"/workspace/file?path=", "/workspace/download?path="} {
			if rec := do("GET", route+q, ""); rec.Code == http.StatusOK {
				t.Errorf("GET %s%s gave %q", route, path, rec.Body)
			}
		}
		if rec := do("PUT", "/workspace/file?path="+q, "evil"); rec.Code == http.StatusOK {
			t.Errorf("PUT %s was taken", path)
		}
		if path != "alias" {
			if rec := do("GET", "/workspace/tree?path="+q, ""); rec.Code == http.StatusOK {
				t.Errorf("tree %s gave %s", path, rec.Body)
			}
		}
	}
	rec := do("GET", "/workspace/file?path=a/b.txt", "", "Range", "bytes=2-4")
	if rec.Code != http.StatusPartialContent || rec.Body.String() != "234" {
		t.Errorf("range: %d %q", rec.Code, rec.Body)
	}
	tag := rec.Header().Get("ETag")
	if rec := do("PUT", "/workspace/file?path=a/b.txt", "new", "If-Match", tag); rec.Code != http.StatusOK || rec.Header().Get("ETag") == tag {
		t.Errorf("put: %d %s", rec.Code, rec.Body)
	}
	if rec := do("PUT", "/workspace/file?path=a/b.txt", "late", "If-Match", tag); rec.Code != http.StatusConflict {
		t.Errorf("a stale version was replaced: %d", rec.Code)
	}
	if rec := do("PUT", "/workspace/file?path=a/b.txt", "late", "If-None-Match", "*"); rec.Code != http.StatusConflict {
		t.Errorf("a file that is there was made: %d", rec.Code)
	}
	if got := do("GET", "/workspace/file?path=a/b.txt", "").Body.String(); got != "new" {
		t.Errorf("file is %q", got)
	}
	if rec := do("GET", "/workspace/download", ""); rec.Code != http.StatusOK || !strings.HasPrefix(rec.Body.String(), "PK") || strings.Contains(rec.Body.String(), "secret") {
		t.Errorf("download: %d", rec.Code)
	}
	if rec := do("GET", "/workspace/tree?depth=3", ""); !strings.Contains(rec.Body.String(), `"a/b.txt"`) {
		t.Errorf("tree: %s", rec.Body)
	}
	for i := range 3 {
		b.put(t, fmt.Sprintf("n%d", i), "")
	}
}

// What an agent leaves in its home leads nothing out of it: not a link in the place of a
// directory above a data directory, and not one in it. The build without the guards
// removes a login of the user's there.
func TestLinksStayInTheHome(t *testing.T) {
	r := newRig(t)
	b := r.box(newThread())
	login := filepath.Join(filepath.Dir(b.dir), "outside/opencode")
	if err := os.MkdirAll(login, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(login, "auth.json"), []byte("a login"), 0o600); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Dir(login)
	if !unguarded.Build {
		outside = trap(t, b)
	}
	if err := os.MkdirAll(filepath.Join(b.home, ".local"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(b.home, ".local/share")); err != nil {
		t.Fatal(err)
	}
	if err := r.manager.Link(t.Context(), b.target); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(login, "auth.json")); (err != nil || string(text) != "a login") != unguarded.Build {
		t.Errorf("of the login outside is left %q, %v", text, err)
	}
	if unguarded.Build {
		return
	}
	for path, text := range contents(t, b) {
		if strings.Contains(text, "a login") {
			t.Errorf("the login is in the workspace as %s", path)
		}
	}
	if to, err := os.Readlink(filepath.Join(b.home, ".local/share/opencode")); err != nil || !strings.HasPrefix(to, b.data) {
		t.Errorf("opencode's data is at %q, %v", to, err)
	}
}

// A directory that cannot be moved to the workspace does not stop the thread: it stays in
// the home under another name.
func TestLinksOfADeepDirectory(t *testing.T) {
	if os.Getenv("THOLE_SOAK") == "" {
		t.Skip("THOLE_SOAK=1: to remove so deep a directory takes seconds")
	}
	r := newRig(t)
	b := r.box(newThread())
	at, err := beneath.Open(b.home)
	if err != nil {
		t.Fatal(err)
	}
	for name, n := ".codex", 0; n < 2200; name, n = "d", n+1 {
		if err := at.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
		next, err := at.Sub(name)
		at.Close()
		if err != nil {
			t.Fatal(err)
		}
		at = next
	}
	at.Close()
	if err := r.manager.Link(t.Context(), b.target); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(filepath.Join(b.home, ".codex")); err != nil || !strings.HasPrefix(to, b.data) {
		t.Errorf("codex' data is at %q, %v", to, err)
	}
}
