package workspace_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects/dir"
	"github.com/tholehq/thole/internal/testkit/fault"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/workspacetest"
	_ "modernc.org/sqlite"
)

func manyFiles(t testing.TB, b *box, n int) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range n {
		body := bytes.Repeat([]byte{byte(i)}, 1+rnd.IntN(8000))
		copy(body, fmt.Sprint(i))
		b.put(t, fmt.Sprintf("d%d/e%d/f%d", i%10, i%97, i), string(body))
	}
}

func TestManyFiles(t *testing.T) {
	n := 2000
	if os.Getenv("CI") == "true" || os.Getenv("THOLE_SOAK") != "" {
		n = 10_000
	}
	r := newRig(t)
	thread := newThread()
	first, second := r.box(thread), r.box(thread)
	manyFiles(t, first, n)
	snap := r.sync(first)
	r.restore(second)
	if diff := cmp.Diff(listing(t, first.dir), listing(t, second.dir, ".agent_data", ".kb", ".user-files")); diff != "" {
		t.Fatal(diff)
	}
	if err := r.manager.Verify(context.Background(), first.stopped(), snap); err != nil {
		t.Fatal(err)
	}
}

// A file of several parts, one that changed while it was pushed included.
func TestLargeFiles(t *testing.T) {
	size := int64(65<<20 + 12345)
	if os.Getenv("THOLE_SOAK") != "" {
		size = 1 << 30
	}
	r := newRig(t)
	thread := newThread()
	first, second := r.box(thread), r.box(thread)
	f, err := os.Create(filepath.Join(first.dir, "large"))
	if err != nil {
		t.Fatal(err)
	}
	block := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	for off := int64(0); off < size; off += int64(len(block)) {
		block[0] = byte(off >> 20)
		if _, err := f.Write(block[:min(int64(len(block)), size-off)]); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	// Between the first scan and its push the file changes: the sync begins again.
	side := &meddler{Side: first.target.Side, before: func() {
		f, err := os.OpenFile(filepath.Join(first.dir, "large"), os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteAt([]byte("changed"), 64<<20+5)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Error(err)
		}
	}}
	target := first.target
	target.Side = side
	snap, err := r.manager.Sync(context.Background(), target, "test")
	if err != nil {
		t.Fatal(err)
	}
	if side.scans < 2 {
		t.Error("the change went unnoticed")
	}
	r.restore(second)
	if diff := cmp.Diff(listing(t, first.dir), listing(t, second.dir, ".agent_data", ".kb", ".user-files")); diff != "" {
		t.Fatal(diff)
	}
	if err := r.manager.Verify(context.Background(), first.stopped(), snap); err != nil {
		t.Fatal(err)
	}
}

// meddler does something before the first push.
type meddler struct {
	workspace.Side
	before func()
	once   sync.Once
	scans  int
}

func (m *meddler) Scan(ctx context.Context, req workspace.ScanRequest) (workspace.ScanResult, error) {
	m.scans++
	return m.Side.Scan(ctx, req)
}

func (m *meddler) Push(ctx context.Context, req workspace.PushRequest) (workspace.PushResult, error) {
	m.once.Do(m.before)
	return m.Side.Push(ctx, req)
}

// The writes to one file are numbered and go round its blocks in a scattered
// order; each fills its block with its number. So a file tells whether it is a
// state that ever was: the highest number it holds is the time, and every other
// block must hold its last write before that.
const block = 4096

func blockOf(write uint64, blocks int) int { return int(write * 37 % uint64(blocks)) }

func fillBlock(write uint64) []byte {
	b := make([]byte, block)
	for i := 0; i < block; i += 8 {
		binary.LittleEndian.PutUint64(b[i:], write)
	}
	return b
}

// everWas reports whether content is what the file was at one instant.
func everWas(content []byte, blocks int) error {
	if len(content) != block*blocks {
		return fmt.Errorf("%d bytes", len(content))
	}
	got := make([]uint64, blocks)
	now := uint64(0)
	for i := range got {
		part := content[i*block:][:block]
		got[i] = binary.LittleEndian.Uint64(part)
		if !bytes.Equal(part, fillBlock(got[i])) {
			return fmt.Errorf("block %d holds two writes", i)
		}
		now = max(now, got[i])
	}
	for write := now; write > 0 && write+uint64(blocks) > now; write-- {
		if at := blockOf(write, blocks); got[at] != write {
			return fmt.Errorf("at write %d block %d holds %d, not %d", now, at, got[at], write)
		}
	}
	return nil
}

// While files are rewritten in place, a snapshot holds each as it was at one
// instant, or its older state with a mark.
func TestFilesThatChangeAreNeverTorn(t *testing.T) {
	r := newRig(t)
	thread := newThread()
	first := r.box(thread)
	const n = 6
	blocks := [n]int{480, 1500, 480, 1500, 64, 1500} // some for packs, some on their own
	for i := range n {
		first.put(t, fmt.Sprintf("f%d", i), strings.Repeat("\x00", block*blocks[i]))
	}
	r.sync(first)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			f, err := os.OpenFile(filepath.Join(first.dir, fmt.Sprintf("f%d", i)), os.O_WRONLY, 0)
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			for write := uint64(1); ; write++ {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := f.WriteAt(fillBlock(write), int64(blockOf(write, blocks[i])*block)); err != nil {
					t.Error(err)
					return
				}
				if i%2 == 0 && write%500 == 0 {
					<-time.After(time.Duration(i*40) * time.Millisecond) // some rest now and then
				}
			}
		})
	}
	for range 3 {
		snap := r.sync(first)
		v, err := r.manager.ViewSnapshot(context.Background(), snap)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d files would not hold still", v.Snapshot.Unsettled)
		out := r.box(thread)
		r.restore(out)
		for i := range n {
			got, err := os.ReadFile(filepath.Join(out.dir, fmt.Sprintf("f%d", i)))
			if err == nil {
				err = everWas(got, blocks[i])
			}
			if err != nil {
				t.Fatalf("f%d is torn, or gone: %v", i, err)
			}
		}
	}
	close(stop)
	wg.Wait()
	snap := r.sync(first)
	if err := r.manager.Verify(context.Background(), first.stopped(), snap); err != nil {
		t.Fatalf("after the last write: %v", err)
	}
}

