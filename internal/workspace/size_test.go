package workspace_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tholehq/thole/internal/workspace"
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
	if diff := cmp.Diff(listing(t, first.dir), listing(t, second.dir, ".kb", ".user-files")); diff != "" {
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
	if diff := cmp.Diff(listing(t, first.dir), listing(t, second.dir, ".kb", ".user-files")); diff != "" {
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
