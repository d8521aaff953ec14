package driver_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/channel/channeltest"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/delivery/driver"
	"github.com/tholehq/thole/internal/store/storetest"
)

// steps notes every durable step.
type steps struct {
	delivery.Store
	mu   sync.Mutex
	done []string
	look func() // called once, before the next reading
}

func (s *steps) View(ctx context.Context, fn func(delivery.Tx) error) error {
	s.mu.Lock()
	look := s.look
	s.look = nil
	s.mu.Unlock()
	if look != nil {
		look()
	}
	return s.Store.View(ctx, fn)
}

func (s *steps) Update(ctx context.Context, step string, fn func(delivery.Tx) error) error {
	err := s.Store.Update(ctx, step, fn)
	s.note(step)
	return err
}

func (s *steps) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = append(s.done, what)
}

// slow is a host that takes its time to say that it is ready, and notes in s what
// was asked of it.
type slow struct {
	*channeltest.Host
	s     *steps
	pause time.Duration
}

func (c slow) Probe(ctx context.Context, q channel.Query) (channel.Readiness, error) {
	c.s.note("probe " + string(q.Thread))
	time.Sleep(c.pause)
	return c.Host.Probe(ctx, q)
}

func (c slow) Propose(ctx context.Context, p channel.Proposal) (channel.Answer, error) {
	c.s.note("propose " + string(p.Thread))
	return c.Host.Propose(ctx, p)
}

// offered runs f together with a driver whose batches wait for nothing.
func offered(t *testing.T, parallel int, pause time.Duration, f func(m *delivery.Machine, s *steps)) {
	synctest.Test(t, func(t *testing.T) {
		s := &steps{Store: storetest.SQLite(t).Delivery()}
		l := limits()
		l.WaitWindow = 0
		var d *driver.Driver
		m := delivery.New(delivery.Config{Store: s, Limits: l, Wake: func(c *delivery.Candidate) { d.Wake(c) }})
		host := slow{channeltest.New(func(thole.BatchID, bool, int) channeltest.Fate { return ends(thole.TurnEventCompleted) }), s, pause}
		d = driver.New(driver.Config{Machine: m, Channels: map[thole.Target]channel.Channel{thole.TargetThole: host}, Holder: "p", Sole: true, Parallel: parallel})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); _ = d.Run(ctx) }()
		synctest.Wait()
		f(m, s)
		cancel()
		<-done
	})
}

func submit(t *testing.T, m *delivery.Machine, thread string) (finish func()) {
	t.Helper()
	id := thole.NewID[thole.JobID](time.Now())
	_, _, err := m.Submit(context.Background(), thole.LocalActor, delivery.Submit{
		ID: id, Owner: thole.DefaultOwner, Target: thole.TargetThole, Summary: "work", Address: delivery.Address{User: thole.LocalUser, Thread: thole.ThreadID(thread)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if _, err := m.Finish(context.Background(), thole.LocalActor, delivery.Finish{Job: id, State: thole.JobReady, Request: "r", Inline: "done"}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTwoDurableStepsToTheChannel(t *testing.T) {
	offered(t, 8, 0, func(m *delivery.Machine, s *steps) {
		finish := submit(t, m, "a")
		synctest.Wait()
		from := len(s.done)
		finish()
		synctest.Wait()
		want := []string{"probe a", "delivery.begin_accept", "propose a"}
		got := slices.DeleteFunc(s.done[from:], func(x string) bool { return x == "delivery.finish_job" }) // noted when it returns, which is any time
		if len(got) < 3 || !slices.Equal(got[:3], want) {
			t.Fatalf("between the end of the job and the channel: %v, want %v", got, want)
		}
	})
}

// What becomes ready while all workers are busy queues. What becomes ready when
// one is free again, and has not yet looked for the next, does not overtake it.
func TestOfferedInFairOrder(t *testing.T) {
	offered(t, 1, time.Second, func(m *delivery.Machine, s *steps) {
		submit(t, m, "a")()
		synctest.Wait() // a is being asked
		submit(t, m, "b")()
		submit(t, m, "c")()
		late := submit(t, m, "d")
		synctest.Wait()
		s.mu.Lock()
		s.look = late
		s.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		got := slices.DeleteFunc(s.done, func(x string) bool { return x[:6] != "probe " })
		if want := []string{"probe a", "probe b", "probe c", "probe d"}; !slices.Equal(got, want) {
			t.Fatalf("asked in the order %v", got)
		}
	})
}
