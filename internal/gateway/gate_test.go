package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/internal/testkit/upstream"
)

func gated(parallel int) Upstream {
	return Upstream{Name: "u", Base: &url.URL{Host: "h"}, Parallel: parallel}
}

// queue makes calls wait one after another and reports those that were let in.
type queue struct {
	t  *testing.T
	g  gates
	u  Upstream
	in chan string
}

func (q *queue) wait(ctx context.Context, thread, name string, passes chan<- *pass) {
	go func() {
		p, err := q.g.enter(ctx, q.u, thole.ThreadID(thread), time.Now())
		if err == nil {
			q.in <- name
			passes <- p
		}
	}()
	synctest.Wait()
}

// TestThreadsTakeTurns: one thread's many calls delay another's by one.
func TestThreadsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue{t: t, u: gated(1), in: make(chan string, 20)}
		passes := make(chan *pass, 20)
		q.wait(t.Context(), "a", "a0", passes)
		for i := 1; i <= 3; i++ {
			q.wait(t.Context(), "a", fmt.Sprint("a", i), passes)
		}
		q.wait(t.Context(), "b", "b1", passes)
		q.wait(t.Context(), "b", "b2", passes)
		q.wait(t.Context(), "c", "c1", passes)
		var order []string
		for range 7 {
			order = append(order, <-q.in)
			if len(q.in) != 0 {
				t.Fatal("two at once")
			}
			p := <-passes
			p.leave()
			p.leave()
			synctest.Wait()
		}
		if want := []string{"a0", "a1", "b1", "c1", "a2", "b2", "a3"}; !slices.Equal(order, want) {
			t.Errorf("%v", order)
		}
		if len(q.g.all) != 0 {
			t.Error("the gate is still remembered")
		}
	})
}

// TestCancelLeavesTheQueue, in the middle of it and in the moment of being let in.
func TestCancelLeavesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue{t: t, u: gated(1), in: make(chan string, 20)}
		passes := make(chan *pass, 20)
		q.wait(t.Context(), "a", "a0", passes)
		ctx, cancel := context.WithCancel(t.Context())
		q.wait(ctx, "b", "b1", passes)
		q.wait(t.Context(), "c", "c1", passes)
		cancel()
		synctest.Wait()
		(<-passes).leave()
		synctest.Wait()
		if got := []string{<-q.in, <-q.in}; !slices.Equal(got, []string{"a0", "c1"}) {
			t.Errorf("%v", got)
		}
		gone, end := context.WithCancel(t.Context())
		q.wait(gone, "d", "d1", passes)
		end()
		(<-passes).leave() // d1 is let in and leaves, in either order
		synctest.Wait()
		if len(q.in) == 1 {
			(<-passes).leave()
		}
		if len(q.g.all) != 0 {
			t.Error("a place was lost")
		}
	})
}

func TestFullQueueRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue{t: t, u: gated(1), in: make(chan string, 2000)}
		passes := make(chan *pass, 2000)
		ctx, cancel := context.WithCancel(t.Context())
		for i := range maxThreadWaiting + 1 {
			q.wait(ctx, "a", fmt.Sprint(i), passes)
		}
		if _, err := q.g.enter(ctx, q.u, "a", time.Now()); !errors.Is(err, errFull) {
			t.Errorf("%v", err)
		}
		for i := range maxWaiting - maxThreadWaiting {
			q.wait(ctx, fmt.Sprint("t", i), fmt.Sprint(i), passes)
		}
		if _, err := q.g.enter(ctx, q.u, "b", time.Now()); !errors.Is(err, errFull) {
			t.Errorf("%v", err)
		}
		cancel()
		synctest.Wait()
		(<-passes).leave()
		if len(q.g.all) != 0 {
			t.Error("tickets were left")
		}
	})
}

