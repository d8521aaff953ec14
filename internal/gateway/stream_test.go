package gateway

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/upstream"
)

// start sends a request and returns its answer's head.
func (r *rig) start(t *testing.T, ctx context.Context) (*http.Response, error) {
	t.Helper()
	d := r.route.Dialect
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://gw"+paths[d], strings.NewReader(bodies[d]))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+goodToken)
	return r.client(t).Do(q)
}

// TestEventsPassAtOnce: each event is with the client before the next one is sent.
func TestEventsPassAtOnce(t *testing.T) {
	for _, d := range dialects {
		s := upstream.Start(t, upstream.Drip)
		r := newRig(t, d, s)
		resp, err := r.start(t, t.Context())
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(resp.Body)
		for range 3 {
			s.Next()
			for {
				line, err := lines.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				if line == "\n" {
					break
				}
			}
		}
		_ = resp.Body.Close()
		s.Await(1, 0)
		// All but the last event of one dialect came: its usage is known nevertheless.
		if res := r.ledger.results(t); len(res) != 1 || !res[0].Known {
			t.Errorf("%s: %+v", d, res)
		}
	}
}

// TestClientLeaves: the upstream hears of it, the call is settled, and no goroutine stays
// (TestMain looks).
func TestClientLeaves(t *testing.T) {
	for _, d := range dialects {
		for _, fault := range []upstream.Fault{upstream.Hang, upstream.HangInside, upstream.Drip} {
			s := upstream.Start(t, fault)
			r := newRig(t, d, s)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				if resp, err := r.start(t, ctx); err == nil {
					<-ctx.Done()
					_ = resp.Body.Close()
				}
			}()
			s.Await(1, 1)
			cancel()
			<-done
			s.Await(1, 0)
			res := r.ledger.results(t)
			if len(res) != 1 || res[0].Known || res[0].Error == "" || res[0].Usage.Input+res[0].Usage.CacheRead == 0 {
				t.Errorf("%s %s: %+v", d, fault, res)
			}
		}
	}
}

// TestPanicSettles: a call is settled once whatever happens in a part of it.
func TestPanicSettles(t *testing.T) {
	s := upstream.Start(t, upstream.None)
	r := newRig(t, Chat, s)
	r.route.Upstreams[0].Sign = func(context.Context, http.Header, bool) error { panic(http.ErrAbortHandler) }
	r.route.Upstreams[0].Parallel = 1
	for range 2 {
		if got := r.post(t); got.err == "" {
			t.Errorf("%+v", got)
		}
	}
	if res := r.ledger.results(t); len(res) != 2 || !res[0].Known {
		t.Errorf("%+v", res)
	}
}
