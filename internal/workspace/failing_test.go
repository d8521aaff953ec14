package workspace_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects/dir"
	"github.com/tholehq/thole/internal/testkit/fault"
	"github.com/tholehq/thole/internal/workspace/manager"
	"github.com/tholehq/thole/internal/workspace/side"
	"github.com/tholehq/thole/internal/workspace/workspacetest"
)

// flaky makes the object server fail every nth request: before it did anything,
// after it did, or in the middle of the body.
type flaky struct {
	next http.Handler
	nth  atomic.Int64
	how  string
	n    atomic.Int64
	over chan struct{} // ends what hangs
}

func (f *flaky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if nth := f.nth.Load(); nth == 0 || f.n.Add(1)%nth != 0 {
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
	case "hang":
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Length", "10")
			w.WriteHeader(http.StatusPartialContent)
			_ = http.NewResponseController(w).Flush()
		}
		<-f.over
	}
}

// A store that takes a request and then says nothing is given up, like one that
// fails: a worker that syncs holds the thread, and must not hold it for ever.
func TestAnObjectStoreThatStandsStill(t *testing.T) {
	f := &flaky{how: "hang", over: make(chan struct{})}
	srv := httptest.NewServer(f)
	defer srv.Close()
	defer close(f.over)
	objs, err := dir.Open(t.TempDir(), srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer objs.Close()
	f.next = objs.Handler()
	r := newRig(t, func(c *manager.Config) { c.Objects = objs })
	patient := func(b *box, d time.Duration) *box {
		b.target.Side = side.New(side.Config{Dir: b.dir, State: b.state, Client: r.client, Patience: d})
		return b
	}
	b := patient(r.box(newThread()), 100*time.Millisecond)
	b.put(t, "a", "one")
	f.nth.Store(1)
	if _, err := r.manager.Sync(t.Context(), b.target, "test"); thole.CodeOf(err) != thole.CodeUnavailable || !strings.Contains(err.Error(), "stood still") {
		t.Errorf("sync to a store that hangs: %v", err)
	}
	f.nth.Store(2) // every request is tried again
	r.sync(patient(b, 500*time.Millisecond))
	next := patient(r.box(b.target.Thread), 500*time.Millisecond)
	if err := r.manager.Restore(t.Context(), next.target); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, next)["a"]; got != "one" {
		t.Errorf("restored %q", got)
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
				r := newRig(t, func(c *manager.Config) { c.Objects = objs })
				thread := newThread()
				b := r.box(thread)
				oddTree(t, b)
				good := r.sync(b)
				before := listing(t, b.dir)
				manyFiles(t, b, 300)
				f.nth.Store(nth)
				snap, err := r.manager.Sync(context.Background(), b.target, "test")
				f.nth.Store(0)
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
				f.nth.Store(max(nth, 2))
				rerr := r.manager.Restore(context.Background(), out.target)
				f.nth.Store(0)
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
	t.Parallel()
	fault.Enumerate(t, func(t *testing.T, p *fault.Plan) {
		r := newRig(t, func(c *manager.Config) {
			c.Rows, c.Objects = &workspacetest.Rows{Next: c.Rows, Plan: p}, &workspacetest.Store{Next: c.Objects, Plan: p}
		})
		clean := manager.New(manager.Config{Rows: r.db.Workspaces(), Objects: r.objects, Client: r.client})
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
		if diff := cmp.Diff(listing(t, b.dir, ".kb", ".user-files"), listing(t, out.dir, ".kb", ".user-files")); diff != "" {
			t.Fatal(diff)
		}
	})
}
