package ownthread

import (
	"context"
	"fmt"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/backoff"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/thread"
)

// Observe implements channel.Channel. A subscription that ends is begun again:
// the log shows what was missed.
func (c *Channel) Observe(ctx context.Context, w channel.Watch, see func(channel.Sighting) error) error {
	if err := stream(w.Proposal); err != nil {
		return fmt.Errorf("%w: %w", channel.ErrLost, err)
	}
	o := &observer{Channel: c, w: w, see: see}
	for {
		over, err := o.watch(ctx)
		switch {
		case o.failed != nil:
			return o.failed
		case ctx.Err() != nil:
			return ctx.Err()
		case over:
			return nil
		case err != nil && !passing(err):
			return fmt.Errorf("%w: follow turn: %w", channel.ErrLost, err)
		}
		if err := backoff.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// observer is one Observe.
type observer struct {
	*Channel
	w       channel.Watch
	see     func(channel.Sighting) error
	started bool
	failed  error // see's
}

func (o *observer) say(s channel.Sighting, evidence string) bool {
	s.Attachment, s.Epoch, s.Evidence = streamOf(o.w.Thread), epoch, evidence
	o.failed = o.see(s)
	return o.failed == nil
}

// watch follows one subscription. over says that the end was seen.
func (o *observer) watch(ctx context.Context) (over bool, err error) {
	sub, err := o.Threads.Subscribe(ctx, actor(o.w.User), o.w.Thread, thread.SubscribeOptions{NoDeltas: true})
	if err != nil {
		return false, err
	}
	defer sub.Close()
	if o.w.Turn == "" {
		id, err := o.await(ctx, sub)
		if err != nil {
			return false, err
		}
		if id == "" {
			return o.say(channel.Sighting{Acceptance: thole.Rejected}, "no turn of the thread carries the marker"), nil
		}
		if !o.say(channel.Sighting{Acceptance: thole.Accepted, Turn: id}, "the marker is in the thread's log") {
			return false, nil
		}
		o.w.Turn = id
	}
	turn, err := o.Threads.Turn(ctx, actor(o.w.User), o.w.Thread, o.w.Turn)
	if err != nil {
		return false, err
	}
	if !o.started {
		if !o.say(channel.Sighting{Event: thole.TurnEventStarted, Turn: turn.ID}, "thread log") {
			return false, nil
		}
		o.started = true
	}
	if turn.Outcome != "" {
		again, err := o.Threads.Turn(ctx, actor(o.w.User), o.w.Thread, o.w.Turn)
		if err != nil {
			return false, err
		}
		if again.Outcome == turn.Outcome {
			return o.end(turn.Outcome, "two reads of the turn's row"), nil
		}
	}
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case batch, ok := <-sub.Events:
			if !ok {
				return false, sub.Err()
			}
			for _, e := range batch.Events {
				switch {
				case e.Kind == event.TurnEnded && e.Turn == o.w.Turn:
					return o.end(e.Data.Outcome, fmt.Sprintf("thread log, event %d", e.Seq)), nil
				case e.Kind == event.ThreadDeleted:
					return false, thole.Errorf(thole.CodeGone, "the thread was deleted")
				}
			}
		}
	}
}

// await finds the turn of a proposal, and waits for one that may still be taken; "" if
// none has it or will.
func (o *observer) await(ctx context.Context, sub *thread.Subscription) (thole.TurnID, error) {
	for {
		id, pending, err := o.find(ctx, o.w)
		if err != nil || !pending {
			return id, err
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case _, ok := <-sub.Events:
			if !ok {
				return "", sub.Err()
			}
		}
	}
}

func (o *observer) end(outcome thole.Outcome, evidence string) bool {
	event := thole.TurnEventFailed
	switch outcome {
	case thole.OutcomeCompleted:
		event = thole.TurnEventCompleted
	case thole.OutcomeInterrupted:
		event = thole.TurnEventInterrupted
	case thole.OutcomeReplaced:
		event = thole.TurnEventReplaced
	}
	return o.say(channel.Sighting{Event: event, Turn: o.w.Turn}, evidence)
}
