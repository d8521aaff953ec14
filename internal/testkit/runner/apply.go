package runner

import (
	"context"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/thread"
)

const (
	// ahead is how many events a provider may be ahead of the log; then emit blocks.
	ahead = 256
	// tries and tryPause bound how long a store that is away may hold up a turn.
	tries    = 8
	tryPause = 50 * time.Millisecond
)

// applier stores a turn's events in batches: whatever came in while the last
// batch was being stored is the next one.
type applier struct {
	threads thread.Service
	ref     thread.TurnRef
	stop    func() // ends the turn when its events can no longer be stored
	in      chan event.Event
	done    chan error
}

func newApplier(s thread.Service, ref thread.TurnRef, stop func()) *applier {
	a := &applier{threads: s, ref: ref, stop: stop, in: make(chan event.Event, ahead), done: make(chan error, 1)}
	go a.loop()
	return a
}

func (a *applier) emit(e event.Event) { a.in <- e }

// close waits until everything is stored and returns the first failure.
func (a *applier) close() error {
	close(a.in)
	return <-a.done
}

func (a *applier) loop() {
	var failed error
	for e := range a.in {
		batch := []event.Event{e}
	more:
		for len(batch) < ahead {
			select {
			case e, ok := <-a.in:
				if !ok {
					break more
				}
				batch = append(batch, e)
			default:
				break more
			}
		}
		if failed != nil {
			continue // drain, so that the provider can end
		}
		if failed = a.apply(batch); failed != nil {
			a.stop()
		}
	}
	a.done <- failed
}

// apply retries while the store is away: the events have ids, so a repeat of a
// batch that did get through changes nothing.
func (a *applier) apply(batch []event.Event) (err error) {
	pause := tryPause
	for range tries {
		if err = a.vouch(batch); err != nil {
			return err
		}
		err = a.threads.Apply(context.Background(), a.ref, batch)
		switch thole.CodeOf(err) {
		case thole.CodeUnavailable, thole.CodeInternal, thole.CodeBusy:
			time.Sleep(pause)
			pause *= 2
		default:
			return err
		}
	}
	return err
}

// vouch gives answers their receipts: all that this agent is told comes from the
// thread, in this process.
func (a *applier) vouch(batch []event.Event) error {
	for i := range batch {
		if batch[i].Kind != event.AskResolved || batch[i].Answer == nil {
			continue
		}
		asks, err := a.threads.Asks(context.Background(), thole.SystemActor, a.ref.Thread, false)
		if err != nil {
			return err
		}
		for _, r := range asks {
			if r.Ask.ID == batch[i].AskID {
				batch[i].Receipt = r.Receipt
			}
		}
	}
	return nil
}
