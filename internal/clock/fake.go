package clock

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Fake is a clock that stands still until Advance.
type Fake struct {
	mu      sync.Mutex // guards all below; never held while a callback runs
	now     time.Time
	timers  []*fakeTimer // in order of due time, then of creation
	changed chan struct{}
}

// NewFake starts a clock at t.
func NewFake(t time.Time) *Fake { return &Fake{now: t, changed: make(chan struct{})} }

type fakeTimer struct {
	f   *Fake
	due time.Time
	run func()
	ch  chan time.Time
}

// Now returns the fake time.
func (f *Fake) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// AfterFunc is as in Clock.
func (f *Fake) AfterFunc(d time.Duration, run func()) func() bool {
	t := &fakeTimer{f: f, run: run}
	t.set(d)
	return t.Stop
}

// NewTimer is as in Clock.
func (f *Fake) NewTimer(d time.Duration) Timer {
	t := &fakeTimer{f: f, ch: make(chan time.Time, 1)}
	t.set(d)
	return t
}

// Advance moves time on, firing what becomes due one by one, each at its own
// time. It returns when the callbacks have.
func (f *Fake) Advance(d time.Duration) {
	f.mu.Lock()
	end := f.now.Add(d)
	for len(f.timers) > 0 && !f.timers[0].due.After(end) {
		t := f.timers[0]
		f.timers = f.timers[1:]
		if t.due.After(f.now) {
			f.now = t.due
		}
		f.tellLocked()
		if t.ch != nil {
			t.ch <- f.now
			continue
		}
		f.mu.Unlock()
		done := make(chan struct{})
		go func() { defer close(done); t.run() }()
		<-done
		f.mu.Lock()
	}
	f.now = end
	f.mu.Unlock()
}

// Pending counts timers that have not fired.
func (f *Fake) Pending() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.timers)
}

// Await waits until at least n timers are pending: the code under test has come
// to where it waits, and Advance will wake it.
func (f *Fake) Await(ctx context.Context, n int) error {
	for {
		f.mu.Lock()
		have, ch := len(f.timers), f.changed
		f.mu.Unlock()
		if have >= n {
			return nil
		}
		select {
		case <-ch:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (f *Fake) tellLocked() {
	close(f.changed)
	f.changed = make(chan struct{})
}

func (t *fakeTimer) C() <-chan time.Time { return t.ch }

func (t *fakeTimer) Stop() bool {
	t.f.mu.Lock()
	defer t.f.mu.Unlock()
	was := t.removeLocked()
	t.f.tellLocked()
	return was
}

func (t *fakeTimer) Reset(d time.Duration) bool {
	was := t.Stop()
	t.set(d)
	return was
}

// removeLocked counts a tick that nobody has taken as not yet fired, as real
// timers do.
func (t *fakeTimer) removeLocked() bool {
	if t.ch != nil {
		select {
		case <-t.ch:
			return true
		default:
		}
	}
	i := slices.Index(t.f.timers, t)
	if i < 0 {
		return false
	}
	t.f.timers = slices.Delete(t.f.timers, i, i+1)
	return true
}

func (t *fakeTimer) set(d time.Duration) {
	f := t.f
	f.mu.Lock()
	defer f.mu.Unlock()
	t.due = f.now.Add(max(d, 0))
	i := len(f.timers)
	for i > 0 && f.timers[i-1].due.After(t.due) {
		i--
	}
	f.timers = slices.Insert(f.timers, i, t)
	f.tellLocked()
}
