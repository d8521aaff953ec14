package workspace_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// stored is how many bytes of objects a thread's snapshot needs, its tree apart.
func (r *rig) stored(thread thole.ThreadID) (sum int64) {
	r.t.Helper()
	_, refs, err := r.db.Workspaces().Head(r.t.Context(), thread)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, ref := range refs {
		if !strings.HasPrefix(ref.ID, "tree-") {
			sum += ref.Size
		}
	}
	return sum
}

// Text takes less room in the store than in the workspace, noise hardly more, and
// the same content is stored once.
func TestPacksAreCompressed(t *testing.T) {
	for name, c := range map[string]struct {
		content     func(i int) string
		least, most int64
	}{
		"text": {func(i int) string {
			return strings.Repeat(fmt.Sprintf("line %d of a program\n", i), 1000)
		}, 1, 200 << 10},
		"noise": {func(int) string {
			b := make([]byte, 20_000)
			rand.Read(b)
			return string(b)
		}, 100 * 20_000, 100*20_000 + 4096},
		"the same noise": {func() func(int) string {
			b := make([]byte, 20_000)
			rand.Read(b)
			return func(int) string { return string(b) }
		}(), 20_000, 24_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			thread := newThread()
			b := r.box(thread)
			for i := range 100 {
				b.put(t, fmt.Sprintf("%d/%d", i%7, i), c.content(i))
			}
			r.sync(b)
			if n := r.stored(thread); n < c.least || n > c.most {
				t.Errorf("%d bytes are stored", n)
			}
			out := r.box(thread)
			r.restore(out)
			if a, b := listing(t, out.dir, ".kb", ".user-files"), listing(t, b.dir); a != b {
				t.Errorf("%s\nis not\n%s", a, b)
			}
			v, err := r.manager.View(t.Context(), thread)
			if err != nil {
				t.Fatal(err)
			}
			body, _, err := v.Open(t.Context(), "3/3", 10, 100)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(body)
			want, rerr := os.ReadFile(filepath.Join(b.dir, "3/3"))
			if err != nil || rerr != nil || !bytes.Equal(got, want[10:110]) {
				t.Errorf("%q, %v, %v", got, err, rerr)
			}
		})
	}
}

// A pack that expands beyond what its tree says ends with an error, and takes no
// more memory than that.
func TestAPackBomb(t *testing.T) {
	enc, err := zstd.NewWriter(nil, zstd.WithWindowSize(1<<20))
	if err != nil {
		t.Fatal(err)
	}
	defer enc.Close()
	bomb := enc.EncodeAll(make([]byte, 256<<20), nil)
	wide, err := zstd.NewWriter(nil, zstd.WithWindowSize(64<<20))
	if err != nil {
		t.Fatal(err)
	}
	defer wide.Close()
	var window bytes.Buffer
	wide.Reset(&window)
	_, _ = wide.Write(bytes.Repeat([]byte("0123456789"), 1<<18))
	if err := wide.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		stored []byte
		plain  int64
	}{
		"more": {bomb, 8 << 20}, "less": {enc.EncodeAll([]byte("few"), nil), 100}, "nothing": {nil, 100}, "noise": {[]byte("no frame"), 100}, "a wide window": {window.Bytes(), 10 << 18},
	} {
		if _, err := (workspace.Object{ID: name, Size: int64(len(c.stored)), Plain: c.plain}).Expand(c.stored); thole.CodeOf(err) != thole.CodeInternal {
			t.Errorf("%s: %v", name, err)
		}
	}
	n := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = workspace.Object{Plain: 8 << 20}.Expand(bomb)
		}
	}).AllocedBytesPerOp()
	if n > 32<<20 {
		t.Errorf("a bomb took %d MiB", n>>20)
	}
}

