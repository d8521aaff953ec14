package serial_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/tholehq/thole/internal/serial"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOrderPerKey(t *testing.T) {
	q := serial.New[int](serial.Options{PerKey: 10000})
	const keys, each = 20, 500
	var got [keys][]int
	for i := range each {
		for k := range keys {
			if err := q.Submit(k, serial.Exclusive, func() { got[k] = append(got[k], i) }); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := q.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for k := range got {
		if len(got[k]) != each {
			t.Fatalf("key %d ran %d", k, len(got[k]))
		}
		for i, v := range got[k] {
			if i != v {
				t.Fatalf("key %d ran %d at place %d", k, v, i)
			}
		}
	}
	if q.Len() != 0 {
		t.Fatal("tasks remain")
	}
}

// TestModel checks random schedules against the rule itself: a task is running
// exactly when every earlier task of its key that conflicts with it is done.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type job struct {
			key     int
			mode    serial.Mode
			running atomic.Bool
			release chan struct{}
			done    bool
		}
		ops := rapid.SliceOfN(rapid.IntRange(0, 11), 1, 40).Draw(rt, "ops")
		picks := rapid.SliceOfN(rapid.IntRange(0, 1<<20), len(ops), len(ops)).Draw(rt, "picks")
		synctest.Test(t, func(t *testing.T) {
			q := serial.New[int](serial.Options{})
			var jobs []*job
			check := func() {
				synctest.Wait()
				for i, j := range jobs {
					if j.done {
						continue
					}
					want := true
					for _, e := range jobs[:i] {
						if !e.done && e.key == j.key && (e.mode == serial.Exclusive || j.mode == serial.Exclusive) {
							want = false
						}
					}
					if j.running.Load() != want {
						panic(fmt.Sprintf("task %d of key %d: running %v, want %v", i, j.key, !want, want))
					}
				}
			}
			finish := func(j *job) {
				close(j.release)
				j.done = true
			}
			for n, op := range ops {
				if op < 8 { // submit under one of two keys, two thirds shared
					j := &job{key: op % 2, mode: serial.Mode(min(1, op/2%3)), release: make(chan struct{})}
					jobs = append(jobs, j)
					if err := q.Submit(j.key, j.mode, func() { j.running.Store(true); <-j.release }); err != nil {
						panic(err)
					}
				} else {
					var run []*job
					for _, j := range jobs {
						if j.running.Load() && !j.done {
							run = append(run, j)
						}
					}
					if len(run) > 0 {
						finish(run[picks[n]%len(run)])
					}
				}
				check()
			}
			for _, j := range jobs {
				if !j.done {
					finish(j)
				}
			}
			if err := q.Close(t.Context()); err != nil || q.Len() != 0 {
				panic("tasks remain")
			}
		})
	})
}

func TestBounds(t *testing.T) {
	gate := make(chan struct{})
	q := serial.New[string](serial.Options{PerKey: 3, Total: 5})
	block := func() { <-gate }
	for i, tc := range []struct {
		key  string
		want error
	}{
		{"a", nil}, {"a", nil}, {"a", nil}, {"a", serial.ErrFull},
		{"b", nil}, {"b", nil}, {"b", serial.ErrFull}, {"c", serial.ErrFull},
	} {
		if err := q.Submit(tc.key, serial.Exclusive, block); !errors.Is(err, tc.want) {
			t.Fatalf("%d: %v", i, err)
		}
	}
	close(gate)
	if err := q.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := q.Submit("a", serial.Shared, block); !errors.Is(err, serial.ErrClosed) {
		t.Fatal(err)
	}
}

// TestManyKeys sees that keys which come and go leave nothing behind.
func TestManyKeys(t *testing.T) {
	q := serial.New[int](serial.Options{})
	for k := range 20000 {
		if err := q.Submit(k, serial.Mode(k%2), func() {}); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := serial.Lanes(q); n > 0 {
		t.Fatalf("%d lanes for no task", n)
	}
}

// TestBlockedKeysDoNotHoldUpOthers blocks a hundred keys and runs another.
func TestBlockedKeysDoNotHoldUpOthers(t *testing.T) {
	q := serial.New[int](serial.Options{})
	gate := make(chan struct{})
	for k := range 100 {
		_ = q.Submit(k, serial.Exclusive, func() { <-gate })
	}
	ran := make(chan struct{})
	if err := q.Submit(1000, serial.Exclusive, func() { close(ran) }); err != nil {
		t.Fatal(err)
	}
	<-ran
	close(gate)
	if err := q.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Close waits for what was accepted, as long as its context lasts.
func TestClose(t *testing.T) {
	q := serial.New[int](serial.Options{})
	gate, ran := make(chan struct{}), false
	_ = q.Submit(1, serial.Exclusive, func() { <-gate; ran = true })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := q.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal("Close did not heed its context", err)
	}
	close(gate)
	if err := q.Close(t.Context()); err != nil || !ran {
		t.Fatal("Close did not wait", err)
	}
}

func TestConcurrentSubmitters(t *testing.T) {
	q := serial.New[int](serial.Options{PerKey: 1 << 20, Total: 1 << 20})
	var sum [8]int // each guarded by its key
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 2000 {
				k := i % len(sum)
				if err := q.Submit(k, serial.Exclusive, func() { sum[k]++ }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := q.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for k, n := range sum {
		if n != 2000 {
			t.Fatalf("key %d ran %d", k, n)
		}
	}
}
