package turnstart

import (
	"context"
	"errors"
	"fmt"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/channel"
)

// Observe implements channel.Channel. While the process is the attachment's own,
// a broken connection is made again and the stored history closes the gap. When it
// is gone, what was accepted is lost; what was not yet known is still decided from
// the dead server's store, before anybody can load the thread again.
func (c *Channel) Observe(ctx context.Context, w channel.Watch, see func(channel.Sighting) error) error {
	a, err := c.Sessions.ByID(ctx, w.Attachment)
	if err != nil {
		return fmt.Errorf("find the session: %w", err)
	}
	say := func(s channel.Sighting) error {
		s.Attachment, s.Epoch = w.Attachment, w.Epoch
		return see(s)
	}
	if a.Epoch != w.Epoch {
		return fmt.Errorf("%w: the session is in epoch %d, not %d", channel.ErrLost, a.Epoch, w.Epoch)
	}
	if w.Turn == "" {
		f, err := c.reconcile(ctx, a, w.Marker)
		if err != nil {
			return err
		}
		if err := say(channel.Sighting{Acceptance: f.acceptance, Turn: f.turn, Evidence: f.evidence}); err != nil || f.acceptance == thole.Rejected {
			return err
		}
		w.Turn = f.turn
	}
	return c.follow(ctx, a, w.Turn, say)
}

// follow watches an accepted turn to its end.
func (c *Channel) follow(ctx context.Context, a attachment.Attachment, turn thole.TurnID, say func(channel.Sighting) error) error {
	started := false
	var joined *link // resumed on: once, because every resume is told to everyone
	for {
		wake := (<-chan struct{})(nil)
		pause := reconnect
		l, err := c.connect(ctx, a)
		if err == nil {
			wake, pause = l.next(), look
			var t *wireTurn
			if l != joined {
				_, err = l.resume(ctx)
			}
			if err == nil {
				joined = l
				t, err = l.turn(ctx, string(turn))
			}
			if t != nil && !started {
				if err := say(channel.Sighting{Event: thole.TurnEventStarted, Turn: turn, Evidence: "thread history"}); err != nil {
					return err
				}
				started = true
			}
			if event := ended(t); event != "" {
				return say(channel.Sighting{Event: event, Turn: turn, Evidence: "the turn is " + t.Status + " in the thread's history"})
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if gone := a.Process.Alive(); gone != nil {
			return fmt.Errorf("%w: %w", channel.ErrLost, gone)
		}
		if err != nil {
			pause = reconnect
		}
		if err := c.sleep(ctx, pause, wake); err != nil {
			return err
		}
	}
}

func ended(t *wireTurn) thole.TurnEvent {
	if t == nil {
		return ""
	}
	switch t.Status {
	case "completed":
		return thole.TurnEventCompleted
	case "failed":
		return thole.TurnEventFailed
	case "interrupted":
		return thole.TurnEventInterrupted
	}
	return ""
}

// reconcile finds out what became of a message whose answer was lost.
func (c *Channel) reconcile(ctx context.Context, a attachment.Attachment, marker string) (finding, error) {
	var absentSince time.Time
	var seen *link
	for {
		if gone := a.Process.Alive(); gone != nil {
			return c.autopsy(ctx, a, marker, gone)
		}
		l, err := c.connect(ctx, a)
		if err == nil {
			if l != seen {
				// A server that was stopped for a while may still have our call
				// in its socket; absence counts from this connection on.
				seen, absentSince = l, time.Time{}
				_, err = l.resume(ctx)
			}
			if err == nil {
				f, done, absent, e := c.look(ctx, l, marker, absentSince)
				if done {
					return f, nil
				}
				absentSince, err = absent, e
			}
		}
		var steered *steeredError
		switch {
		case ctx.Err() != nil:
			return finding{}, ctx.Err()
		case errors.As(err, &steered), errors.Is(err, errTooLong):
			return finding{}, err
		}
		if err := c.sleep(ctx, reconnect, nil); err != nil {
			return finding{}, err
		}
	}
}

// look reads queue, history and queue again: a message that moved from one to the
// other in between shows in one of them. absent is since when it was in neither.
func (c *Channel) look(ctx context.Context, l *link, marker string, since time.Time) (f finding, done bool, absent time.Time, err error) {
	var entry string
	for read := range 2 {
		if entry, err = l.entry(ctx, marker); err != nil {
			return f, false, since, err
		}
		if entry != "" {
			ctx, cancel := context.WithTimeout(ctx, giveUp)
			defer cancel()
			f, err := c.settle(ctx, l, marker, entry)
			return f, err == nil, time.Time{}, err
		}
		if read == 0 {
			if f, done, err = inHistory(ctx, l.archive, marker); err != nil || done {
				return f, done, time.Time{}, err
			}
		}
	}
	th, err := l.status(ctx)
	if err != nil {
		return f, false, since, err
	}
	now, need := c.Clock.Now(), absentTime
	if !th.idle() {
		need = absentBusy
	}
	if since.IsZero() {
		return f, false, now, nil
	}
	if now.Sub(since) < need {
		return f, false, since, nil
	}
	return finding{acceptance: thole.Rejected, evidence: fmt.Sprintf("neither queued nor in the history, twice within %s", now.Sub(since).Round(time.Millisecond))}, true, since, nil
}

// autopsy decides from the store of a dead server. A message that opened a turn
// ran in an epoch that is over; one that is queued would start when somebody
// loads the thread, and is taken out first.
func (c *Channel) autopsy(ctx context.Context, a attachment.Attachment, marker string, gone error) (finding, error) {
	client, end, err := c.Sessions.Autopsy(ctx, a, options())
	if err != nil {
		return finding{}, fmt.Errorf("%w: %w, and its store cannot be read safely: %w", channel.ErrLost, gone, err)
	}
	defer end()
	store := archive{client: client, thread: string(a.Thread)}
	f, err := dissect(ctx, store, marker)
	if err != nil {
		return finding{}, fmt.Errorf("%w: %w: %w", channel.ErrLost, gone, err)
	}
	return f, nil
}

func dissect(ctx context.Context, store archive, marker string) (finding, error) {
	entry, err := store.entry(ctx, marker)
	if err != nil {
		return finding{}, err
	}
	if entry != "" {
		deleted, err := store.drop(ctx, entry)
		if err != nil || !deleted {
			return finding{}, fmt.Errorf("its queued message could not be deleted: %w", err)
		}
	}
	p, err := store.find(ctx, marker)
	if err != nil {
		return finding{}, err
	}
	if p.turn != "" {
		return finding{}, fmt.Errorf("its turn %s was cut off", p.turn)
	}
	if entry != "" {
		return finding{acceptance: thole.Rejected, evidence: "the server died; its queued message was deleted before anybody loaded the thread"}, nil
	}
	return finding{acceptance: thole.Rejected, evidence: "the server died; its store has the message neither queued nor in the history"}, nil
}
