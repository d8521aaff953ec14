package workspace_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/beneath"
	"github.com/tholehq/thole/internal/workspace/side"
)

// The writes to one file are numbered and go round its blocks in a scattered
// order; each fills its block with its number. So a file shows whether it is a
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
	t.Parallel()
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
	restless := side.New(side.Config{Dir: b.dir, Client: r.client, Now: func() time.Time {
		dir, err := beneath.Open(b.dir)
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		st, err := dir.Lstat("log")
		if err != nil {
			t.Fatal(err)
		}
		return time.Unix(0, st.Ctime)
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
