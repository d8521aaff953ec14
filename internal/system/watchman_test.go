package system

import (
	"context"
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
	watch := func(change func(*watchman)) {
		w := newWatchman(token, 0)
		w.every = time.Millisecond
		change(w)
		ctx, cancel := context.WithCancel(t.Context())
		w.run(ctx, func() bool { return false }, func() { close(ended); cancel() })
	}
	go watch(func(*watchman) {})
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
	watch(func(w *watchman) { w.last.Store(time.Now().Add(-lonely - time.Second).UnixNano()) })
	<-ended
}