// A file that changes whenever it is read keeps its last state and a mark; one
// that was never stored has only the mark. A stopped executor may have neither.
func TestAFileThatNeverHoldsStillIsMarked(t *testing.T) {
	r := newRig(t)
	thread := newThread()
	b := r.box(thread)
	b.put(t, "log", "one")
	b.put(t, "still", "still")
	r.sync(b)
	// To this side every file was stamped just now.
	restless := workspace.NewLocal(workspace.LocalConfig{Dir: b.dir, Client: r.client, Now: func() time.Time {
		st, err := os.Stat(filepath.Join(b.dir, "log"))
		if err != nil {
			t.Fatal(err)
		}
		return time.Unix(st.Sys().(*syscall.Stat_t).Ctim.Unix())
	}})
	defer restless.Close()
	b.put(t, "fresh", "never stored")
	b.put(t, "log", "two")
	target := b.target
	target.Side = restless
	snap, err := r.manager.Sync(context.Background(), target, "test")
	if err != nil {
		t.Fatal(err)
	}
	v, err := r.manager.ViewSnapshot(context.Background(), snap)
	if err != nil || v.Snapshot.Unsettled == 0 {
		t.Fatalf("%+v, %v", v, err)
	}
	out := r.box(thread)
	r.restore(out)
	if got, err := os.ReadFile(filepath.Join(out.dir, "log")); err != nil || string(got) != "one" {
		t.Errorf("log is %q, %v", got, err)
	}
	if err := r.manager.Verify(context.Background(), b.stopped(), snap); err == nil {
		t.Error("a snapshot with marks passes for the whole tree")
	}
	if _, err := restless.Scan(context.Background(), workspace.ScanRequest{Quiet: true}); thole.CodeOf(err) != thole.CodeConflict {
		t.Errorf("a stopped workspace that changes: %v", err)
	}
	if last := r.sync(b); r.manager.Verify(context.Background(), b.stopped(), last) != nil {
		t.Error("the next sync does not settle it")
	}
}

