package ownthread_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/channel/ownthread"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/delivery/deliverytest"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/tholetest"
	"github.com/tholehq/thole/internal/thread"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	bg = context.Background()
	me = thole.LocalActor
)

// world is one home: threads run by the scripted agent, and deliveries to them.
type world struct {
	*tholetest.Kit
	t    *testing.T
	db   *store.DB
	run  *deliverytest.Run
	wrap func(ownthread.Threads) ownthread.Threads

	mu    sync.Mutex
	steps []string // committed
}

func newWorld(t *testing.T) *world {
	w := &world{t: t}
	w.db = storetest.SQLite(t, func(c *sqldb.Config) {
		c.Hook = func(p sqldb.Point, step string) {
			if p == sqldb.AfterCommit {
				w.mu.Lock()
				w.steps = append(w.steps, step)
				w.mu.Unlock()
			}
		}
	})
	w.Kit = tholetest.New(t, tholetest.DB(w.db))
	return w
}

// deliver runs a driver over the channel, as a new process would.
func (w *world) deliver() {
	var threads ownthread.Threads = w.Threads
	if w.wrap != nil {
		threads = w.wrap(threads)
	}
	w.run = deliverytest.Start(w.t, w.db.Delivery(), deliverytest.Limits(), map[thole.Target]channel.Channel{
		thole.TargetThole: &ownthread.Channel{Threads: threads, Home: w.Home},
	})
}

func (w *world) thread() thole.ThreadID {
	w.t.Helper()
	th, err := w.Threads.Create(bg, me, thread.Create{Owner: thole.DefaultOwner, Settings: event.Settings{Provider: "test"}})
	if err != nil {
		w.t.Fatal(err)
	}
	return th.ID
}

// job submits and completes work for a thread; its result is a script for the agent.
func (w *world) job(id thole.ThreadID, result string) {
	w.t.Helper()
	w.mu.Lock()
	w.steps = nil
	w.mu.Unlock()
	w.run.Job(thole.NewID[thole.JobID](time.Now()), thole.TargetThole, delivery.Address{User: thole.LocalUser, Thread: id}, result)
}

// until waits for a batch that satisfies ok.
func (w *world) until(ok func(delivery.Batch) bool) delivery.Batch {
	w.t.Helper()
	return w.run.Until(func(v delivery.BatchView) bool { return ok(v.Batch) }).Batch
}

func settled(b delivery.Batch) bool { return deliverytest.Settled(delivery.BatchView{Batch: b}) }

// carrying counts the turns that hold a delivery.
func (w *world) carrying(id thole.ThreadID) (n int) {
	w.t.Helper()
	page, err := w.Threads.Turns(bg, me, id, thread.PageParams{Limit: 100})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, t := range page.Items {
		if strings.HasPrefix(t.ClientID, "thole-") {
			n++
		}
	}
	return n
}

func TestResultBecomesOneTurn(t *testing.T) {
	w := newWorld(t)
	w.deliver()
	id := w.thread()
	w.job(id, "sim: say thanks for the result")
	if b := w.until(settled); b.CloseReason != thole.CloseDelivered || b.AttemptCount != 1 {
		t.Fatalf("%+v", b)
	}
	if n := w.carrying(id); n != 1 {
		t.Fatalf("%d turns carry the delivery", n)
	}
	// From the completed job to the committed turn, and that it was accepted.
	w.mu.Lock()
	defer w.mu.Unlock()
	from, to := slices.Index(w.steps, "delivery.finish_job"), slices.Index(w.steps, "thread.start_turn")
	if from < 0 || to < from || to-from+1 > 5 {
		t.Errorf("steps %d to %d of %v", from, to, w.steps)
	}
}

func TestBusyThreadIsNeverSteered(t *testing.T) {
	w := newWorld(t)
	w.deliver()
	id := w.thread()
	first, err := w.Threads.StartTurn(bg, me, thread.StartTurn{Thread: id, Input: thole.Text("sim: ask Go on? | yes | no")})
	if err != nil {
		t.Fatal(err)
	}
	w.job(id, "sim: say after")
	w.until(func(delivery.Batch) bool { // deferred at least twice
		w.mu.Lock()
		defer w.mu.Unlock()
		return strings.Count(strings.Join(w.steps, " "), "delivery.defer") >= 2
	})
	if n := w.carrying(id); n != 0 {
		t.Fatal("a busy thread got a delivery")
	}
	if err := w.Threads.Interrupt(bg, me, id, first.ID); err != nil {
		t.Fatal(err)
	}
	if b := w.until(settled); b.CloseReason != thole.CloseDelivered || w.carrying(id) != 1 {
		t.Fatalf("%+v, %d turns", b, w.carrying(id))
	}
}

