package driver_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/channel/channeltest"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/delivery/deliverytest"
	"github.com/tholehq/thole/internal/delivery/driver"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/fault"
)

// world is a store, a host of threads and a driver between them, in virtual time.
type world struct {
	t    *testing.T
	db   *store.DB
	host *channeltest.Host
	m    *delivery.Machine
	d    *driver.Driver
	stop func()
	n    int
	plan *fault.Plan // what fails
}

func newWorld(t *testing.T, host *channeltest.Host) *world {
	return newFaultyWorld(t, host, &fault.Plan{})
}

func newFaultyWorld(t *testing.T, host *channeltest.Host, plan *fault.Plan) *world {
	w := &world{t: t, db: storetest.SQLite(t), host: host, plan: plan}
	w.start()
	return w
}

// start runs a fresh machine and driver over the same store, as a new process.
func (w *world) start() {
	var d *driver.Driver
	store := &deliverytest.Store{Next: w.db.Delivery(), Plan: w.plan}
	w.m = delivery.New(delivery.Config{Store: store, Limits: limits(), Wake: func(c *delivery.Candidate) { d.Wake(c) }})
	w.n++
	d = driver.New(driver.Config{
		Machine: w.m, Channels: map[thole.Target]channel.Channel{thole.TargetThole: &deliverytest.Channel{Next: w.host, Plan: w.plan}}, Holder: "p" + strconv.Itoa(w.n), Sole: true,
	})
	w.d = d
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = d.Run(ctx) }()
	w.stop = func() { cancel(); <-done }
}

// limits are short windows: virtual time is cheap, but every minute of it is a pass.
func limits() delivery.Limits {
	l := delivery.DefaultLimits()
	l.Window, l.ManualWindow, l.Observation = time.Hour, 30*time.Minute, 15*time.Minute
	return l
}

func (w *world) restart() { w.stop(); w.start() }

func (w *world) job(thread string) thole.JobID { return w.jobFor(thread, thole.TargetThole) }

func (w *world) jobFor(thread string, target thole.Target) thole.JobID {
	ctx, now := context.Background(), time.Now()
	id := thole.NewID[thole.JobID](now)
	w.twice(func() error {
		_, _, err := w.m.Submit(ctx, thole.LocalActor, delivery.Submit{
			ID: id, Owner: thole.DefaultOwner, Target: target, Summary: "work",
			Address: delivery.Address{User: thole.LocalUser, Thread: thole.ThreadID(thread)},
		})
		return err
	})
	w.twice(func() error {
		_, err := w.m.Finish(ctx, thole.LocalActor, delivery.Finish{Job: id, State: thole.JobReady, Summary: "done", Request: string(id)})
		return err
	})
	return id
}

// twice asks again after an injected fault, as a command does.
func (w *world) twice(do func() error) {
	w.t.Helper()
	err := do()
	if errors.Is(err, fault.Err) {
		err = do()
	}
	w.ok(err)
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) batches() []delivery.BatchView {
	out, err := w.m.Batches(context.Background(), thole.LocalActor, delivery.BatchFilter{Limit: 1000})
	w.ok(err)
	return out
}

func (w *world) only() delivery.Batch {
	w.t.Helper()
	b := w.batches()
	if len(b) != 1 {
		w.t.Fatalf("%d batches", len(b))
	}
	return b[0].Batch
}

// later lets virtual time pass until every goroutine rests.
func later(d time.Duration) { time.Sleep(d); synctest.Wait() }

func ends(e ...thole.TurnEvent) channeltest.Fate { return channeltest.Fate{Take: true, Events: e} }

