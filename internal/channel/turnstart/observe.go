package turnstart

import (
	"context"
	"errors"
	"fmt"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/channel/turnend"
)

// Observe implements channel.Channel. While the process is the attachment's own,
// a broken connection is made again and the stored history closes the gap. When it
// is gone, what was accepted is lost; what was not yet known is still decided from
// the dead server's store, before anybody can load the thread again.
func (c *Channel) Observe(ctx context.Context, w channel.Watch, see func(channel.Sighting) error) error {
	say := func(s channel.Sighting) error {
		s.Attachment, s.Epoch = w.Attachment, w.Epoch
		return see(s)
	}
	a, err := c.Sessions.ByID(ctx, w.Attachment)
	none := thole.CodeOf(err) == thole.CodeNotFound
	switch {
	case none && unbegun(w, nil), err == nil && unbegun(w, &a):
		return say(channel.Sighting{Acceptance: thole.Rejected, Evidence: "nothing was sent: its own server never began"})
	case none:
		return fmt.Errorf("%w: %w", channel.ErrLost, err)
	case err != nil:
		return fmt.Errorf("find the session: %w", err)
	}
	if a.Epoch != w.Epoch {
		return fmt.Errorf("%w: the session is in epoch %d, not %d", channel.ErrLost, a.Epoch, w.Epoch)
	}
	if w.Turn == "" {
		f, err := c.reconcile(ctx, a, w.Proposal)
		if err != nil {
			return err
		}
		if err := say(channel.Sighting{Acceptance: f.acceptance, Turn: f.turn, Evidence: f.evidence}); err != nil || f.acceptance == thole.Rejected {
			return err
		}
		w.Turn = f.turn
	}
	return c.follow(ctx, a, w, say)
}

// follow watches an accepted turn to its end.
func (c *Channel) follow(ctx context.Context, a attachment.Attachment, w channel.Watch, say func(channel.Sighting) error) error {
	turn, started := w.Turn, false
	var joined *link
	var judge turnend.Judge
	for {
		wake := (<-chan struct{})(nil)
		pause := reconnect
		l, err := c.connect(ctx, a)
		if err == nil {
			wake, pause = l.next(), look
			var t *turnend.Read
			if l != joined {
				err = l.subscribe(ctx)
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
			judge.Completed(l.completed(turn))
			if err == nil {
				judge.Saw(t)
			}
			event, proof := judge.Verdict()
			if event == thole.TurnEventCompleted && err == nil && w.Mode == thole.ModeTurnSteer {
				if err = c.absorbed(ctx, l, w); errors.Is(err, channel.ErrLost) {
					return err
				}
			}
			if event != "" && err == nil {
				if err = c.release(ctx, l, a); err == nil {
					return say(channel.Sighting{Event: event, Turn: turn, Evidence: proof})
				}
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
		if err := sleep(ctx, pause, wake); err != nil {
			return err
		}
	}
}

// reconcile finds out what became of a message whose answer was lost.
func (c *Channel) reconcile(ctx context.Context, a attachment.Attachment, p channel.Proposal) (finding, error) {
	var gap absence
	var seen *link
	for {
		if gone := a.Process.Alive(); gone != nil {
			return c.autopsy(ctx, a, p.Marker, gone)
		}
		l, err := c.connect(ctx, a)
		if err == nil {
			if l != seen {
				// A server that was stopped for a while may still have our call
				// in its socket; absence counts from this connection on.
				seen, gap = l, absence{}
				err = l.subscribe(ctx)
			}
			if err == nil {
				var f finding
				var done bool
				f, done, err = c.look(ctx, l, p, &gap)
				if done && f.acceptance == thole.Rejected {
					err = c.release(ctx, l, a)
				}
				if done && err == nil {
					return f, nil
				}
			}
		}
		switch {
		case ctx.Err() != nil:
			return finding{}, ctx.Err()
		case errors.Is(err, channel.ErrLost):
			if e := c.release(ctx, l, a); e != nil {
				c.Log.Warn("the settings of before a delivery are not put back yet", "thread", a.Thread, "err", e)
			}
			return finding{}, err
		}
		if err := sleep(ctx, reconnect, nil); err != nil {
			return finding{}, err
		}
	}
}

// absence is how long and in how many looks a message was nowhere.
type absence struct {
	since time.Time
	looks int
}

// absentLooks are needed in addition to the time: of a process that sleeps, time proves
// nothing.
const absentLooks = 4

// missed counts one more look that found the message nowhere, and says whether it was
// never taken. A running turn shows what went into it only when it has read it, so a
// message that may be there is missed while the thread is idle only.
func (g *absence) missed(now time.Time, idle, mayBeInATurn bool) bool {
	need := absentTime
	if !idle {
		need = absentBusy
	}
	if !idle && mayBeInATurn {
		*g = absence{}
		return false
	}
	if g.looks++; g.looks == 1 {
		g.since = now
	}
	return g.looks >= absentLooks && now.Sub(g.since) >= need
}

// look reads queue, history and queue again: a message that moved from one to the
// other in between shows in one of them.
func (c *Channel) look(ctx context.Context, l *link, p channel.Proposal, gap *absence) (f finding, done bool, err error) {
	var blind error
	for read := range 2 {
		entry, err := l.entry(ctx, p.Marker)
		if err != nil {
			return f, false, err
		}
		if entry != "" {
			*gap = absence{}
			ctx, cancel := context.WithTimeout(ctx, giveUp)
			defer cancel()
			f, err := c.settle(ctx, l, p.Marker, entry)
			return f, err == nil, err
		}
		if read == 0 {
			f, done, err = inHistory(ctx, l.archive, p.Marker)
			if errors.Is(err, errTooLong) {
				blind, err = err, nil
			}
			if err != nil || done {
				return f, done, err
			}
		}
	}
	th, err := l.status(ctx)
	if err != nil {
		return f, false, err
	}
	now := time.Now()
	switch {
	case !gap.missed(now, th.idle(), p.Mode == thole.ModeTurnSteer || !l.queued):
		return f, false, nil
	case blind != nil:
		return f, false, fmt.Errorf("%w: it is not queued, and %w", channel.ErrLost, blind)
	}
	return finding{acceptance: thole.Rejected, evidence: fmt.Sprintf("neither queued nor in the history, %d times within %s", gap.looks, now.Sub(gap.since).Round(time.Millisecond))}, true, nil
}

// autopsies is how often a dead server's store is tried to be read: what is queued
// in it would fire later.
const autopsies = 3

// autopsy decides from the store of a dead server. A message that opened a turn
// ran in an epoch that is over; one that is queued would start when a client
// loads the thread, and is taken out first.
func (c *Channel) autopsy(ctx context.Context, a attachment.Attachment, marker string, gone error) (finding, error) {
	client, end, err := c.Sessions.Autopsy(ctx, a, Options())
	for try := 1; try < autopsies && err != nil && thole.CodeOf(err) != thole.CodeUnsupported && sleep(ctx, reconnect, nil) == nil; try++ {
		client, end, err = c.Sessions.Autopsy(ctx, a, Options())
	}
	if err != nil {
		return finding{}, fmt.Errorf("%w: %w, and its store cannot be read safely: %w", channel.ErrLost, gone, err)
	}
	defer end()
	store, err := open(ctx, client, a.Thread, true)
	if err != nil {
		return finding{}, fmt.Errorf("%w: %w: %w", channel.ErrLost, gone, err)
	}
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
