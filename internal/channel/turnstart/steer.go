package turnstart

import (
	"context"
	"errors"
	"fmt"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/channel/turnsteer"
	"github.com/tholehq/thole/protocol/app"
)

// gather is the running turn of the thread as this connection's own stream shows it: only
// a turn whose start was seen here has all its items known.
func (l *link) gather(a attachment.Attachment, th wireThread, now attachment.PermissionSnapshot) turnsteer.Active {
	active := turnsteer.Active{Thread: a.Thread, Attachment: a.ID, Epoch: l.epoch, At: time.Now()}
	e := turnsteer.Evidence{Permissions: &now, Flags: th.Status.ActiveFlags}
	l.mu.Lock()
	defer l.mu.Unlock()
	running := 0
	for turn := range l.opened.of {
		if _, over := l.ended.of[turn]; over {
			continue
		}
		running++
		active.Turn, e.Items = thole.TurnID(turn), l.items.of[turn]
	}
	active.Others = max(0, running-1)
	e.Complete = running == 1
	active.Kind = turnsteer.KindOf(e.Items)
	active.Steerable = running == 1 && th.Status.Type == app.StatusActive && len(th.Status.ActiveFlags) == 0
	return turnsteer.Classify(active, e)
}

// steerable says whether a delivery may go into the running turn of a thread that is not
// idle, and why not. The view of the turn is durable before anything depends on it.
func (c *Channel) steerable(ctx context.Context, l *link, a attachment.Attachment, th wireThread, now attachment.PermissionSnapshot, q channel.Query) error {
	active := l.gather(a, th, now)
	if err := c.Sessions.SawTurn(ctx, a.ID, active.View()); err != nil {
		return err
	}
	if !c.Gate.Open() || q.Batch == "" {
		return errors.New("steering is closed")
	}
	r := turnsteer.Request{
		Thread: q.Thread, Attachment: a.ID, Epoch: a.Epoch, Policy: q.Policy, ArtifactRead: q.ArtifactRead,
		Due: true, // a batch is probed when it is next, with no attempt open
		Now: time.Now(),
	}
	if err := turnsteer.Eligible(c.Gate, turnsteer.Presumed(a.Epoch), active, r); err != nil {
		return err // without a trial, which asks a model
	}
	able, err := c.steers(ctx, a)
	if err != nil {
		return err
	}
	if err := turnsteer.Eligible(c.Gate, able, active, r); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.granted = grant{batch: q.Batch, request: r, able: able}
	return nil
}

// grant is a batch that may be steered, by the last look at it.
type grant struct {
	batch   thole.BatchID
	request turnsteer.Request
	able    turnsteer.Capability
}

// steer sends a delivery into the running turn, looked at once more.
func (c *Channel) steer(ctx context.Context, l *link, a attachment.Attachment, p channel.Proposal) (channel.Answer, error) {
	l.mu.Lock()
	g := l.granted
	l.granted = grant{}
	l.mu.Unlock()
	if g.batch != p.Batch {
		return channel.Unsent(errors.New("the batch was not found to be steerable")), nil
	}
	th, err := l.status(ctx)
	if err != nil {
		return channel.Unsent(err), nil
	}
	if a.Current == nil {
		return channel.Unsent(errors.New("what the session allows was not seen yet")), nil
	}
	active := l.gather(a, th, *a.Current)
	g.request.Now = time.Now()
	return turnsteer.Propose(ctx, l.archive, c.Gate, g.able, active, g.request, p)
}

// Steer implements turnsteer.Server.
func (a archive) Steer(ctx context.Context, turn thole.TurnID, marker, text string) (thole.TurnID, error) {
	var out app.TurnSteerResult
	err := a.call(ctx, "turn/steer", params{"expectedTurnId": string(turn), "input": appclient.Text(text), "clientUserMessageId": marker}, &out)
	if refused(err) {
		return "", &turnsteer.Refusal{Reason: err.Error()}
	}
	return thole.TurnID(out.TurnID), err
}

// absorbed proves that a steered message is in the turn that completed.
func (c *Channel) absorbed(ctx context.Context, l *link, w channel.Watch) error {
	p, err := l.find(ctx, w.Marker)
	switch {
	case err != nil:
		return err
	case p.turn != string(w.Turn):
		return fmt.Errorf("%w: turn %s completed, and its history does not have the message", channel.ErrLost, w.Turn)
	}
	return nil
}

// Follow keeps a connection to a session's server, so that its turns are seen from their
// start. It does nothing while steering is closed.
func (c *Channel) Follow(ctx context.Context, a attachment.Attachment) error {
	if !c.Gate.Open() || !a.Usable() || a.Thread == "" {
		return nil
	}
	l, err := c.connect(ctx, a)
	if err != nil {
		return err
	}
	return l.subscribe(ctx)
}