func TestDriverFates(t *testing.T) {
	const S, C = thole.TurnEventStarted, thole.TurnEventCompleted
	cases := map[string]struct {
		fate   channeltest.Fate
		reason thole.CloseReason
		held   string
		taken  int
	}{
		"completed":              {ends(S, C), thole.CloseDelivered, "", 1},
		"failed":                 {ends(S, thole.TurnEventFailed), "", "turn_failed", 1},
		"replaced":               {ends(S, thole.TurnEventReplaced), "", "turn_replaced", 1},
		"answer lost, taken":     {channeltest.Fate{Take: true, Lose: true, Events: []thole.TurnEvent{S, C}}, thole.CloseDelivered, "", 1},
		"answer lost, blind":     {channeltest.Fate{Take: true, Lose: true, Blind: true}, "", "acceptance_unknown", 1},
		"stream cut":             {channeltest.Fate{Take: true, Events: []thole.TurnEvent{S}, Cut: true}, "", "observation_lost", 1},
		"never ends":             {channeltest.Fate{Take: true, Events: []thole.TurnEvent{S}, Hang: true}, "", "observation_expired", 1},
		"forbidden":              {channeltest.Fate{Forbid: true}, "", "policy", 0},
		"events of another turn": {channeltest.Fate{Take: true, Foreign: true, Events: []thole.TurnEvent{S, C}}, thole.CloseDelivered, "", 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, channeltest.New(func(thole.BatchID, bool, int) channeltest.Fate { return c.fate }))
				defer func() { w.stop() }()
				w.job("a")
				later(25 * time.Minute)
				b := w.only()
				if b.CloseReason != c.reason || string(b.HeldFor) != c.held {
					t.Errorf("batch: reason %q, held for %q", b.CloseReason, b.HeldFor)
				}
				if got := w.host.Taken(b.ID); got != c.taken {
					t.Errorf("the host took it %d times, want %d", got, c.taken)
				}
				if b.AttemptCount > 1 {
					t.Errorf("%d attempts were counted", b.AttemptCount)
				}
				w.check()
			})
		})
	}
}

// A host that lives and is silent for longer than every deadline is waited for,
// over restarts, and its delivery counts once when it speaks.
func TestDriverWaitsForASilentHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := channeltest.Fate{Take: true, Lose: true, Mute: true, Events: []thole.TurnEvent{thole.TurnEventStarted, thole.TurnEventCompleted}}
		w := newWorld(t, channeltest.New(func(thole.BatchID, bool, int) channeltest.Fate { return silent }))
		defer func() { w.stop() }()
		w.job("a")
		for range 3 {
			later(40 * time.Minute)
			if b := w.only(); b.State == thole.BatchClosed || b.HeldFor != "" || w.host.Sent(b.ID) != 1 {
				t.Fatalf("%+v, sent %d times", b, w.host.Sent(b.ID))
			}
			w.check()
			w.restart()
		}
		w.host.Wake()
		later(time.Minute)
		if b := w.only(); b.CloseReason != thole.CloseDelivered || b.AttemptCount != 1 || w.host.Sent(b.ID) != 1 {
			t.Errorf("%+v, sent %d times", b, w.host.Sent(b.ID))
		}
		w.check()
	})
}

func (w *world) check() {
	w.t.Helper()
	found, err := w.db.CheckDelivery(context.Background())
	w.ok(err)
	for _, v := range found {
		w.t.Errorf("rule broken: %s: %s", v.Rule, v.Row)
	}
	for _, c := range w.host.Complaints() {
		w.t.Error(c)
	}
}

// Rejections and a busy thread cost pauses, not attempts, and end in delivery.
func TestDriverRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, channeltest.New(func(_ thole.BatchID, probe bool, n int) channeltest.Fate {
			switch {
			case probe:
				return channeltest.Fate{Busy: n <= 3}
			case n <= 2:
				return channeltest.Fate{}
			}
			return ends(thole.TurnEventStarted, thole.TurnEventCompleted)
		}))
		defer func() { w.stop() }()
		w.job("a")
		later(time.Hour)
		b := w.only()
		if b.CloseReason != thole.CloseDelivered || b.AttemptCount != 1 || w.host.Sent(b.ID) != 3 {
			t.Errorf("reason %q, counted %d, sent %d", b.CloseReason, b.AttemptCount, w.host.Sent(b.ID))
		}
		w.check()
	})
}

