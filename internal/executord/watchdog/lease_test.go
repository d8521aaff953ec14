package watchdog

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestOnlyTheLeaseCounts: neither a request nor an open terminal keeps an executord whose server
// has not renewed its lease, and an older renewal does not shorten a newer one.
func TestOnlyTheLeaseCounts(t *testing.T) {
	dir := t.TempDir()
	here, lease := filepath.Join(dir, "here"), filepath.Join(dir, LeaseName)
	if err := os.WriteFile(here, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w := New(here, time.Minute).Leased(lease)
	begun := w.held
	for _, c := range []struct {
		what    string
		renewed time.Duration // after begun; 0: not
		now     time.Duration
		expired bool
	}{
		{"before the first renewal", 0, 59 * time.Second, false},
		{"never renewed", 0, 61 * time.Second, true},
		{"renewed", 50 * time.Second, 100 * time.Second, false},
		{"a renewal from before that", 20 * time.Second, 100 * time.Second, false},
		{"not renewed again", 0, 111 * time.Second, true},
	} {
		if c.renewed > 0 {
			if err := Renew(lease, begun+int64(c.renewed)); err != nil {
				t.Fatal(err)
			}
		}
		if got := w.expired(begun + int64(c.now)); got != c.expired {
			t.Errorf("%s: expired %v", c.what, got)
		}
	}
	ended := make(chan struct{})
	w = New(here, time.Millisecond).Leased(filepath.Join(dir, "never renewed"))
	w.every = time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	w.last.Store(time.Now().Add(time.Hour).UnixNano())                         // asked all the time
	w.Run(ctx, func() bool { return true }, func() { close(ended); cancel() }) // with a terminal open
	<-ended
}