// TestPause: after a 429 all wait, then one tries, then all go.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue{t: t, u: gated(0), in: make(chan string, 20)}
		passes := make(chan *pass, 20)
		q.wait(t.Context(), "a", "first", passes)
		q.wait(t.Context(), "s", "stream", passes)
		first, stream := <-passes, <-passes
		<-q.in
		<-q.in
		first.answered(10*time.Second, time.Now())
		first.leave()
		stream.answered(0, time.Now()) // it began before the pause and says nothing about its end
		began := time.Now()
		for _, name := range []string{"b", "c", "d"} {
			q.wait(t.Context(), name, name, passes)
		}
		for range 2 { // the first trial is refused again, the second not
			if got := <-q.in; got == "" || len(q.in) != 0 {
				t.Errorf("%s, and %d more", got, len(q.in))
			}
			trial := <-passes
			if time.Since(began) == 10*time.Second {
				trial.answered(20*time.Second, time.Now())
				trial.leave()
			} else {
				trial.answered(0, time.Now())
				defer trial.leave()
			}
			synctest.Wait()
		}
		if got := <-q.in; got == "" || time.Since(began) != 30*time.Second {
			t.Errorf("%s after %s", got, time.Since(began))
		}
		(<-passes).leave()
		stream.leave()
	})
}

// TestTrialThatDies lets the next one try.
func TestTrialThatDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue{t: t, u: gated(0), in: make(chan string, 20)}
		passes := make(chan *pass, 20)
		q.wait(t.Context(), "a", "a", passes)
		p := <-passes
		p.answered(time.Hour, time.Now()) // bounded
		p.leave()
		<-q.in
		q.wait(t.Context(), "b", "b", passes)
		q.wait(t.Context(), "c", "c", passes)
		began := time.Now()
		for _, want := range []string{"b", "c"} {
			if got := <-q.in; got != want || len(q.in) != 0 || time.Since(began) != maxPause {
				t.Errorf("%s after %s", got, time.Since(began))
			}
			(<-passes).leave()
		}
		synctest.Wait()
		if len(q.g.all) != 0 {
			t.Error("the gate is still remembered")
		}
	})
}

// TestOneAtATime: through the whole gateway, a second call waits for the end of the first
// answer, and the wait is recorded.
func TestOneAtATime(t *testing.T) {
	s := upstream.Start(t, upstream.Drip)
	r := newRig(t, Responses, s)
	r.route.Upstreams[0].Parallel = 1
	done := make(chan answer, 2)
	for range 2 {
		go func() { done <- r.post(t) }()
	}
	poll.Until(t, "the second call in the queue", func() bool {
		r.gates.mu.Lock()
		defer r.gates.mu.Unlock()
		gt := r.gates.all[r.route.Upstreams[0].key()]
		return gt != nil && gt.running == 1 && gt.count == 1
	})
	for i := range 2 {
		s.Await(i+1, 1)
		for range 3 {
			s.Next()
		}
		if got := <-done; got.status != 200 || got.err != "" {
			t.Errorf("%+v", got)
		}
	}
	if res := r.ledger.results(t); len(res) != 2 || res[1].Waited <= res[0].Waited {
		t.Errorf("%+v", res)
	}
}

// TestPausedUpstreamIsTriedLast: a 429 of one upstream sends the next call to another.
func TestPausedUpstreamIsTriedLast(t *testing.T) {
	busy, free := upstream.Start(t, upstream.Status429), upstream.Start(t, upstream.None)
	r := newRig(t, Chat, busy, free)
	for range 2 {
		if got := r.post(t); got.status != 200 {
			t.Errorf("%+v", got)
		}
	}
	if len(busy.Requests()) != 1 || len(free.Requests()) != 2 {
		t.Errorf("%d and %d requests", len(busy.Requests()), len(free.Requests()))
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 16, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "7", 7 * time.Second}, {"Retry-After", "0.5", 500 * time.Millisecond}, {"Retry-After", "Mon, 16 Nov 2026 10:00:09 GMT", 9 * time.Second},
		{"Retry-After-Ms", "20", 20 * time.Millisecond}, {"Retry-After", "-1", 0}, {"Retry-After", "1e300", 0}, {"Retry-After", "NaN", 0}, {"Retry-After", "Mon, 16 Nov 2020 10:00:09 GMT", 0}, {"X", "7", 0},
	} {
		if got := retryAfter(map[string][]string{c.name: {c.value}}, now); got != c.want {
			t.Errorf("%s: %s is %s", c.name, c.value, got)
		}
	}
}
