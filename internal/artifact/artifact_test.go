package artifact_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/artifact"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
)

var ctx = context.Background()

type home struct {
	t   *testing.T
	db  *store.DB
	m   *delivery.Machine
	k   *artifact.Keeper
	dir string
	now time.Time
}

func newHome(t *testing.T, open storetest.Open) *home {
	h := &home{t: t, dir: filepath.Join(t.TempDir(), "artifacts"), now: time.Now().UTC().Truncate(time.Millisecond)}
	h.db = open(t, storetest.Clock(func() time.Time { return h.now }))
	l := delivery.DefaultLimits()
	l.WaitWindow = 0
	h.m = delivery.New(delivery.Config{Store: h.db.Delivery(), Limits: l})
	var err error
	h.k, err = artifact.New(artifact.Config{Dir: h.dir, Store: h.db.Artifacts()})
	h.ok(err)
	return h
}

func (h *home) ok(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// complete ends a fresh job of a thread with a result.
func (h *home) complete(thread, content string) (delivery.Job, artifact.Ingested) {
	h.t.Helper()
	id := thole.NewID[thole.JobID](h.now)
	_, _, err := h.m.Submit(ctx, thole.LocalActor, delivery.Submit{
		ID: id, Owner: thole.DefaultOwner, Target: thole.TargetThole,
		Address: delivery.Address{User: thole.LocalUser, Thread: thole.ThreadID(thread)},
	})
	h.ok(err)
	src := filepath.Join(h.t.TempDir(), "result.txt")
	h.ok(os.WriteFile(src, []byte(content), 0o644))
	in, err := h.k.Ingest(ctx, src, id, thole.DefaultOwner, h.now)
	h.ok(err)
	h.ok(os.Remove(src))
	j, err := h.m.Finish(ctx, thole.LocalActor, delivery.Finish{Job: id, State: thole.JobReady, Result: &in.Record, Inline: in.Inline, ArtifactOnly: in.ReadNeeded})
	h.ok(err)
	return j, in
}

func (h *home) closeHead(thread string) {
	h.t.Helper()
	lane := delivery.Address{User: thole.LocalUser, Thread: thole.ThreadID(thread)}.LaneID()
	_, err := h.m.CloseHead(ctx, thole.LocalActor, lane, "", thole.CloseOperatorUnconfirmed)
	h.ok(err)
}

func TestInlineOrArtifact(t *testing.T) {
	h := newHome(t, storetest.SQLite)
	for name, c := range map[string]struct {
		content string
		read    bool
	}{
		"small text": {"all tests pass\n", false},
		"empty":      {"", false},
		"at limit":   {strings.Repeat("x", artifact.InlineMax), false},
		"over limit": {strings.Repeat("x", artifact.InlineMax+1), true},
		"binary":     {"\x00\x01\x02", true},
		"bad utf-8":  {"\xff\xfe", true},
	} {
		j, in := h.complete(name, c.content)
		if in.ReadNeeded != c.read || j.RequiresArtifactRead != c.read || (in.Inline == c.content) == c.read {
			t.Errorf("%s: requires_artifact_read=%v, inline %d bytes", name, in.ReadNeeded, len(in.Inline))
		}
		if in.Record.Size != int64(len(c.content)) {
			t.Errorf("%s: size %d", name, in.Record.Size)
		}
		h.ok(h.k.Verify(in.Record))
	}
}

// An artifact outlives its file, is kept while its batch is open, then by
// min(24 h after it was made, 72 h after the close) and pins.
func TestRetention(t *testing.T) {
	h := newHome(t, storetest.SQLite)
	_, in := h.complete("a", "result")
	id := in.Record.ID
	gone := func() bool {
		t.Helper()
		_, err := h.k.Sweep(ctx)
		h.ok(err)
		_, err = os.Stat(h.k.Path(in.Record))
		return errors.Is(err, fs.ErrNotExist)
	}
	h.now = h.now.Add(60 * 24 * time.Hour)
	if gone() {
		t.Fatal("an artifact of an open batch was removed")
	}
	h.closeHead("a")
	h.now = h.now.Add(72*time.Hour - time.Millisecond)
	if gone() {
		t.Fatal("removed before 72 h after the close")
	}
	kept, err := h.k.Pin(ctx, thole.LocalActor, id, h.now.Add(time.Hour))
	h.ok(err)
	if r, err := h.k.Pin(ctx, thole.LocalActor, id, h.now.Add(time.Second)); err != nil || !r.PinUntil.Equal(kept.PinUntil) {
		t.Fatalf("a shorter pin: %v, %v", r.PinUntil, err)
	}
	h.now = h.now.Add(time.Minute)
	if gone() {
		t.Fatal("removed although pinned")
	}
	h.now = h.now.Add(time.Hour)
	if !gone() {
		t.Fatal("kept after its retention")
	}
	if _, _, err := h.k.Lease(ctx, thole.LocalActor, id); thole.CodeOf(err) != thole.CodeGone {
		t.Fatalf("reading a removed artifact: %v", err)
	}
	// A cancelled job's result is kept 24 h from its making.
	_, in = h.complete("b", "x")
	h.closeHead("b")
	r := in.Record
	r.Held = false
	if at, ok := r.EligibleAt(artifact.DefaultRetention()); !ok || !at.Equal(r.CreatedAt.Add(24*time.Hour)) {
		t.Fatalf("eligible at %v", at)
	}
}

func TestLease(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		h := newHome(t, open)
		content := strings.Repeat("0123456789", 200_000)
		_, in := h.complete("a", content)
		l, _, err := h.k.Lease(ctx, thole.LocalActor, in.Record.ID)
		h.ok(err)
		var got strings.Builder
		for last := false; !last; {
			var b []byte
			b, last, err = h.k.Read(ctx, thole.LocalActor, l.ID, int64(got.Len()), 0)
			h.ok(err)
			got.Write(b)
		}
		if got.String() != content {
			t.Fatal("the chunks are not the artifact")
		}
		other := thole.Actor{User: "other", Via: "socket"}
		if _, _, err := h.k.Read(ctx, other, l.ID, 0, 0); thole.CodeOf(err) != thole.CodeNotFound {
			t.Fatalf("someone else's lease: %v", err)
		}
		if _, _, err := h.k.Lease(ctx, other, in.Record.ID); thole.CodeOf(err) != thole.CodeNotFound {
			t.Fatalf("someone else's artifact: %v", err)
		}
		second, _, err := h.k.Lease(ctx, thole.LocalActor, in.Record.ID)
		h.ok(err)
		if err := h.k.Revoke(ctx, other, second.ID); thole.CodeOf(err) != thole.CodeNotFound {
			t.Fatalf("someone else's lease was revoked: %v", err)
		}
		h.ok(h.k.Revoke(ctx, thole.LocalActor, second.ID))
		h.ok(h.k.Revoke(ctx, thole.LocalActor, second.ID))
		if _, _, err := h.k.Read(ctx, thole.LocalActor, second.ID, 0, 0); thole.CodeOf(err) != thole.CodeGone {
			t.Fatalf("a revoked lease: %v", err)
		}
		if _, _, err := h.k.Read(ctx, thole.LocalActor, l.ID, 5, 3); err != nil {
			t.Fatalf("the other lease: %v", err)
		}
		if h.db.Engine() == "sqlite" {
			h.now = h.now.Add(artifact.LeaseTime + time.Second)
			if _, _, err := h.k.Read(ctx, thole.LocalActor, l.ID, 0, 0); thole.CodeOf(err) != thole.CodeGone {
				t.Fatalf("a lease past its deadline: %v", err)
			}
		}
	})
}

