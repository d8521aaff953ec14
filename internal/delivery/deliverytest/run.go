package deliverytest

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/delivery/driver"
)

// Run is a machine and its driver over a store, as one process has them.
type Run struct {
	*delivery.Machine
	// Halt ends the driver; the store stays for the next Run.
	Halt func()

	t       testing.TB
	mu      sync.Mutex
	changed chan struct{} // closed at the next commit
}

// Limits are the shipped ones without the pauses that a test would wait for.
func Limits() delivery.Limits {
	l := delivery.DefaultLimits()
	l.WaitWindow, l.MinInterval, l.RetryMin = 0, 0, 50*time.Millisecond
	return l
}

// Start runs deliveries until Halt or the end of the test.
func Start(t testing.TB, s delivery.Store, l delivery.Limits, channels map[thole.Target]channel.Channel) *Run {
	r := &Run{t: t, changed: make(chan struct{})}
	var d *driver.Driver
	r.Machine = delivery.New(delivery.Config{Store: s, Limits: l, Wake: func(ready *delivery.Candidate) {
		r.mu.Lock()
		close(r.changed)
		r.changed = make(chan struct{})
		r.mu.Unlock()
		d.Wake(ready)
	}})
	d = driver.New(driver.Config{Machine: r.Machine, Holder: "test", Sole: true, Channels: channels})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = d.Run(ctx) }()
	r.Halt = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(r.Halt)
	return r
}

// Job submits and completes work for a thread; repeating it changes nothing.
func (r *Run) Job(id thole.JobID, target thole.Target, a delivery.Address, result string) {
	r.t.Helper()
	ctx := context.Background()
	_, _, err := r.Submit(ctx, thole.LocalActor, delivery.Submit{
		ID: id, Owner: thole.DefaultOwner, Target: target, Summary: "work", Policy: thole.UnknownDeliveryPolicy, Address: a,
	})
	if err == nil {
		_, err = r.Finish(ctx, thole.LocalActor, delivery.Finish{Job: id, State: thole.JobReady, Inline: result, Request: string(id)})
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// Settled: the batch is closed or held.
func Settled(v delivery.BatchView) bool { return v.Batch.CloseReason != "" || v.Batch.HeldFor != "" }

// Until waits until the only batch satisfies ok.
func (r *Run) Until(ok func(delivery.BatchView) bool) delivery.BatchView {
	r.t.Helper()
	deadline := time.After(time.Minute)
	for {
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		all, err := r.Batches(context.Background(), thole.LocalActor, delivery.BatchFilter{Limit: 2})
		if err != nil {
			r.t.Fatal(err)
		}
		if len(all) == 1 && ok(all[0]) {
			return all[0]
		}
		select {
		case <-changed:
		case <-deadline:
			r.t.Fatalf("the batch never got there: %+v\n%s", all, r.Story())
		}
	}
}

// Story is the ledger of the newest batch.
func (r *Run) Story() string {
	ctx := context.Background()
	all, err := r.Batches(ctx, thole.LocalActor, delivery.BatchFilter{Limit: 1})
	if err != nil || len(all) == 0 {
		return "no batch"
	}
	v, err := r.Inspect(ctx, thole.LocalActor, all[0].Batch.ID)
	if err != nil {
		return err.Error()
	}
	var w strings.Builder
	for _, a := range v.Ledger {
		w.WriteString(a.Event)
		for k, p := range a.Proof {
			w.WriteString(" " + k + "=" + p)
		}
		w.WriteString("\n")
	}
	return w.String()
}
