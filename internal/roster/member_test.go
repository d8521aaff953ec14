package roster

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// duties is a Store of duties alone.
type duties struct {
	Store
	mu     sync.Mutex
	holder string
	until  time.Time
	away   bool // the store does not answer
}

func (d *duties) Take(_ context.Context, _, holder string, life time.Duration) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.away {
		return false, context.DeadlineExceeded
	}
	if d.holder != holder && time.Now().Before(d.until) {
		return false, nil
	}
	d.holder, d.until = holder, time.Now().Add(life)
	return true, nil
}

func (d *duties) Drop(_ context.Context, _, holder string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.holder == holder {
		d.holder, d.until = "", time.Time{}
	}
	return nil
}

// TestADutyIsDoneByOne: by another when its holder ends or does not reach the store, and never by
// two.
func TestADutyIsDoneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &duties{}
		doing := map[string]int{}
		var mu sync.Mutex
		count := func(id string, n int) {
			mu.Lock()
			defer mu.Unlock()
			if doing[id] += n; doing["a"]+doing["b"] > 1 {
				t.Error("two servers do the same")
			}
		}
		begin := func(id string, at Store) (end func()) {
			m := &Member{Store: at, Self: Server{ID: id}, Log: slog.New(slog.DiscardHandler)}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				m.Alone(ctx, "d", func(ctx context.Context) {
					count(id, 1)
					<-ctx.Done()
					count(id, -1)
				})
			}()
			return func() { cancel(); <-done }
		}
		is := func(id string) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			if doing[id] != 1 {
				t.Errorf("not done by %s: %v", id, doing)
			}
		}
		endA := begin("a", store)
		synctest.Wait()
		endB := begin("b", store)
		time.Sleep(time.Minute)
		is("a")
		endA()
		time.Sleep(BeatEvery)
		synctest.Wait()
		is("b")
		store.mu.Lock()
		store.away = true
		store.mu.Unlock()
		time.Sleep(DeadAfter)
		synctest.Wait()
		mu.Lock()
		if doing["b"] != 0 {
			t.Error("it goes on without the store, where another may have begun")
		}
		mu.Unlock()
		store.mu.Lock()
		store.away = false
		store.mu.Unlock()
		time.Sleep(BeatEvery)
		synctest.Wait()
		is("b")
		endB()
	})
}