func TestNegativeEndsAreHeld(t *testing.T) {
	for script, why := range map[string]string{
		"sim: fail bad_request no":    string(thole.TurnEventFailed),
		"sim: ask Go on? | yes | no ": string(thole.TurnEventInterrupted),
	} {
		t.Run(why, func(t *testing.T) {
			w := newWorld(t)
			w.deliver()
			id := w.thread()
			w.job(id, script)
			b := w.until(func(b delivery.Batch) bool { return settled(b) || b.AttemptCount == 1 })
			if why == string(thole.TurnEventInterrupted) {
				th, err := w.Threads.Get(bg, me, id)
				if err != nil || th.Open == "" {
					t.Fatal(th, err)
				}
				if err := w.Threads.Interrupt(bg, me, id, th.Open); err != nil {
					t.Fatal(err)
				}
			}
			if b = w.until(settled); string(b.HeldFor) != why || b.Replay != thole.ReplayManual {
				t.Fatalf("held for %q, %s, closed %q", b.HeldFor, b.Replay, b.CloseReason)
			}
		})
	}
}

// lossy loses the first answer, after or before the turn was made.
type lossy struct {
	ownthread.Threads
	made bool
	once sync.Once
}

func (l *lossy) StartTurn(ctx context.Context, a thole.Actor, p thread.StartTurn) (turn fold.Turn, err error) {
	lost := false
	l.once.Do(func() {
		lost = true
		if l.made {
			_, err = l.Threads.StartTurn(ctx, a, p)
		}
	})
	if err != nil {
		return turn, err
	}
	if lost {
		return turn, errors.New("the answer was lost")
	}
	return l.Threads.StartTurn(ctx, a, p)
}

func TestLostAnswerIsProven(t *testing.T) {
	for name, made := range map[string]bool{"made": true, "not made": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.wrap = func(th ownthread.Threads) ownthread.Threads { return &lossy{Threads: th, made: made} }
			w.deliver()
			id := w.thread()
			w.job(id, "sim: say once")
			if b := w.until(settled); b.CloseReason != thole.CloseDelivered || b.AttemptCount != 1 {
				t.Fatalf("%+v", b)
			}
			if n := w.carrying(id); n != 1 {
				t.Fatalf("%d turns carry the delivery", n)
			}
		})
	}
}

// The deliverer goes away while the turn runs; its successor sees the end.
func TestSuccessorFollows(t *testing.T) {
	w := newWorld(t)
	w.deliver()
	id := w.thread()
	w.job(id, "sim: ask Go on? | yes | no ;; say went on")
	w.until(func(b delivery.Batch) bool { return b.AttemptCount == 1 })
	w.run.Halt()
	asks, err := w.Threads.Asks(bg, me, id, true)
	for err == nil && len(asks) == 0 {
		asks, err = w.Threads.Asks(bg, me, id, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	q := asks[0].Ask.Questions[0]
	if _, err := w.Threads.Answer(bg, me, id, asks[0].Ask.ID, event.Answer{Answers: map[string][]string{q.ID: {"yes"}}}); err != nil {
		t.Fatal(err)
	}
	w.deliver()
	if b := w.until(settled); b.CloseReason != thole.CloseDelivered || w.carrying(id) != 1 {
		t.Fatalf("%+v", b)
	}
}

func TestProbe(t *testing.T) {
	w := newWorld(t)
	id := w.thread()
	ch := &ownthread.Channel{Threads: w.Threads, Home: w.Home}
	archived := w.thread()
	yes := true
	if _, err := w.Threads.Update(bg, me, archived, thread.Update{Archived: &yes}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		q    channel.Query
		want channel.Verdict
	}{
		"idle, worst policy": {channel.Query{User: thole.LocalUser, Thread: id, Policy: thole.UnknownDeliveryPolicy}, channel.Now},
		"named home":         {channel.Query{User: thole.LocalUser, Endpoint: w.Home, Thread: id}, channel.Now},
		"another home":       {channel.Query{User: thole.LocalUser, Endpoint: "/elsewhere", Thread: id}, channel.Never},
		"no such thread":     {channel.Query{User: thole.LocalUser, Thread: thole.NewID[thole.ThreadID](time.Now())}, channel.Never},
		"someone else":       {channel.Query{User: "someone", Thread: id}, channel.Never},
		"archived":           {channel.Query{User: thole.LocalUser, Thread: archived}, channel.NotNow},
	} {
		if r, err := ch.Probe(bg, c.q); err != nil || r.Verdict != c.want {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}
