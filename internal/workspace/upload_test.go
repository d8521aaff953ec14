package workspace_test

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/workspace/apart"
	"github.com/tholehq/thole/internal/workspace/manager"
)

func archive(t testing.TB, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, body := range files {
		h := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(body))}
		if to, link := strings.CutPrefix(body, "-> "); link {
			h, body = &tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: to}, ""
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "archive")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A thread of an upload begins with its files, unpacked by a process apart; once the
// thread has a snapshot, that is what it has, and the upload goes.
func TestAThreadBeginsWithAnUpload(t *testing.T) {
	ctx := context.Background()
	r := newRig(t, func(c *manager.Config) { c.Apart = apart.Processes{Self: lab.Thole(t)} })
	id, user := thole.NewID[string](time.Now()), thole.DefaultOwner.User
	up, err := r.manager.StoreUpload(ctx, user, id, archive(t, map[string]string{"run.sh": "echo", "d/link": "-> ../run.sh"}), t.TempDir())
	if err != nil || up.Files != 1 || up.Links != 1 || up.Bytes != 4 {
		t.Fatalf("%+v, %v", up, err)
	}
	thread := newThread()
	b := r.box(thread)
	b.target.Files = thole.Source{Kind: thole.SourceUpload, Upload: id}
	r.restore(b)
	if info, err := os.Stat(filepath.Join(b.dir, "d", "link")); err != nil || info.Mode() != 0o755 || info.Size() != 4 {
		t.Fatalf("laid %v, %v", info, err)
	}
	for _, other := range []struct {
		user thole.UserID
		id   string
	}{{"00000000-0000-7000-8000-0000000000aa", id}, {user, thole.NewID[string](time.Now())}} { // another's, and none
		if _, err := r.manager.Upload(ctx, other.user, other.id); thole.CodeOf(err) != thole.CodeNotFound {
			t.Errorf("upload %s of %s: %v", other.id, other.user, err)
		}
	}
	if _, err := r.manager.Upload(ctx, user, "../"+id); thole.CodeOf(err) != thole.CodeInvalid {
		t.Errorf("an id that climbs: %v", err)
	}
	b.put(t, "more", "text")
	r.sync(b)
	needed := true
	expire := func(before time.Time) int {
		t.Helper()
		n, err := r.manager.ExpireUploads(ctx, before, func(context.Context, thole.UserID, string) (bool, error) { return needed, nil })
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if expire(time.Now().Add(time.Hour)) != 0 {
		t.Error("an upload that a thread needs was removed")
	}
	if needed = false; expire(time.Now().Add(-time.Hour)) != 0 {
		t.Error("an upload of just now was removed")
	}
	if expire(time.Now().Add(time.Hour)) != 1 {
		t.Error("an old upload was kept")
	}
	if left, err := r.objects.List(ctx, "uploads/", "", 10); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	again := r.box(thread)
	again.target.Files = b.target.Files
	r.restore(again)
	if got := contents(t, again); got["run.sh"] != "echo" || got["more"] != "text" {
		t.Errorf("restored %q", got)
	}
}

// A refused archive leaves nothing in the store.
func TestARefusedUploadStoresNothing(t *testing.T) {
	ctx := context.Background()
	r := newRig(t, func(c *manager.Config) { c.Apart = apart.Processes{Self: lab.Thole(t)} })
	_, err := r.manager.StoreUpload(ctx, thole.DefaultOwner.User, thole.NewID[string](time.Now()), archive(t, map[string]string{"good": "x", "../evil": "x"}), t.TempDir())
	if thole.CodeOf(err) != thole.CodeInvalid || !strings.Contains(err.Error(), "leads out") {
		t.Errorf("refused by %v", err)
	}
	if left, err := r.objects.List(ctx, "", "", 10); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
