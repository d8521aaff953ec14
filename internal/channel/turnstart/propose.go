package turnstart

import (
	"context"
	"errors"
	"fmt"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/protocol/app"
)

// Propose implements channel.Channel.
func (c *Channel) Propose(ctx context.Context, p channel.Proposal) (channel.Answer, error) {
	unsent := func(why error) (channel.Answer, error) { return channel.Unsent(why), nil }
	if err := p.Check(); err != nil {
		return unsent(err)
	}
	a, err := c.Sessions.ByID(ctx, p.Attachment)
	if b := p.Asked.Brings; b.Owned() && b.Session == p.Attachment {
		var refused *channel.Answer
		if a, refused = c.provide(ctx, p); refused != nil {
			return *refused, nil
		}
		err = nil
	}
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
	if l.fit.Load() != l.news.Load() {
		return unsent(errors.New("the session's settings changed, or it has a new connection"))
	}
	if p.Mode == thole.ModeTurnSteer {
		return c.steer(ctx, l, a, p)
	}
	if err := c.pin(ctx, l, a); err != nil {
		return unsent(err)
	}
	f, err := c.send(ctx, l, p)
	if err != nil {
		return channel.Answer{}, err
	}
	if f.acceptance == thole.Rejected {
		if err := c.release(ctx, l, a); err != nil {
			return channel.Answer{}, fmt.Errorf("%s; the settings could not be put back yet: %w", f.evidence, err)
		}
	}
	return channel.Answer{Acceptance: f.acceptance, Turn: f.turn, Attachment: a.ID, Epoch: a.Epoch, Evidence: f.evidence, RetryAfter: busyPause}, nil
}

// send makes the one call and takes the message to one of its ends, if it can.
func (c *Channel) send(ctx context.Context, l *link, p channel.Proposal) (finding, error) {
	method, entry := "thread/queue/add", ""
	if !l.queued {
		// turn/start steers a busy thread. Being idle a moment ago makes that
		// unlikely; whether it happened is looked at afterwards.
		method = "turn/start"
		th, err := l.status(ctx)
		if err != nil {
			return finding{acceptance: thole.Rejected, evidence: "nothing was sent: " + err.Error()}, nil
		}
		if !th.idle() {
			return finding{acceptance: thole.Rejected, evidence: "nothing was sent: the thread is " + th.Status.Type}, nil
		}
	}
	var out app.QueueResult
	err := l.call(ctx, method, params{"input": appclient.Text(p.Text), "clientUserMessageId": p.Marker}, &out)
	switch {
	case refused(err):
		return finding{acceptance: thole.Rejected, evidence: "the server refused: " + err.Error()}, nil
	case err != nil:
		return finding{}, fmt.Errorf("the answer to %s was lost: %w", method, err)
	}
	if l.queued {
		entry = out.QueuedSubmission.ID
	}
	ctx, cancel := context.WithTimeout(ctx, giveUp)
	defer cancel()
	return c.settle(ctx, l, p.Marker, entry)
}

// finding is the proven fate of a message.
type finding struct {
	acceptance thole.Acceptance // Accepted or Rejected
	turn       thole.TurnID
	evidence   string
}

// settle takes a message that the server has to one of its ends: it opened a turn,
// or, while it is still queued, it was taken back. An error leaves it open.
func (c *Channel) settle(ctx context.Context, l *link, marker, entry string) (finding, error) {
	since := time.Now()
	asked := false
	for {
		wake := l.next()
		if turn := l.openedWith(marker); turn != "" {
			return finding{thole.Accepted, thole.TurnID(turn), "our message opened the turn, seen on the event stream"}, nil
		}
		if time.Since(since) >= startTime {
			f, done, err := c.decide(ctx, l, marker, entry, &asked)
			if err != nil || done {
				return f, err
			}
		}
		if err := sleep(ctx, startTime/5, wake); err != nil {
			return finding{}, fmt.Errorf("message %s neither started nor could be taken back: %w", entry, err)
		}
		if l.over() {
			return finding{}, fmt.Errorf("the connection ended while message %s was under way", entry)
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
		return finding{thole.Accepted, thole.TurnID(p.turn), "the server took our message into a running turn, by the thread's history"}, true, nil
	}
	return finding{thole.Accepted, thole.TurnID(p.turn), "our message is the first of the turn in the thread's history"}, true, nil
}

// openedWith is the turn that the marked message was seen opening, "" if none.
func (l *link) openedWith(marker string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for turn, by := range l.opened.of {
		if by.known && by.marker == marker {
			return turn
		}
	}
	return ""
}
