package store_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/store/storetest"
	"pgregory.net/rapid"
)

// The queue against a plain model: same choices, same refusals, whatever happens
// in whatever order.
func TestQueueModel(t *testing.T) {
	type row struct {
		thread, state, token string
		cancel, waiting      bool
		live                 bool // the lease is not over
	}
	rapid.Check(t, func(rt *rapid.T) {
		q := storetest.SQLite(t).Queue()
		ctx := context.Background()
		model := map[thole.TurnID]*row{}
		var order []thole.TurnID
		head := func(thread string) thole.TurnID {
			for _, id := range order {
				if r := model[id]; r.thread == thread && r.state != "done" {
					return id
				}
			}
			return ""
		}
		pick := func(rt *rapid.T) thole.TurnID {
			if len(order) == 0 {
				rt.Skip("no turn")
			}
			return rapid.SampledFrom(order).Draw(rt, "turn")
		}
		lease := func(rt *rapid.T, do func(turn thole.TurnID, token string) error, then func(*row)) {
			id := pick(rt)
			r := model[id]
			token := r.token
			if rapid.IntRange(0, 4).Draw(rt, "wrong token") == 0 || token == "" {
				token = "stale"
			}
			err := do(id, token)
			if token == r.token && r.state == "leased" && r.live {
				if err != nil {
					rt.Fatalf("refused a live lease: %v", err)
				}
				then(r)
			} else if !errors.Is(err, queue.ErrLeaseLost) {
				rt.Fatalf("accepted a dead lease: %v", err)
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"enqueue": func(rt *rapid.T) {
				thread := rapid.IntRange(1, 3).Draw(rt, "thread")
				id := add(t, q, len(order)+1, thread, 1, 0)
				order = append(order, id)
				model[id] = &row{thread: uuid(thread), state: "ready"}
			},
			"claim": func(rt *rapid.T) {
				length := rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(rt, "lease")
				want := rapid.IntRange(1, 3).Draw(rt, "want")
				var expect []thole.TurnID
				for _, id := range order {
					if r := model[id]; r.state == "ready" && head(r.thread) == id && len(expect) < want {
						expect = append(expect, id)
					}
				}
				got := claim(t, q, want, length, queue.Limits{})
				if !slices.Equal(turns(got), expect) {
					rt.Fatalf("claimed %v, want %v", turns(got), expect)
				}
				for _, l := range got {
					r := model[l.Turn]
					if l.Cancel != r.cancel {
						rt.Fatalf("cancel = %v", l.Cancel)
					}
					r.state, r.token, r.live = "leased", l.Token, length > 0
				}
			},
			"renew": func(rt *rapid.T) {
				lease(rt, func(id thole.TurnID, tok string) error {
					cancel, err := q.Renew(ctx, id, tok, time.Hour)
					if err == nil && cancel != model[id].cancel {
						rt.Fatalf("renew said cancel = %v", cancel)
					}
					return err
				}, func(*row) {})
			},
			"wait": func(rt *rapid.T) {
				w := rapid.Bool().Draw(rt, "waiting")
				lease(rt, func(id thole.TurnID, tok string) error { return q.Wait(ctx, id, tok, w) }, func(r *row) { r.waiting = w })
			},
			"park": func(rt *rapid.T) {
				lease(rt, func(id thole.TurnID, tok string) error { return q.Park(ctx, id, tok) }, func(r *row) { r.state, r.token, r.waiting = "parked", "", false })
			},
			"release": func(rt *rapid.T) {
				lease(rt, func(id thole.TurnID, tok string) error { return q.Release(ctx, id, tok, 0, "x") }, func(r *row) { r.state, r.token, r.waiting = "ready", "", false })
			},
			"complete": func(rt *rapid.T) {
				lease(rt, func(id thole.TurnID, tok string) error { return q.Complete(ctx, id, tok) }, func(r *row) { r.state, r.token, r.waiting = "done", "", false })
			},
			"unpark": func(rt *rapid.T) {
				id := pick(rt)
				ok, err := q.Unpark(ctx, id)
				if err != nil || ok != (model[id].state == "parked") {
					rt.Fatal(ok, err)
				}
				if ok {
					model[id].state = "ready"
				}
			},
			"cancel": func(rt *rapid.T) {
				id := pick(rt)
				r := model[id]
				ok, err := q.Cancel(ctx, id)
				if err != nil || ok != (r.state != "done") {
					rt.Fatal(ok, err)
				}
				r.cancel = r.cancel || ok
				if r.state == "parked" {
					r.state = "ready"
				}
			},
			"reap": func(rt *rapid.T) {
				if _, err := q.Reap(ctx, false, 100); err != nil {
					rt.Fatal(err)
				}
				for _, r := range model {
					if r.state == "leased" && !r.live {
						r.state, r.token, r.waiting = "ready", "", false
					}
				}
			},
			"": func(rt *rapid.T) {
				for id, r := range model {
					got, err := q.Get(ctx, id)
					if err != nil {
						rt.Fatal(err)
					}
					if string(got.State) != r.state || got.Cancel != r.cancel || got.Waiting != r.waiting || (got.State != queue.Done && got.Head != (head(r.thread) == id)) {
						rt.Fatalf("row %+v, model %+v", got, *r)
					}
				}
			},
		})
	})
}
