// Package notify informs the user of a home that a turn ended or asks: by a command, a
// webhook, or on the desktop. It follows what threads publish, so an event is sent
// once: by the owner of the home, or by one of the servers of a store. It keeps nothing: what its queue drops, or
// the end of the process cuts off, is not sent later. No turn ever waits for it.
package notify

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/thread"
)

// Threads are what is followed.
type Threads interface {
	Watch(ctx context.Context, actor thole.Actor) (*thread.Subscription, error)
	Get(ctx context.Context, actor thole.Actor, id thole.ThreadID) (fold.Thread, error)
	Turn(ctx context.Context, actor thole.Actor, id thole.ThreadID, turn thole.TurnID) (fold.Turn, error)
	TurnItems(ctx context.Context, actor thole.Actor, id thole.ThreadID, turns []thole.TurnID, said bool) (map[thole.TurnID][]fold.ItemRecord, error)
}

// Config says what is sent, and to whom.
type Config struct {
	Threads Threads
	Actor   thole.Actor // whose threads
	On      []string    // of Done, Failed and Ask
	Details bool
	Least   time.Duration // turns that took less are not reported when they are done
	Page    string        // where the page is, "" where there is none
	Targets []Target
	// Take reports whether this process sends the notification about an event, and not
	// another server of the store; nil: there is no other.
	Take func(ctx context.Context, id thole.EventID) (bool, error)
	Log  *slog.Logger
}

// Target takes notices.
type Target struct {
	Name string
	Send func(context.Context, Notice) error
}

const (
	queued = 64 // notices that wait for a target; the oldest is dropped for one more
	atOnce = 4  // sends of a target
	grace  = time.Second
	lookup = 5 * time.Second
)

// Notifier is a service.Part.
type Notifier struct {
	cfg     Config
	lanes   []chan *story
	cancel  context.CancelFunc
	leave   chan struct{} // closed: no more events are read
	read    chan struct{} // closed: the reader is gone, and the lanes are closed
	workers sync.WaitGroup
}

// New makes one that is not running.
func New(cfg Config) *Notifier {
	return &Notifier{cfg: cfg, leave: make(chan struct{}), read: make(chan struct{})}
}

// Start implements service.Part: what is published from now on is sent.
func (n *Notifier) Start(ctx context.Context) error {
	ctx, n.cancel = context.WithCancel(ctx)
	sub, err := n.cfg.Threads.Watch(ctx, n.cfg.Actor)
	if err != nil {
		n.cancel()
		return err
	}
	for _, to := range n.cfg.Targets {
		lane := make(chan *story, queued)
		n.lanes = append(n.lanes, lane)
		for range atOnce {
			n.workers.Go(func() {
				for s := range lane {
					n.send(ctx, to, s)
				}
			})
		}
	}
	go n.follow(ctx, sub)
	return nil
}

// Stop implements service.Part. What was published is still sent, if that takes no
// longer than a moment.
func (n *Notifier) Stop(context.Context) error {
	defer n.cancel()
	late := time.AfterFunc(grace, n.cancel)
	defer late.Stop()
	close(n.leave)
	<-n.read
	n.workers.Wait()
	return nil
}

func (n *Notifier) follow(ctx context.Context, sub *thread.Subscription) {
	defer close(n.read)
	defer func() {
		for _, lane := range n.lanes {
			close(lane)
		}
	}()
	for {
		n.drain(ctx, sub)
		why := sub.Err()
		sub.Close()
		if !errors.Is(why, thread.ErrSlow) {
			return
		}
		n.cfg.Log.Warn("notifications fell behind, and some events are not sent")
		var err error
		if sub, err = n.cfg.Threads.Watch(ctx, n.cfg.Actor); err != nil {
			return
		}
	}
}

// drain reads until the threads are closed, or nothing waits after leave.
func (n *Notifier) drain(ctx context.Context, sub *thread.Subscription) {
	for {
		select {
		case batch, ok := <-sub.Events:
			if !ok {
				return
			}
			n.take(ctx, batch)
		case <-n.leave:
			select {
			case batch, ok := <-sub.Events:
				if !ok {
					return
				}
				n.take(ctx, batch)
			default:
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

func (n *Notifier) take(ctx context.Context, batch *thread.Batch) {
	for _, e := range batch.Events {
		kind := kindOf(e)
		if kind == "" || !slices.Contains(n.cfg.On, kind) {
			continue
		}
		if n.cfg.Take != nil {
			ours, err := n.cfg.Take(ctx, e.ID)
			if err != nil {
				n.cfg.Log.Warn("a notification was not taken", "kind", kind, "thread", e.Thread, "err", err)
			}
			if !ours {
				continue
			}
		}
		s := n.story(kind, e)
		for i, lane := range n.lanes {
			n.push(n.cfg.Targets[i].Name, lane, s)
		}
	}
}

// push never waits. Only the reader of events calls it.
func (n *Notifier) push(to string, lane chan *story, s *story) {
	for {
		select {
		case lane <- s:
			return
		default:
		}
		select {
		case old := <-lane:
			n.cfg.Log.Warn("too many notifications wait: the oldest is dropped", "to", to, "kind", old.kind, "thread", old.event.Thread)
		default:
		}
	}
}

func (n *Notifier) send(ctx context.Context, to Target, s *story) {
	if ctx.Err() != nil {
		return
	}
	notice, ok := s.read(ctx)
	if !ok {
		return
	}
	if err := to.Send(ctx, notice); err != nil {
		n.cfg.Log.Warn("a notification failed", "to", to.Name, "kind", s.kind, "thread", s.event.Thread, "err", err)
	}
}

// kindOf is what an event is sent as; "" for those that are not.
func kindOf(e event.Event) string {
	switch {
	case e.Kind == event.TurnEnded && e.Outcome == thole.OutcomeCompleted:
		return Done
	case e.Kind == event.TurnEnded && e.Outcome == thole.OutcomeFailed:
		return Failed
	case e.Kind == event.AskRequested && e.Ask != nil && e.Ask.Kind != event.AskTool: // no person answers that
		return Ask
	}
	return ""
}
