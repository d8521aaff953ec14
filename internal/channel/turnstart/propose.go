package turnstart

import (
	"context"
	"fmt"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/channel"
)

// Propose implements channel.Channel.
func (c *Channel) Propose(ctx context.Context, p channel.Proposal) (channel.Answer, error) {
	unsent := func(why error) (channel.Answer, error) {
		return channel.Answer{Acceptance: thole.Rejected, Evidence: "nothing was sent: " + why.Error()}, nil
	}
	a, err := c.Sessions.ByID(ctx, p.Attachment)
	if err != nil {
		return unsent(err)
	}
	if a.Epoch != p.Epoch || !a.Usable() {
		return unsent(fmt.Errorf("the session is %s in epoch %d", a.State, a.Epoch))
	}
	l, err := c.connect(ctx, a)
	if err != nil {
		return unsent(err)
	}
	var added struct {
		Queued wireQueued `json:"queuedSubmission"`
	}
	err = l.call(ctx, "thread/queue/add", params{"input": text(p.Text), "clientUserMessageId": p.Marker}, &added)
	switch {
	case refused(err):
		return channel.Answer{Acceptance: thole.Rejected, Evidence: "the server refused: " + err.Error()}, nil
	case err != nil:
		return channel.Answer{}, fmt.Errorf("the answer to thread/queue/add was lost: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, giveUp)
	defer cancel()
	f, err := c.settle(ctx, l, p.Marker, added.Queued.ID)
	if err != nil {
		return channel.Answer{}, err
	}
	return channel.Answer{Acceptance: f.acceptance, Turn: f.turn, Attachment: a.ID, Epoch: a.Epoch, Evidence: f.evidence, RetryAfter: busyPause}, nil
}

// finding is the proven fate of a message.
type finding struct {
	acceptance thole.Acceptance // Accepted or Rejected
	turn       thole.TurnID
	evidence   string
}

// settle takes a message that is in the queue to one of its two ends: it opened a
// turn, or it was taken back. An error leaves it open.
func (c *Channel) settle(ctx context.Context, l *link, marker, entry string) (finding, error) {
	since := c.Clock.Now()
	asked := false
	for {
		wake := l.next()
		if turn := l.openedWith(marker); turn != "" {
			return finding{thole.Accepted, thole.TurnID(turn), "our queued message opened the turn, seen on the event stream"}, nil
		}
		waited := c.Clock.Now().Sub(since)
		if waited >= startTime {
			f, done, err := c.decide(ctx, l, marker, entry, &asked)
			if err != nil || done {
				return f, err
			}
		}
		if err := c.sleep(ctx, startTime/5, wake); err != nil {
			return finding{}, fmt.Errorf("queued message %s neither started nor could be taken back: %w", entry, err)
		}
		select {
		case <-l.client.Done():
			return finding{}, fmt.Errorf("the connection ended while message %s was queued", entry)
		default:
		}
	}
}

// decide looks at a message that did not start at once. An idle thread starts it
// by name, which is the server's own compare-and-set; on a busy one it is taken
// back, once.
func (c *Channel) decide(ctx context.Context, l *link, marker, entry string, asked *bool) (f finding, done bool, err error) {
	f, done, err = inHistory(ctx, l.archive, marker)
	if err != nil || done {
		return f, done, err
	}
	listed, err := l.entry(ctx, marker)
	if err != nil || listed == "" {
		return f, false, err // consumed a moment ago: its turn is about to show
	}
	th, err := l.status(ctx)
	if err != nil {
		return f, false, err
	}
	if th.idle() && !*asked {
		*asked = true
		err := l.call(ctx, "thread/queue/start", params{"queuedSubmissionId": entry}, nil)
		if err != nil && !refused(err) {
			return f, false, err
		}
		return f, false, nil
	}
	deleted, err := l.drop(ctx, listed)
	if err != nil || !deleted {
		return f, false, err
	}
	return finding{acceptance: thole.Rejected, evidence: "taken back: the server deleted the queued message before it started"}, true, nil
}

// inHistory reports a message that became part of a turn.
func inHistory(ctx context.Context, a archive, marker string) (finding, bool, error) {
	p, err := a.find(ctx, marker)
	switch {
	case err != nil || p.turn == "":
		return finding{}, false, err
	case !p.opened:
		return finding{}, false, &steeredError{turn: p.turn}
	}
	return finding{thole.Accepted, thole.TurnID(p.turn), "our message is the first of the turn in the thread's history"}, true, nil
}

// steeredError: the message went into a turn that someone else opened, so its end
// proves nothing about ours.
type steeredError struct{ turn string }

func (e *steeredError) Error() string {
	return fmt.Sprintf("the message was steered into turn %s, which it did not open", e.turn)
}

// openedWith is the turn that the marked message was seen opening, "" if none.
func (l *link) openedWith(marker string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for turn, by := range l.opened {
		if by.known && by.marker == marker {
			return turn
		}
	}
	return ""
}
