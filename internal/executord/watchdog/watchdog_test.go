package watchdog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestAnExecutordWithoutAHomeEnds(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	watch := func(change func(*Dog)) {
		w := New(token, 0)
		w.every = time.Millisecond
		change(w)
		ctx, cancel := context.WithCancel(t.Context())
		w.Run(ctx, func() bool { return false }, func() { close(ended); cancel() })
	}
	go watch(func(*Dog) {})
	select {
	case <-ended:
		t.Fatal("it ended with its home there")
	case <-time.After(20 * time.Millisecond): // twenty looks
	}
	os.Remove(token)
	<-ended
	ended = make(chan struct{})
	if err := os.WriteFile(token, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	watch(func(w *Dog) { w.last.Store(time.Now().Add(-orphanTimeout - time.Second).UnixNano()) })
	<-ended
}

// In a box the file stays to be seen when its home is removed.
func TestAFileWithoutANameIsGone(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "here"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := New(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), 0)
	if w.gone() {
		t.Error("a file that is there is gone")
	}
	if err := os.Remove(f.Name()); err != nil {
		t.Fatal(err)
	}
	if !w.gone() {
		t.Error("a file that was removed is there")
	}
}
