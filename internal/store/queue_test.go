package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/store/storetest"
)

func uuid(n int) string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", n) }

func claim(t testing.TB, q queue.Store, n int, lease time.Duration, l queue.Limits) []queue.Lease {
	t.Helper()
	got, err := q.Claim(context.Background(), queue.Claim{Owner: "test", Token: thole.NewID[string](time.Now()), Max: n, Lease: lease, Limits: l})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func turns(leases []queue.Lease) (out []thole.TurnID) {
	for _, l := range leases {
		out = append(out, l.Turn)
	}
	return out
}

func add(t testing.TB, q queue.Store, turn, thread, user, priority int) thole.TurnID {
	t.Helper()
	it := queue.Item{Turn: thole.TurnID(uuid(turn)), Thread: thole.ThreadID(uuid(thread)), User: thole.UserID(uuid(user)), Priority: priority}
	if err := q.Enqueue(context.Background(), it); err != nil {
		t.Fatal(err)
	}
	return it.Turn
}

func TestQueue(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		ctx := context.Background()
		const hour = time.Hour
		t.Run("a thread's turns follow one another", func(t *testing.T) {
			q := open(t).Queue()
			a, b, other := add(t, q, 1, 1, 1, 0), add(t, q, 2, 1, 1, 9), add(t, q, 3, 2, 1, 0)
			add(t, q, 1, 1, 1, 0) // a repeat changes nothing
			got := claim(t, q, 9, hour, queue.Limits{})
			if !slices.Equal(turns(got), []thole.TurnID{a, other}) {
				t.Fatalf("claimed %v", turns(got))
			}
			if err := q.Complete(ctx, a, got[0].Token); err != nil {
				t.Fatal(err)
			}
			if got := turns(claim(t, q, 9, hour, queue.Limits{})); !slices.Equal(got, []thole.TurnID{b}) {
				t.Fatalf("then claimed %v", got)
			}
		})
		t.Run("priority first, then arrival", func(t *testing.T) {
			q := open(t).Queue()
			low, first, second := add(t, q, 1, 1, 1, -1), add(t, q, 2, 2, 1, 5), add(t, q, 3, 3, 1, 5)
			if got := turns(claim(t, q, 3, hour, queue.Limits{})); !slices.Equal(got, []thole.TurnID{first, second, low}) {
				t.Fatalf("claimed %v", got)
			}
		})
		t.Run("limits count what runs, not what waits for a human", func(t *testing.T) {
			q := open(t).Queue()
			for i := range 6 {
				add(t, q, i, i, i%2, 0)
			}
			l := queue.Limits{Total: 3, PerUser: 2}
			first := claim(t, q, 6, hour, l)
			if len(first) != 3 {
				t.Fatalf("claimed %d of a total of 3", len(first))
			}
			if more := claim(t, q, 6, hour, queue.Limits{PerUser: 2}); len(more) != 1 || more[0].User == first[0].User && more[0].User == first[2].User {
				t.Fatalf("per-user limit let %v through", more)
			}
			if err := q.Wait(ctx, first[0].Turn, first[0].Token, true); err != nil {
				t.Fatal(err)
			}
			if more := claim(t, q, 6, hour, queue.Limits{PerUser: 2}); len(more) != 1 || more[0].User != first[0].User {
				t.Fatalf("a waiting turn kept its slot: %v", more)
			}
		})
		t.Run("one claim fills the places that a user's limit leaves", func(t *testing.T) {
			q := open(t).Queue()
			for i := range 8 {
				add(t, q, i, i, i/5, 0) // five of one user, then three of another
			}
			l := queue.Limits{Total: 4, PerUser: 2}
			want := []thole.TurnID{thole.TurnID(uuid(0)), thole.TurnID(uuid(1)), thole.TurnID(uuid(5)), thole.TurnID(uuid(6))}
			if got := turns(claim(t, q, 8, hour, l)); !slices.Equal(got, want) {
				t.Fatalf("claimed %v", got)
			}
			if got := claim(t, q, 8, hour, l); len(got) != 0 {
				t.Fatalf("claimed %v beyond the total", got)
			}
			// A limit above the total is never the one that refuses.
			if got := claim(t, q, 8, hour, queue.Limits{Total: 5, PerUser: 9}); len(got) != 1 {
				t.Fatalf("claimed %v with one place left", got)
			}
		})
		t.Run("a lease that is over changes nothing", func(t *testing.T) {
			q := open(t).Queue()
			turn := add(t, q, 1, 1, 1, 0)
			old := claim(t, q, 1, 0, queue.Limits{})[0] // over at once
			if got, err := q.Reap(ctx, false, 10); err != nil || len(got) != 1 {
				t.Fatalf("reaped %v, %v", got, err)
			}
			now := claim(t, q, 1, hour, queue.Limits{})[0]
			if now.Attempt != 1 || now.LastError == "" {
				t.Fatalf("second attempt: %+v", now)
			}
			before, _ := q.Get(ctx, turn)
			for name, err := range map[string]error{
				"renew":    second(q.Renew(ctx, turn, old.Token, hour)),
				"wait":     q.Wait(ctx, turn, old.Token, true),
				"park":     q.Park(ctx, turn, old.Token),
				"release":  q.Release(ctx, turn, old.Token, 0, "x"),
				"put back": q.PutBack(ctx, turn, old.Token, 0, "x"),
				"complete": q.Complete(ctx, turn, old.Token),
			} {
				if !errors.Is(err, queue.ErrLeaseLost) {
					t.Errorf("%s with an old token: %v", name, err)
				}
			}
			if after, _ := q.Get(ctx, turn); after != before {
				t.Errorf("row changed: %+v to %+v", before, after)
			}
		})
		t.Run("whoever is alone takes over leases that still run", func(t *testing.T) {
			q := open(t).Queue()
			turn := add(t, q, 1, 1, 1, 0)
			old := claim(t, q, 1, hour, queue.Limits{})[0]
			if got, err := q.Reap(ctx, false, 10); err != nil || len(got) != 0 {
				t.Fatalf("reaped %v, %v", got, err)
			}
			if got, err := q.Reap(ctx, true, 10); err != nil || len(got) != 1 || got[0] != turn {
				t.Fatalf("reaped %v, %v", got, err)
			}
			if err := q.Complete(ctx, turn, old.Token); !errors.Is(err, queue.ErrLeaseLost) {
				t.Fatalf("the one before: %v", err)
			}
			if now := claim(t, q, 1, hour, queue.Limits{}); len(now) != 1 || now[0].Turn != turn {
				t.Fatalf("claimed %+v", now)
			}
		})
		t.Run("an expired lease that nobody reaped is over too", func(t *testing.T) {
			q := open(t).Queue()
			turn := add(t, q, 1, 1, 1, 0)
			l := claim(t, q, 1, 0, queue.Limits{})[0]
			if _, err := q.Renew(ctx, turn, l.Token, hour); !errors.Is(err, queue.ErrLeaseLost) {
				t.Fatal(err)
			}
			if err := q.Complete(ctx, turn, l.Token); !errors.Is(err, queue.ErrLeaseLost) {
				t.Fatal(err)
			}
		})
		t.Run("release waits out its delay", func(t *testing.T) {
			q := open(t).Queue()
			turn := add(t, q, 1, 1, 1, 0)
			l := claim(t, q, 1, hour, queue.Limits{})[0]
			if err := q.Release(ctx, turn, l.Token, hour, "no \xffexecutor\x00"); err != nil {
				t.Fatal(err)
			}
			if got := claim(t, q, 1, hour, queue.Limits{}); len(got) != 0 {
				t.Fatal("claimed before its time")
			}
			// A cancel does not wait.
			if ok, err := q.Cancel(ctx, turn); !ok || err != nil {
				t.Fatal(ok, err)
			}
			if got := claim(t, q, 1, hour, queue.Limits{}); len(got) != 1 || !got[0].Cancel || got[0].LastError != "no executor" {
				t.Fatalf("after cancel: %+v", got)
			}
		})
		t.Run("cancel reaches every state", func(t *testing.T) {
			q := open(t).Queue()
			turn := add(t, q, 1, 1, 1, 0)
			l := claim(t, q, 1, hour, queue.Limits{})[0]
			if err := q.Park(ctx, turn, l.Token); err != nil {
				t.Fatal(err)
			}
			if got := claim(t, q, 1, hour, queue.Limits{}); len(got) != 0 {
				t.Fatal("claimed a parked turn")
			}
			if ok, err := q.Cancel(ctx, turn); !ok || err != nil {
				t.Fatal(ok, err)
			}
			l = claim(t, q, 1, hour, queue.Limits{})[0]
			if cancel, err := q.Renew(ctx, turn, l.Token, hour); !cancel || err != nil {
				t.Fatal(cancel, err)
			}
			if err := q.Complete(ctx, turn, l.Token); err != nil {
				t.Fatal(err)
			}
			if ok, err := q.Cancel(ctx, turn); ok || err != nil {
				t.Fatal("cancelled a turn that is done", err)
			}
		})
		t.Run("maintenance stands in line with turns and has no limit", func(t *testing.T) {
			q := open(t).Queue()
			turn := add(t, q, 1, 1, 1, 0)
			maintain := func(n, thread int, kind queue.Kind) thole.TurnID {
				it := queue.Item{Kind: kind, Turn: thole.TurnID(uuid(n)), Thread: thole.ThreadID(uuid(thread)), User: thole.UserID(uuid(1))}
				if err := q.Enqueue(ctx, it); err != nil {
					t.Fatal(err)
				}
				return it.Turn
			}
			stop := maintain(2, 1, queue.Stop)
			maintain(3, 1, queue.Stop) // the thread waits for one already
			urgent := queue.Item{Kind: queue.Stop, Turn: thole.TurnID(uuid(6)), Thread: thole.ThreadID(uuid(1)), User: thole.UserID(uuid(1)), Priority: 1}
			if err := q.Enqueue(ctx, urgent); err != nil {
				t.Fatal(err)
			}
			if row, err := q.Get(ctx, stop); err != nil || row.Priority != 1 {
				t.Fatalf("the maintenance that waits has priority %d, %v", row.Priority, err)
			}
			if _, err := q.Get(ctx, urgent.Turn); thole.CodeOf(err) != thole.CodeNotFound {
				t.Fatalf("a second one of its kind: %v", err)
			}
			other := maintain(4, 2, queue.Sync)
			next := add(t, q, 5, 1, 1, 9)
			claimMaintenance := func() []queue.Lease {
				got, err := q.Claim(ctx, queue.Claim{Owner: "test", Token: thole.NewID[string](time.Now()), Max: 9, Lease: hour, Maintenance: true, Limits: queue.Limits{Total: 1}})
				if err != nil {
					t.Fatal(err)
				}
				return got
			}
			if got := claimMaintenance(); !slices.Equal(turns(got), []thole.TurnID{other}) || got[0].Kind != queue.Sync {
				t.Fatalf("maintenance: %+v", got)
			}
			l := claim(t, q, 9, hour, queue.Limits{Total: 1})
			if !slices.Equal(turns(l), []thole.TurnID{turn}) {
				t.Fatalf("turns: %+v", l)
			}
			if err := q.Complete(ctx, turn, l[0].Token); err != nil {
				t.Fatal(err)
			}
			got := claimMaintenance()
			if !slices.Equal(turns(got), []thole.TurnID{stop}) || len(claim(t, q, 9, hour, queue.Limits{})) != 0 {
				t.Fatalf("maintenance after the turn: %+v", got)
			}
			if err := q.Complete(ctx, stop, got[0].Token); err != nil {
				t.Fatal(err)
			}
			if l := claim(t, q, 9, hour, queue.Limits{}); !slices.Equal(turns(l), []thole.TurnID{next}) {
				t.Fatalf("turn after the maintenance: %+v", l)
			}
		})
		t.Run("claims wake up", func(t *testing.T) {
			q := open(t).Queue()
			woken := make(chan struct{}, 16)
			defer q.Subscribe(func() {
				select {
				case woken <- struct{}{}:
				default:
				}
			})()
			for len(woken) > 0 {
				<-woken
			}
			add(t, q, 1, 1, 1, 0)
			select {
			case <-woken:
			case <-time.After(10 * time.Second):
				t.Fatal("nobody was woken")
			}
		})
	})
}

