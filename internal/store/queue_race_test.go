package store_test

import (
	"context"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store/storetest"
)

// A turn is added in the moment in which the one before it completes: whichever
// commits second makes it the head.
func TestATurnAddedWhileTheOneBeforeCompletes(t *testing.T) {
	ctx := context.Background()
	const thread = thole.ThreadID("01890000-0000-7000-8000-0000000000aa")
	const first, second = thole.TurnID("01890000-0000-7000-8000-0000000000a1"), thole.TurnID("01890000-0000-7000-8000-0000000000a2")
	armed, adding, completed := false, make(chan struct{}), make(chan error, 1)
	hook := func(p sqldb.Point, step string) {
		if p != sqldb.BeforeCommit || step != "queue.enqueue" || !armed {
			return
		}
		armed = false
		close(adding)
		select {
		case err := <-completed: // nobody held it back
			completed <- err
		case <-time.After(300 * time.Millisecond): // it waits for us
		}
	}
	q := storetest.Postgres(t, func(c *sqldb.Config) { c.Hook = hook }).Queue()
	if err := q.Enqueue(ctx, queue.Item{Turn: first, Thread: thread, User: "u"}); err != nil {
		t.Fatal(err)
	}
	claim := func(token string) []queue.Lease {
		leases, err := q.Claim(ctx, queue.Claim{Owner: "o", Token: token, Max: 1, Lease: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		return leases
	}
	if got := claim("one"); len(got) != 1 {
		t.Fatalf("claimed %v", got)
	}
	armed = true
	go func() {
		<-adding
		completed <- q.Complete(ctx, first, "one")
	}()
	if err := q.Enqueue(ctx, queue.Item{Turn: second, Thread: thread, User: "u"}); err != nil {
		t.Fatal(err)
	}
	if err := <-completed; err != nil {
		t.Fatal(err)
	}
	if got := claim("two"); len(got) != 1 || got[0].Turn != second {
		t.Fatalf("claimed %v, the second turn waits for ever", got)
	}
}

// A lease is renewed in the moment in which its turn completes: the completion
// waits for the renewal and holds on to what it left.
func TestATurnCompletesWhileItsLeaseIsRenewed(t *testing.T) {
	ctx := context.Background()
	renewing, completed := make(chan struct{}), make(chan error, 1)
	hook := func(p sqldb.Point, step string) {
		if p != sqldb.BeforeCommit || step != "queue.renew" {
			return
		}
		close(renewing)
		select {
		case err := <-completed: // nobody held it back
			completed <- err
		case <-time.After(300 * time.Millisecond): // it waits for us
		}
	}
	q := storetest.Postgres(t, func(c *sqldb.Config) { c.Hook = hook }).Queue()
	first, second := add(t, q, 1, 1, 1, 0), add(t, q, 2, 1, 1, 0)
	l := claim(t, q, 1, time.Minute, queue.Limits{})[0]
	go func() {
		<-renewing
		completed <- q.Complete(ctx, first, l.Token)
	}()
	if _, err := q.Renew(ctx, first, l.Token, time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := <-completed; err != nil {
		t.Fatal(err)
	}
	if got := claim(t, q, 1, time.Minute, queue.Limits{}); len(got) != 1 || got[0].Turn != second {
		t.Fatalf("claimed %v", got)
	}
}