func TestDamage(t *testing.T) {
	h := newHome(t, storetest.SQLite)
	j, in := h.complete("a", strings.Repeat("x", 20_000))
	f, err := os.OpenFile(h.k.Path(in.Record), os.O_WRONLY, 0)
	h.ok(err)
	_, err = f.WriteAt([]byte("y"), 10_000)
	h.ok(errors.Join(err, f.Close()))
	_, _, err = h.k.Lease(ctx, thole.LocalActor, in.Record.ID)
	if thole.CodeOf(err) != thole.CodeUnavailable || !strings.Contains(err.Error(), "damaged") || thole.HintOf(err) == "" {
		t.Fatalf("a damaged artifact: %v", err)
	}
	if have, _, err := h.m.Job(ctx, thole.LocalActor, j.ID); err != nil || have.State != thole.JobReady {
		t.Fatal("the job suffered with its artifact")
	}
}

func TestOrphansAndModes(t *testing.T) {
	h := newHome(t, storetest.SQLite)
	_, in := h.complete("a", "kept")
	orphan, err := h.k.IngestReader(ctx, strings.NewReader("nobody's"), "x", "job", thole.DefaultOwner, h.now)
	h.ok(err)
	_, err = h.k.Sweep(ctx)
	h.ok(err)
	if _, err := os.Stat(h.k.Path(orphan.Record)); err != nil {
		t.Fatal("a copy whose job may still commit was removed")
	}
	h.now = h.now.Add(2 * time.Hour)
	_, err = h.k.Sweep(ctx)
	h.ok(err)
	if _, err := os.Stat(h.k.Path(orphan.Record)); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal("an orphan stayed")
	}
	if _, err := os.Stat(h.k.Path(in.Record)); err != nil {
		t.Fatal("the sweep removed a job's artifact")
	}
	err = filepath.WalkDir(h.dir, func(path string, d fs.DirEntry, _ error) error {
		fi, err := d.Info()
		if err == nil && fi.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, fi.Mode())
		}
		return err
	})
	h.ok(err)
	if _, err := h.k.Ingest(ctx, t.TempDir(), "job", thole.DefaultOwner, h.now); thole.CodeOf(err) != thole.CodeInvalid {
		t.Errorf("a directory as result: %v", err)
	}
}

// A file that is taken shares its bytes with the original, is no orphan however old
// it was, and outlives the original's name.
func TestTake(t *testing.T) {
	h := newHome(t, storetest.SQLite)
	src := filepath.Join(filepath.Dir(h.dir), "out")
	h.ok(os.WriteFile(src, []byte("output\n"), 0o600))
	old := time.Now().Add(-48 * time.Hour)
	h.ok(os.Chtimes(src, old, old))
	in, err := h.k.Take(ctx, src, "job", thole.DefaultOwner, h.now)
	h.ok(err)
	if in.Inline != "output\n" || in.Record.Size != 7 || in.Record.Name != "out" {
		t.Errorf("taken: %+v", in)
	}
	a, err := os.Stat(src)
	h.ok(err)
	b, err := os.Stat(h.k.Path(in.Record))
	h.ok(err)
	if !os.SameFile(a, b) {
		t.Error("the bytes were copied")
	}
	_, err = h.k.Sweep(ctx)
	h.ok(err)
	h.ok(os.Remove(src))
	h.ok(h.k.Verify(in.Record))
	h.k.Discard(in.Record)
	if left, _ := os.ReadDir(h.dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}