// TestTheClockIsSetBack: what does not wait for a time is ready at any.
func TestTheClockIsSetBack(t *testing.T) {
	ctx, now := context.Background(), time.Now()
	q := storetest.SQLite(t, storetest.Clock(func() time.Time { return now })).Queue()
	back := func() { now = now.Add(-24 * time.Hour) }
	turn := add(t, q, 1, 1, 1, 0)
	next := func(when string) string {
		t.Helper()
		back()
		got := claim(t, q, 1, time.Minute, queue.Limits{})
		if len(got) != 1 {
			t.Fatalf("not claimed after %s", when)
		}
		return got[0].Token
	}
	token := next("it came")
	if err := q.PutBack(ctx, turn, token, 0, "the dispatcher stopped"); err != nil {
		t.Fatal(err)
	}
	token = next("release")
	if err := q.Park(ctx, turn, token); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Unpark(ctx, turn); err != nil {
		t.Fatal(err)
	}
	next("unpark")
	if _, err := q.Reap(ctx, true, 9); err != nil {
		t.Fatal(err)
	}
	next("reap")
}

func second[T any](_ T, err error) error { return err }

// Many workers, none of whom may get what another has.
func TestQueueHandsEachTurnToOneWorker(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		q := open(t).Queue()
		const n, workers = 120, 6
		for i := range n {
			add(t, q, i, i%17, 1, 0)
		}
		var mu sync.Mutex
		done := map[thole.TurnID]int{}
		active := map[thole.ThreadID]int{}
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for {
					leases := claim(t, q, 3, time.Hour, queue.Limits{Total: 10})
					mu.Lock()
					for _, l := range leases {
						if active[l.Thread]++; active[l.Thread] > 1 {
							t.Errorf("two turns of %s at once", l.Thread)
						}
					}
					left := n - len(done)
					mu.Unlock()
					if left == 0 {
						return
					}
					for _, l := range leases {
						mu.Lock()
						done[l.Turn]++
						active[l.Thread]--
						mu.Unlock()
						if err := q.Complete(context.Background(), l.Turn, l.Token); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		wg.Wait()
		for turn, times := range done {
			if times != 1 {
				t.Errorf("%s ran %d times", turn, times)
			}
		}
	})
}