// A database in use is stored with what its log holds, and opens whole.
func TestDatabasesInUse(t *testing.T) {
	r := newRig(t)
	thread := newThread()
	first := r.box(thread)
	if err := os.MkdirAll(filepath.Join(first.dir, ".agent_data/codex"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(first.dir, ".agent_data/codex/state.sqlite")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)&_pragma=wal_autocheckpoint(0)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("create table t (n integer primary key, body text)"); err != nil {
		t.Fatal(err)
	}
	var last atomic.Int64
	insert := func() {
		n := last.Load() + 1
		if _, err := db.Exec("insert into t values (?, ?)", n, strings.Repeat("x", 1000)); err != nil {
			t.Error(err)
		}
		last.Store(n)
	}
	for range 50 {
		insert()
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				insert()
			}
		}
	})
	for range 3 {
		before := last.Load()
		r.sync(first)
		out := r.box(thread)
		r.restore(out)
		copied, err := sql.Open("sqlite", "file:"+filepath.Join(out.dir, ".agent_data/codex/state.sqlite"))
		if err != nil {
			t.Fatal(err)
		}
		var rows, top int64
		var check string
		err = errors.Join(copied.QueryRow("select count(*), max(n) from t").Scan(&rows, &top), copied.QueryRow("pragma integrity_check").Scan(&check))
		copied.Close()
		if err != nil || check != "ok" || rows != top || rows < before {
			t.Fatalf("%d rows up to %d, at least %d were there; check %q, %v", rows, top, before, check, err)
		}
	}
	close(stop)
	wg.Wait()
	// Stopped, the files are taken as they are, log included.
	snap, err := r.manager.Sync(context.Background(), first.stopped(), "pre.remove")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.manager.Verify(context.Background(), first.stopped(), snap); err != nil {
		t.Fatal(err)
	}
}

// flaky makes the object server fail every nth request: before it did anything,
// after it did, or in the middle of the body.
type flaky struct {
	next http.Handler
	nth  int64
	how  string
	n    atomic.Int64
}

func (f *flaky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.nth == 0 || f.n.Add(1)%f.nth != 0 {
		f.next.ServeHTTP(w, r)
		return
	}
	switch f.how {
	case "before":
		http.Error(w, "no", http.StatusServiceUnavailable)
	case "after":
		f.next.ServeHTTP(httptest.NewRecorder(), r)
		http.Error(w, "no", http.StatusInternalServerError)
	case "cut":
		rec := httptest.NewRecorder()
		f.next.ServeHTTP(rec, r)
		w.Header().Set("Content-Length", fmt.Sprint(rec.Body.Len()+1))
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes()[:rec.Body.Len()/2])
		panic(http.ErrAbortHandler)
	}
}

func TestAnObjectStoreThatFailsEveryNthCall(t *testing.T) {
	for _, how := range []string{"before", "after", "cut"} {
		for _, nth := range []int64{1, 2, 3, 5} {
			t.Run(fmt.Sprintf("%s/%d", how, nth), func(t *testing.T) {
				t.Parallel()
				f := &flaky{how: how}
				srv := httptest.NewServer(f)
				defer srv.Close()
				objs, err := dir.Open(t.TempDir(), srv.URL)
				if err != nil {
					t.Fatal(err)
				}
				defer objs.Close()
				f.next = objs.Handler()
				r := newRig(t, func(c *workspace.Config) { c.Objects = objs })
				thread := newThread()
				b := r.box(thread)
				oddTree(t, b)
				good := r.sync(b)
				before := listing(t, b.dir)
				manyFiles(t, b, 300)
				f.nth = nth
				snap, err := r.manager.Sync(context.Background(), b.target, "test")
				f.nth = 0
				want := listing(t, b.dir)
				if err != nil {
					snap, want = good, before
				} else if nth == 1 && how != "after" {
					t.Error("a sync succeeded against a store that answers nothing")
				}
				head, _, herr := r.db.Workspaces().Head(context.Background(), thread)
				if herr != nil || head.ID != snap {
					t.Fatalf("the thread is at %s, not %s (%v, sync said %v)", head.ID, snap, herr, err)
				}
				out := r.box(thread)
				f.nth = max(nth, 2)
				rerr := r.manager.Restore(context.Background(), out.target)
				f.nth = 0
				if rerr != nil { // repeated, it must come out the same
					rerr = r.manager.Restore(context.Background(), out.target)
				}
				if rerr != nil {
					t.Fatal(rerr)
				}
				if diff := cmp.Diff(want, listing(t, out.dir, ".kb", ".user-files")); diff != "" {
					t.Fatal(diff)
				}
				if last := r.sync(b); r.manager.Verify(context.Background(), b.stopped(), last) != nil {
					t.Fatal("afterwards the sync does not recover")
				}
			})
		}
	}
}

