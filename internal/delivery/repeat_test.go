package delivery_test

import (
	"context"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/delivery"
)

func TestIdempotentRequests(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		ctx := context.Background()
		p := delivery.Submit{ID: thole.JobID(r.id()), Owner: thole.DefaultOwner, Address: address("a"), Target: thole.TargetCLI, DedupeKey: "k"}
		first, fresh, err := r.Submit(ctx, actor, p)
		if err != nil || !fresh {
			t.Fatal(err, fresh)
		}
		if again, fresh, err := r.Submit(ctx, actor, p); err != nil || fresh || again.ID != first.ID {
			t.Fatal("the same request made a second job", err)
		}
		p.ID = thole.JobID(r.id())
		if again, fresh, err := r.Submit(ctx, actor, p); err != nil || fresh || again.ID != first.ID {
			t.Fatal("the dedupe key made a second job", err)
		}
		p.Address.Endpoint = "elsewhere"
		if _, fresh, err := r.Submit(ctx, actor, p); err != nil || !fresh {
			t.Fatal("another endpoint is another thread", err)
		}
		f := delivery.Finish{Job: first.ID, State: thole.JobReady, Request: "r1"}
		for range 2 {
			if _, err := r.Finish(ctx, actor, f); err != nil {
				t.Fatal(err)
			}
		}
		f.Request = "r2"
		if _, err := r.Finish(ctx, actor, f); thole.CodeOf(err) != thole.CodeConflict {
			t.Fatalf("second completion: %v", err)
		}
		if _, err := r.Finish(ctx, thole.Actor{User: "someone", Via: "socket"}, f); thole.CodeOf(err) != thole.CodeNotFound {
			t.Fatalf("someone else's job: %v", err)
		}
		if _, _, err := r.Submit(ctx, actor, delivery.Submit{ID: thole.JobID(r.id()), Owner: thole.DefaultOwner, Address: address("a"), Target: thole.TargetCLI, Summary: "a\x00b"}); thole.CodeOf(err) != thole.CodeInvalid {
			t.Fatalf("a zero byte in a text: %v", err)
		}
		if _, err := r.Finish(ctx, thole.Actor{}, f); thole.CodeOf(err) != thole.CodeUnauthorized {
			t.Fatalf("nobody: %v", err)
		}
	})
}

func TestStaleFencesChangeNothing(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		ctx := context.Background()
		r.ready("a", thole.TargetCLI)
		p := r.begin("a")
		good := p.Attempt.Fence()
		before := r.head("a")
		for name, edit := range map[string]func(*delivery.Fence){
			"lane":       func(f *delivery.Fence) { f.LaneID = address("b").LaneID() },
			"batch":      func(f *delivery.Fence) { f.Batch = "x" },
			"attempt":    func(f *delivery.Fence) { f.Attempt = "x" },
			"generation": func(f *delivery.Fence) { f.Generation++ },
			"revision":   func(f *delivery.Fence) { f.Revision++ },
			"request":    func(f *delivery.Fence) { f.Request = "x" },
		} {
			f := good
			edit(&f)
			if stale, err := r.Accept(ctx, actor, f, delivery.Acceptance{Turn: "t"}); !stale || err != nil {
				t.Errorf("%s: stale=%v err=%v", name, stale, err)
			}
		}
		after := r.head("a")
		if after.Batch != before.Batch || after.Attempts[0] != before.Attempts[0] || len(after.Ledger) != len(before.Ledger) {
			t.Error("a stale fence changed a row")
		}
	})
}