// A driver that dies after sending never sends again: its successor finds the
// proof by the marker, or holds the batch.
func TestDriverRestart(t *testing.T) {
	for _, blind := range []bool{false, true} {
		t.Run(fmt.Sprintf("blind=%v", blind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hang := channeltest.Fate{Take: true, Lose: true, Blind: blind, Events: []thole.TurnEvent{thole.TurnEventStarted}, Hang: true}
				w := newWorld(t, channeltest.New(func(thole.BatchID, bool, int) channeltest.Fate { return hang }))
				defer func() { w.stop() }()
				w.job("a")
				later(10 * time.Second)
				for range 3 {
					w.restart()
					later(10 * time.Second)
				}
				b := w.only()
				if w.host.Sent(b.ID) != 1 {
					t.Errorf("sent %d times", w.host.Sent(b.ID))
				}
				if blind != (b.Replay == thole.ReplayManual) {
					t.Errorf("blind=%v: replay %s, state %s", blind, b.Replay, b.State)
				}
				w.check()
			})
		})
	}
}

// TestSimulation runs many threads against a host that does everything wrong it
// can, with a driver that is restarted at any time. At the end no batch was taken
// twice, every delivered one was taken, and nothing is stuck.
func TestSimulation(t *testing.T) {
	runs := 2
	if os.Getenv("THOLE_SOAK") != "" {
		runs = 300
	}
	for seed := range uint64(runs) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { simulate(t, seed) })
		})
	}
}

func simulate(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	fates := rand.New(rand.NewPCG(seed, 2))
	ending := []thole.TurnEvent{thole.TurnEventCompleted, thole.TurnEventCompleted, thole.TurnEventCompleted, thole.TurnEventFailed, thole.TurnEventInterrupted, thole.TurnEventReplaced}
	w := newWorld(t, channeltest.New(func(_ thole.BatchID, probe bool, _ int) channeltest.Fate {
		if probe {
			return channeltest.Fate{Busy: fates.IntN(3) == 0, Forbid: fates.IntN(20) == 0}
		}
		return channeltest.Fate{
			Take: fates.IntN(4) > 0, Lose: fates.IntN(4) == 0, Blind: fates.IntN(3) == 0, Cut: fates.IntN(6) == 0, Hang: fates.IntN(6) == 0,
			Events: []thole.TurnEvent{thole.TurnEventStarted, ending[fates.IntN(len(ending))]}[:1+fates.IntN(2)],
		}
	}))
	defer func() { w.stop() }()
	jobs := 0
	for range 40 {
		switch rnd.IntN(10) {
		case 0:
			w.restart()
		case 1, 2:
			time.Sleep(time.Duration(rnd.IntN(int(10 * time.Minute))))
		default:
			w.job(string(rune('a' + rnd.IntN(5))))
			jobs++
			time.Sleep(time.Duration(rnd.IntN(int(3 * time.Second))))
		}
	}
	later(20 * time.Hour) // every window is over, several times
	total := int64(0)
	for _, v := range w.batches() {
		b := v.Batch
		total += b.Jobs
		taken := w.host.Taken(b.ID)
		if taken > 1 {
			t.Errorf("batch %s was taken %d times", b.ID, taken)
		}
		if b.CloseReason == thole.CloseDelivered && taken != 1 {
			t.Errorf("batch %s is delivered and was taken %d times", b.ID, taken)
		}
		if b.State != thole.BatchClosed {
			t.Errorf("batch %s is stuck in %s (%s)", b.ID, b.State, b.Replay)
		}
	}
	if int(total) != jobs {
		t.Errorf("%d jobs were submitted, %d are in batches", jobs, total)
	}
	w.check()
}