// With a fault at every call to the rows, the store and the side, a thread is at
// a snapshot that restores, and the next sync gets it right.
func TestFaultsAtEveryCall(t *testing.T) {
	fault.Enumerate(t, func(t *testing.T, p *fault.Plan) {
		r := newRig(t, func(c *workspace.Config) {
			c.Rows, c.Objects = &workspacetest.Rows{Next: c.Rows, Plan: p}, &workspacetest.Store{Next: c.Objects, Plan: p}
		})
		clean := workspace.New(workspace.Config{Rows: r.db.Workspaces(), Objects: r.objects, Client: r.client})
		thread := newThread()
		b := r.box(thread)
		target := b.target
		target.Side = &workspacetest.Side{Next: target.Side, Plan: p}
		b.put(t, "a", "one")
		_ = r.manager.Restore(context.Background(), target)
		_, err1 := r.manager.Sync(context.Background(), target, "test")
		b.put(t, "b", "two")
		snap, err2 := r.manager.Sync(context.Background(), target, "test")
		if err2 == nil {
			if err := clean.Verify(context.Background(), b.stopped(), snap); err != nil {
				t.Errorf("a sync that said it succeeded: %v", err)
			}
		}
		_ = err1
		last, err := clean.Sync(context.Background(), b.target, "test")
		if err != nil {
			t.Fatal(err)
		}
		if err := clean.Verify(context.Background(), b.stopped(), last); err != nil {
			t.Fatal(err)
		}
		out := r.box(thread)
		if err := clean.Restore(context.Background(), out.target); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(listing(t, b.dir, ".kb", ".user-files", ".agent_data"), listing(t, out.dir, ".kb", ".user-files", ".agent_data")); diff != "" {
			t.Fatal(diff)
		}
	})
}

// A full disk fails the call and leaves the old snapshot.
func TestDiskFull(t *testing.T) {
	small := t.TempDir()
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(small, 0); err != nil {
			t.Error(err)
		}
	}()
	r := newRig(t)
	thread := newThread()
	b := r.box(thread)
	b.put(t, "a", "one")
	good := r.sync(b)
	manyFiles(t, b, 1500) // about 6 MB
	tight := workspace.NewLocal(workspace.LocalConfig{Dir: b.dir, State: small, Client: r.client})
	target := b.target
	target.Side = tight
	if _, err := r.manager.Sync(context.Background(), target, "test"); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("a stage that does not fit: %v", err)
	}
	if head, _, err := r.db.Workspaces().Head(context.Background(), thread); err != nil || head.ID != good {
		t.Fatalf("the thread moved to %s (%v)", head.ID, err)
	}
	r.sync(b)
	// The other way round: a workspace too small for what is restored.
	at := filepath.Join(small, "workspace")
	if err := os.Mkdir(at, 0o700); err != nil {
		t.Fatal(err)
	}
	out := r.box(thread)
	target = out.target
	target.Side = workspace.NewLocal(workspace.LocalConfig{Dir: at, State: out.state, Client: r.client})
	if err := r.manager.Restore(context.Background(), target); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("a workspace that does not fit: %v", err)
	}
	if err := tight.Close(); err != nil {
		t.Error(err)
	}
}
