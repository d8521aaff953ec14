package workspace_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/workspace"
)

// oddTree makes a tree with what makes trees difficult.
func oddTree(t testing.TB, b *box) {
	t.Helper()
	b.put(t, "plain.txt", "hello")
	b.put(t, "empty", "")
	b.put(t, "with space/new\nline/tab\t", "odd names")
	b.put(t, "latin-\xe9\xff", "not UTF-8")
	b.put(t, "run.sh", "#!/bin/sh\n")
	b.put(t, "large.bin", strings.Repeat("0123456789abcdef", 300_000))
	b.put(t, ".codex/config.toml", "project configuration")
	b.put(t, ".agent_data/codex/sessions/1.jsonl", "{}")
	for i := range 50 {
		b.put(t, fmt.Sprintf("many/%d/%d.txt", i%7, i), fmt.Sprint("file ", i))
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(os.Chmod(filepath.Join(b.dir, "run.sh"), 0o755))
	do(os.Chmod(filepath.Join(b.dir, "plain.txt"), 0o400))
	do(os.MkdirAll(filepath.Join(b.dir, "hollow/deep"), 0o750))
	do(os.Symlink("loop", filepath.Join(b.dir, "loop")))
	do(os.Symlink("/etc/passwd", filepath.Join(b.dir, "outside")))
	do(os.Symlink("../../..", filepath.Join(b.dir, "hollow/up")))
	do(os.Symlink("nowhere\xfe", filepath.Join(b.dir, "dangling")))
}

func TestATreeComesBackAsItWas(t *testing.T) {
	r := newRig(t)
	thread := newThread()
	first := r.box(thread)
	r.restore(first)
	oddTree(t, first)
	snap := r.sync(first)
	if err := r.manager.Verify(context.Background(), first.stopped(), snap); err != nil {
		t.Fatal(err)
	}
	second := r.box(thread)
	r.restore(second)
	if diff := cmp.Diff(listing(t, first.dir), listing(t, second.dir)); diff != "" {
		t.Fatal(diff)
	}
	if again := r.sync(second); again != snap {
		t.Fatalf("an unchanged tree made snapshot %s after %s", again, snap)
	}
	// A deletion, a new mode and a new file travel too.
	if err := os.RemoveAll(filepath.Join(second.dir, "many")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(second.dir, "run.sh"), 0o700); err != nil {
		t.Fatal(err)
	}
	second.put(t, "new.txt", "new")
	next := r.sync(second)
	if next == snap {
		t.Fatal("a changed tree made no snapshot")
	}
	third := r.box(thread)
	r.restore(third)
	if diff := cmp.Diff(listing(t, second.dir), listing(t, third.dir)); diff != "" {
		t.Fatal(diff)
	}
	if err := r.manager.Verify(context.Background(), first.stopped(), next); err == nil {
		t.Fatal("another tree was found equal")
	}
	if err := r.manager.Verify(context.Background(), third.stopped(), next); err != nil {
		t.Fatal(err)
	}
}

// A request to push that is wrong in one object moves none: a caller that returns
// early would leave the others running over a directory that is closed.
func TestAWrongPushBeginsNothing(t *testing.T) {
	var calls atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	defer srv.Close()
	r := newRig(t)
	b := r.box(newThread())
	for i := range 10 {
		b.put(t, fmt.Sprint("large", i), strings.Repeat(fmt.Sprint(i), 2<<20+1))
	}
	scan, err := b.local.Scan(t.Context(), workspace.ScanRequest{})
	if err != nil {
		t.Fatal(err)
	}
	link := objects.Link{URL: srv.URL}
	req := workspace.PushRequest{Tree: workspace.TreeLink{Sum: scan.Tree, Link: link}, Links: map[string][]objects.Link{"nothing of ours": {link}}}
	for _, o := range scan.New {
		req.Links[o.ID] = slices.Repeat([]objects.Link{link}, max(1, len(o.Parts)))
	}
	if len(scan.New) < 10 {
		t.Fatalf("%d objects", len(scan.New))
	}
	for range 5 { // which one is looked at first is left to chance
		if _, err := b.local.Push(t.Context(), req); thole.CodeOf(err) != thole.CodeInvalid {
			t.Fatal(err)
		}
	}
	if n := calls.Load(); n > 0 {
		t.Errorf("%d objects were moved", n)
	}
}
