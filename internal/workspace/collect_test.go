package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/manager"
	"pgregory.net/rapid"
)

func (r *rig) keys() (n int) {
	r.t.Helper()
	all, err := r.objects.List(context.Background(), "app/", "", 100_000)
	if err != nil {
		r.t.Fatal(err)
	}
	return len(all)
}

// later is a store whose objects look a month older than they are.
type later struct{ objects.Store }

func (l later) List(ctx context.Context, prefix, after string, limit int) ([]objects.Info, error) {
	all, err := l.Store.List(ctx, prefix, after, limit)
	for i := range all {
		all[i].Modified = all[i].Modified.Add(-30 * 24 * time.Hour)
	}
	return all, err
}

func TestCollection(t *testing.T) {
	now := time.Now
	db := storetest.SQLite(t, storetest.Clock(func() time.Time { return now() }))
	r := newRig(t, func(c *manager.Config) { c.Rows, c.Objects = db.Workspaces(), later{c.Objects} })
	ctx := context.Background()
	machine, err := thread.New(thread.Config{Store: db.Threads()})
	if err != nil {
		t.Fatal(err)
	}
	create := func() thole.ThreadID {
		t.Helper()
		th, err := machine.Create(ctx, thole.LocalActor, thread.Create{Owner: thole.DefaultOwner, Settings: event.Settings{Provider: "test"}})
		if err != nil {
			t.Fatal(err)
		}
		return th.ID
	}
	parent, fork := create(), create()
	b := r.box(parent)
	b.put(t, "a", "one")
	first := r.sync(b)
	f := r.box(fork)
	if err := forkHead(db, parent, fork); err != nil {
		t.Fatal(err)
	}
	r.restore(f)
	b.put(t, "a", "two")
	second := r.sync(b)
	if err := db.Workspaces().Pin(ctx, "reader", second, time.Now().Add(100*time.Hour)); err != nil {
		t.Fatal(err)
	}
	b.put(t, "a", "three")
	r.sync(b)
	r.object("app/x/kb/file", "knowledge is not ours to collect")
	before := r.keys()
	collect := func() manager.Collected {
		t.Helper()
		c, err := r.manager.Collect(ctx, 24*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if c := collect(); c.Snapshots != 0 || c.Objects != 0 {
		t.Fatalf("within the grace period %+v went", c)
	}
	now = func() time.Time { return time.Now().Add(48 * time.Hour) }
	if c := collect(); c.Snapshots != 0 || c.Objects != 0 || r.keys() != before {
		t.Fatalf("a fork and a reader hold their snapshots, yet %+v went", c)
	}
	if err := db.Workspaces().Unpin(ctx, "reader"); err != nil {
		t.Fatal(err)
	}
	if c := collect(); c.Snapshots != 1 || c.Objects != 2 {
		t.Fatalf("what nobody needs: %+v", c)
	}
	if _, _, err := db.Workspaces().Snapshot(ctx, second); thole.CodeOf(err) != thole.CodeNotFound {
		t.Fatalf("the snapshot is still there: %v", err)
	}
	f.put(t, "b", "the fork's own")
	r.sync(f)
	again := r.box(fork)
	r.restore(again)
	if got, err := os.ReadFile(filepath.Join(again.dir, "a")); err != nil || string(got) != "one" {
		t.Fatalf("the fork's file is %q, %v", got, err)
	}
	if _, _, err := db.Workspaces().Snapshot(ctx, first); err != nil {
		t.Fatal(err)
	}
	// Deleted threads hold nothing for longer than the grace period; what a fork needs
	// stays.
	if err := machine.Delete(ctx, thole.LocalActor, parent); err != nil {
		t.Fatal(err)
	}
	mine := r.keys()
	if c := collect(); c.Snapshots != 0 || c.Objects != 0 {
		t.Fatalf("right after its thread %+v went", c)
	}
	now = func() time.Time { return time.Now().Add(96 * time.Hour) }
	if c := collect(); c.Snapshots == 0 || c.Objects == 0 || r.keys() >= mine {
		t.Fatalf("of a deleted thread %+v went", c)
	}
	r.restore(r.box(fork))
	if err := machine.Delete(ctx, thole.LocalActor, fork); err != nil {
		t.Fatal(err)
	}
	collect()
	now = func() time.Time { return time.Now().Add(144 * time.Hour) }
	if collect(); r.keys() != 1 {
		t.Fatalf("%d objects are left of two deleted threads", r.keys()-1)
	}
	if _, err := r.manager.Collect(ctx, time.Minute); thole.CodeOf(err) != thole.CodeInvalid {
		t.Errorf("a short grace period: %v", err)
	}
}

// A writer whose lease is over, or who began from an older snapshot, changes
// nothing, on both engines.
func TestLateWriters(t *testing.T) {
	for _, engine := range []struct {
		name string
		open func(t *testing.T) *store.DB
	}{{"sqlite", func(t *testing.T) *store.DB { return storetest.SQLite(t) }}, {"postgres", func(t *testing.T) *store.DB { return storetest.Postgres(t) }}} {
		t.Run(engine.name, func(t *testing.T) {
			db := engine.open(t)
			r := newRig(t, func(c *manager.Config) { c.Rows = db.Workspaces() })
			r.t = t
			ctx := context.Background()
			thread := newThread()
			slow, fast := r.box(thread), r.box(thread)
			slow.put(t, "f", "base")
			r.sync(slow)
			r.restore(fast)
			slow.put(t, "f", "slow")
			fast.put(t, "f", "fast")
			late := &meddler{Side: slow.target.Side, before: func() { r.sync(fast) }}
			target := slow.target
			target.Side = late
			if _, err := r.manager.Sync(ctx, target, "test"); !errors.Is(err, workspace.ErrMoved) {
				t.Fatalf("a sync that was overtaken: %v", err)
			}
			turn := thole.NewID[thole.TurnID](time.Now())
			if err := db.Queue().Enqueue(ctx, queue.Item{Turn: turn, Thread: thread, User: "u"}); err != nil {
				t.Fatal(err)
			}
			leases, err := db.Queue().Claim(ctx, queue.Claim{Owner: "x", Token: "token", Max: 1, Lease: time.Hour})
			if err != nil || len(leases) != 1 {
				t.Fatal(leases, err)
			}
			fast.put(t, "f", "under a lease")
			fast.target.Lease, fast.target.Token = turn, "another token"
			if _, err := r.manager.Sync(ctx, fast.target, "test"); !errors.Is(err, queue.ErrLeaseLost) {
				t.Fatalf("a writer without the lease: %v", err)
			}
			fast.target.Token = "token"
			r.sync(fast)
			out := r.box(thread)
			r.restore(out)
			if got, err := os.ReadFile(filepath.Join(out.dir, "f")); err != nil || string(got) != "under a lease" {
				t.Fatalf("f is %q, %v", got, err)
			}
		})
	}
}

// Many syncs of few files do not leave a tree scattered over as many packs.
func TestPacksAreMerged(t *testing.T) {
	r := newRig(t)
	thread := newThread()
	b := r.box(thread)
	for i := range 60 {
		b.put(t, fmt.Sprintf("f%d", i), fmt.Sprint("content ", i))
		r.sync(b)
	}
	_, refs, err := r.db.Workspaces().Head(context.Background(), thread)
	if err != nil {
		t.Fatal(err)
	}
	if len(refs) > 20 {
		t.Errorf("60 small files lie in %d objects", len(refs))
	}
	out := r.box(thread)
	r.restore(out)
	if diff := cmp.Diff(listing(t, b.dir), listing(t, out.dir, ".kb", ".user-files")); diff != "" {
		t.Fatal(diff)
	}
}

func TestExportAndView(t *testing.T) {
	r := newRig(t)
	thread := newThread()
	b := r.box(thread)
	oddTree(t, b)
	snap := r.sync(b)
	ctx := context.Background()
	x, err := r.manager.Export(ctx, snap, "out/there/", false)
	if err != nil {
		t.Fatal(err)
	}
	body, err := r.objects.Get(ctx, "out/there/many/0/0.txt", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if !strings.Contains(strings.Join(x.Skipped, "\n"), "outside") || x.Files < 50 {
		t.Errorf("%+v", x)
	}
	v, err := r.manager.View(ctx, thread)
	if err != nil {
		t.Fatal(err)
	}
	list, err := v.List("many/0")
	if err != nil || len(list.Entries) != 8 {
		t.Fatalf("%+v, %v", list, err)
	}
	part, info, err := v.Open(ctx, "large.bin", 16*100+3, 5)
	if err != nil {
		t.Fatal(err)
	}
	defer part.Close()
	buf := make([]byte, 10)
	if n, _ := part.Read(buf); string(buf[:n]) != "34567" || info.ETag == "" {
		t.Errorf("range %q, %+v", buf[:n], info)
	}
	for _, path := range []string{"nothing", "outside", "many", "../x", ""} {
		if _, _, err := v.Open(ctx, path, 0, -1); err == nil {
			t.Errorf("%q was opened", path)
		}
	}
}

// Whatever is done to a tree, syncing and restoring gives the same tree.
func TestAnyTreeComesBack(t *testing.T) {
	r := newRig(t)
	names := rapid.SampledFrom([]string{"a", "b", "c c", "d\n", "\xff", ".codex", "node_modules"})
	rapid.Check(t, func(rt *rapid.T) {
		thread := newThread()
		b := r.box(thread)
		path := func() string {
			return filepath.Join(b.dir, filepath.Join(rapid.SliceOfN(names, 1, 3).Draw(rt, "path")...))
		}
		for range rapid.IntRange(1, 3).Draw(rt, "syncs") {
			for range rapid.IntRange(1, 12).Draw(rt, "steps") {
				p := path()
				switch rapid.IntRange(0, 5).Draw(rt, "what") {
				case 0, 1:
					if os.MkdirAll(filepath.Dir(p), 0o755) == nil {
						_ = os.WriteFile(p, []byte(rapid.StringN(0, 50, 200).Draw(rt, "content")), 0o644)
					}
				case 2:
					_ = os.MkdirAll(p, 0o755)
				case 3:
					if os.MkdirAll(filepath.Dir(p), 0o755) == nil {
						_ = os.Symlink(rapid.SampledFrom([]string{"a", "/etc", "../..", "\xfe"}).Draw(rt, "to"), p)
					}
				case 4:
					_ = os.RemoveAll(p)
				case 5:
					if st, err := os.Lstat(p); err == nil && st.Mode()&os.ModeSymlink == 0 {
						_ = os.Chmod(p, rapid.SampledFrom([]os.FileMode{0o600, 0o755, 0o444, 0o700}).Draw(rt, "mode"))
					}
				}
			}
			r.sync(b)
		}
		out := r.box(thread)
		r.restore(out)
		skip := []string{".kb", ".user-files", ".codex/node_modules"}
		for _, more := range []string{".codex/a", ".codex/b", ".codex/c c", ".codex/d\n", ".codex/\xff", ".codex/.codex"} {
			skip = append(skip, more+"/node_modules")
		}
		if diff := cmp.Diff(listing(t, b.dir, skip...), listing(t, out.dir, skip...)); diff != "" {
			rt.Fatal(diff)
		}
	})
}
