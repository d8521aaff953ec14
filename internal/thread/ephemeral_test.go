package thread_test

import (
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
)

// Ephemeral threads that a client still follows keep no other from its end, however
// many they are.
func TestEphemeralThreadsBehindOthersGo(t *testing.T) {
	b := newBench(t, storetest.SQLite(t), nil)
	for range 130 {
		sub, err := b.Subscribe(bg, me, b.create(thread.Create{Ephemeral: true}).ID, thread.SubscribeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Close()
	}
	last := b.create(thread.Create{Ephemeral: true}).ID
	b.now = b.now.Add(time.Hour)
	if err := b.Sweep(bg); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Get(bg, me, last); thole.CodeOf(err) != thole.CodeNotFound {
		t.Errorf("an ephemeral thread that nobody follows: %v", err)
	}
}
