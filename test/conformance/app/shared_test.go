package app

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/tholetest"
	wire "github.com/tholehq/thole/protocol/app"
)

// listener records what one client receives, in order.
type listener struct {
	c    *appclient.Client
	mu   sync.Mutex
	seqs []uint64
	asks int
	done chan struct{}
}

func follow(t *testing.T, rig *tholetest.Kit) *listener {
	t.Helper()
	l := &listener{done: make(chan struct{}, 16)}
	c, err := appclient.Over(context.Background(), rig.Stream(), appclient.Options{
		Name: "shared", Experimental: true, Extended: true,
		OnNotification: func(n appclient.Notification) {
			l.mu.Lock()
			if n.Seq > 0 {
				l.seqs = append(l.seqs, n.Seq)
			}
			l.mu.Unlock()
			if n.Method == "turn/completed" {
				l.done <- struct{}{}
			}
		},
		OnRequest: func(*appclient.Request) {
			l.mu.Lock()
			l.asks++
			l.mu.Unlock()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	l.c = c
	return l
}

func (l *listener) wait(t *testing.T) {
	t.Helper()
	select {
	case <-l.done:
	case <-time.After(30 * time.Second):
		t.Fatal("no end of the turn")
	}
}

// Two processes on one PostgreSQL share a thread: a client of either sees the same
// events in the same order, asks included, and may start turns and answer asks,
// whichever process has the turn.
func TestTwoProcessesShareAThread(t *testing.T) {
	dsn := lab.Postgres(t)
	rigs := make([]*tholetest.Kit, 2)
	for i := range rigs {
		db, err := store.Open(context.Background(), sqldb.Config{DSN: dsn})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		options := []tholetest.Option{tholetest.DB(db)}
		if i > 0 {
			options = append(options, tholetest.Peer(rigs[0]))
		}
		rigs[i] = tholetest.New(t, options...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	one, two := follow(t, rigs[0]), follow(t, rigs[1])
	v, err := one.c.StartThread(ctx, wire.ThreadStartParams{})
	if err != nil {
		t.Fatal(err)
	}
	id := v.Thread.ID
	if _, err := two.c.Attach(ctx, wire.AttachParams{ThreadID: id}); err != nil {
		t.Fatal(err)
	}
	if _, err := one.c.StartTurn(ctx, wire.TurnStartParams{ThreadID: id, Input: appclient.Text("sim: run echo shared ;; say %tool%")}); err != nil {
		t.Fatal(err)
	}
	for {
		asks, err := two.c.Asks(ctx, id, true)
		if err != nil {
			t.Fatal(err)
		}
		if len(asks) == 1 {
			if _, err := two.c.Answer(ctx, id, asks[0].ID, wire.Answer{Decision: "allow"}); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	one.wait(t)
	two.wait(t)
	if _, err := two.c.StartTurn(ctx, wire.TurnStartParams{ThreadID: id, Input: appclient.Text("sim: say from the other side")}); err != nil {
		t.Fatal(err)
	}
	one.wait(t)
	two.wait(t)
	one.mu.Lock()
	two.mu.Lock()
	defer one.mu.Unlock()
	defer two.mu.Unlock()
	n := min(len(one.seqs), len(two.seqs))
	if n < 15 {
		t.Fatalf("only %d and %d events", len(one.seqs), len(two.seqs))
	}
	for i := range n {
		if one.seqs[i] != two.seqs[i] {
			t.Fatalf("event %d is %d on one side and %d on the other\n%v\n%v", i, one.seqs[i], two.seqs[i], one.seqs, two.seqs)
		}
	}
	if one.asks != 1 || two.asks != 1 {
		t.Errorf("the ask was shown %d and %d times", one.asks, two.asks)
	}
}