// Trees that no scan makes are refused.
func TestTreesThatCannotBe(t *testing.T) {
	sum := objects.SumOf([]byte("x"))
	file := workspace.Entry{Path: "a", Kind: beneath.File, Size: 100, Sum: sum}
	same := file
	same.Path, same.Same = "b", "a"
	with := func(e workspace.Entry, change func(*workspace.Entry)) workspace.Entry { change(&e); return e }
	object := workspace.Object{ID: sum.String(), Size: 100}
	for name, c := range map[string]struct {
		object  workspace.Object
		entries []workspace.Entry
	}{
		"a hole beyond the end": {object, []workspace.Entry{with(file, func(e *workspace.Entry) { e.Data = beneath.Extents{{Off: 50, Len: 51}} })}},
		"extents that overlap":  {object, []workspace.Entry{with(file, func(e *workspace.Entry) { e.Data = beneath.Extents{{Off: 0, Len: 10}, {Off: 5, Len: 10}} })}},
		"extents that overflow": {object, []workspace.Entry{with(file, func(e *workspace.Entry) { e.Data = beneath.Extents{{Off: 1<<63 - 1, Len: 1<<63 - 1}} })}},
		"an empty extent":       {object, []workspace.Entry{with(file, func(e *workspace.Entry) { e.Data = beneath.Extents{{Off: 5}} })}},
		"very many": {object, []workspace.Entry{with(file, func(e *workspace.Entry) {
			e.Size, e.Data = 1<<20, slices.Collect(func(yield func(beneath.Extent) bool) {
				for i := range int64(2000) {
					yield(beneath.Extent{Off: 2 * i, Len: 1})
				}
			})
		})}},
		"a negative size":            {object, []workspace.Entry{with(file, func(e *workspace.Entry) { e.Size = -1 })}},
		"the same as nothing":        {object, []workspace.Entry{same}},
		"the same as what follows":   {object, []workspace.Entry{same, file}},
		"the same as itself":         {object, []workspace.Entry{with(file, func(e *workspace.Entry) { e.Same = "a" })}},
		"the same with other bytes":  {object, []workspace.Entry{file, with(same, func(e *workspace.Entry) { e.Size = 99 })}},
		"a directory with holes":     {object, []workspace.Entry{{Path: "d", Kind: beneath.Folder, Data: beneath.Extents{}}}},
		"a large attribute":          {object, []workspace.Entry{with(file, func(e *workspace.Entry) { e.Attrs = []beneath.Attr{{Name: "a", Value: make([]byte, 1<<20)}} })}},
		"an attribute twice":         {object, []workspace.Entry{with(file, func(e *workspace.Entry) { e.Attrs = []beneath.Attr{{Name: "a"}, {Name: "a"}} })}},
		"a pack that expands to all": {workspace.Object{ID: sum.String(), Size: 100, Plain: 1 << 40}, []workspace.Entry{file}},
		"a pack that grew":           {workspace.Object{ID: sum.String(), Size: 100, Plain: 99}, []workspace.Entry{file}},
	} {
		tree := &workspace.Tree{Version: workspace.TreeVersion, Objects: []workspace.Object{c.object}, Entries: c.entries}
		if err := tree.Check(); thole.CodeOf(err) != thole.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	good := &workspace.Tree{Version: workspace.TreeVersion, Objects: []workspace.Object{object}, Entries: []workspace.Entry{file, same}}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	good.Version++
	if err := good.Check(); thole.CodeOf(err) != thole.CodeUnsupported {
		t.Errorf("a tree of a later version: %v", err)
	}
}

// A snapshot that an older program stored is restored, set-id bits aside, and is
// the base of what this one stores.
func TestAnOldTreeOpens(t *testing.T) {
	r := newRig(t)
	thread := newThread()
	pack := []byte("onetwotwo")
	name := objects.SumOf(pack).String()
	one := objects.SumOf([]byte("one")).String()
	plain := fmt.Sprintf(`{"version":1,"template":"builtin-1","objects":[{"id":"%s","size":9}],"entries":[`+
		`{"p":"d","k":"d","m":493},{"p":"d/1","k":"f","m":2541,"t":1500000000123456789,"s":3,"h":"%s"},{"p":"d/2","k":"f","m":420,"t":1500000000000000000,"s":6,"h":"%s","f":3},`+
		`{"p":"e","k":"f","m":420},{"p":"l","k":"l","l":"d/1"}]}`, name, one, objects.SumOf([]byte("twotwo")))
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer enc.Close()
	tree := enc.EncodeAll([]byte(plain), nil)
	ctx := t.Context()
	refs := []workspace.Ref{{ID: "tree-" + objects.SumOf(tree).String(), Key: "old/tree", Size: int64(len(tree))}, {ID: name, Key: "old/pack", Size: 9}}
	for i, data := range [][]byte{tree, pack} {
		if err := r.objects.Put(ctx, refs[i].Key, bytes.NewReader(data), int64(len(data))); err != nil {
			t.Fatal(err)
		}
	}
	old := workspace.Snapshot{ID: workspace.SnapshotID(newThread()), Thread: thread, Tree: objects.SumOf(tree), RuntimeVersion: "builtin-1", Files: 3, Bytes: 9, Executor: thole.ExecutorID(newThread())}
	if err := r.db.Workspaces().Commit(ctx, workspace.Commit{Snapshot: old, Refs: refs}); err != nil {
		t.Fatal(err)
	}
	b := r.box(thread)
	r.restore(b)
	want := strings.Join([]string{
		`"d" drwxr-xr-x`, `"d/1" -rwxr-xr-x 3 ` + one, `"d/2" -rw-r--r-- 6 ` + objects.SumOf([]byte("twotwo")).String(),
		`"e" -rw-r--r-- 0 ` + objects.SumOf(nil).String(), `"l" Lrwxrwxrwx -> "d/1"`,
	}, "\n")
	skip := []string{".kb", ".user-files"}
	if got := listing(t, b.dir, skip...); got != want {
		t.Fatalf("restored\n%s\nnot\n%s", got, want)
	}
	b.put(t, "d/3", "three")
	if id := r.sync(b); id == old.ID {
		t.Error("nothing was stored")
	}
	out := r.box(thread)
	r.restore(out)
	if a, b := listing(t, out.dir, skip...), listing(t, b.dir, skip...); a != b {
		t.Errorf("%s\nis not\n%s", a, b)
	}
	snap, refs, err := r.db.Workspaces().Head(ctx, thread)
	if err != nil || !slices.ContainsFunc(refs, func(ref workspace.Ref) bool { return ref.Key == "old/pack" }) {
		t.Errorf("the old pack is not used any more: %+v, %v", refs, err)
	}
	i := slices.IndexFunc(refs, func(ref workspace.Ref) bool { return strings.HasPrefix(ref.ID, "tree-") })
	body, err := r.objects.Get(ctx, refs[i].Key, 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	data, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	if now, err := workspace.DecodeTree(data); err != nil || now.Version != workspace.TreeVersion || snap.ID == old.ID {
		t.Errorf("the new tree: %+v, %v", now, err)
	}
}
