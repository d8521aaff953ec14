package ownthread

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/channel/turnsteer"
	"github.com/tholehq/thole/internal/thread"
)

// words are the names of items that a turn can have without touching anything.
var words = map[event.ItemKind]string{
	event.ItemUserMessage: "userMessage", event.ItemMessage: "agentMessage", event.ItemReasoning: "reasoning", event.ItemPlan: "plan",
}

// gather is the running turn of a thread by its log, which has every item since the
// turn's start. A plan profile lets nothing be written or run; whether it reaches the
// network says the thread's policy, or that of this home.
func (c *Channel) gather(ctx context.Context, u thole.UserID, th fold.Thread) (turnsteer.Active, error) {
	a := turnsteer.Active{Thread: th.ID, Attachment: streamOf(th.ID), Epoch: epoch, Turn: th.Open}
	turn, err := c.Threads.Turn(ctx, actor(u), th.ID, th.Open)
	if err != nil {
		return a, err
	}
	items, err := c.Threads.TurnItems(ctx, actor(u), th.ID, []thole.TurnID{th.Open}, false)
	if err != nil {
		return a, err
	}
	asks, err := c.Threads.Asks(ctx, actor(u), th.ID, true)
	if err != nil {
		return a, err
	}
	e := turnsteer.Evidence{Asks: len(asks), Permissions: &attachment.PermissionSnapshot{
		Approval: th.Settings.Profile != thole.ProfilePlan, Write: th.Settings.Profile != thole.ProfilePlan, Network: c.reaches(th.Settings.Network),
	}}
	records, whole := items[th.Open]
	for _, r := range records {
		name := words[r.Item.Kind]
		if name == "" {
			name = string(r.Item.Kind)
		}
		e.Items = append(e.Items, name)
	}
	e.Complete = whole
	command, _ := thole.TurnCommandOf(turn.Input)
	if a.Kind = turnsteer.KindOf(e.Items); command != "" {
		a.Kind = ""
	}
	a.Steerable, a.At = turn.Phase == thole.PhaseRunning && len(asks) == 0, time.Now()
	return turnsteer.Classify(a, e), nil
}

// reaches reports whether a thread's agents reach anything but their models.
func (c *Channel) reaches(n *event.NetworkPolicy) bool {
	policy := c.Egress
	if n != nil && n.Policy != "default" {
		policy = n.Policy
	}
	return policy != "none" && policy != "gateway"
}

// steerable says whether a delivery may go into the running turn, and why not. What a
// trial proves of a server is so by the thread service's own making: a message names its
// turn, is in the log once, in order, and starts no turn while another runs.
func (c *Channel) steerable(ctx context.Context, th fold.Thread, q channel.Query) (turnsteer.Active, error) {
	if !c.Gate.Open() || q.Batch == "" {
		return turnsteer.Active{}, errors.New("steering is closed")
	}
	active, err := c.gather(ctx, q.User, th)
	if err != nil {
		return active, err
	}
	return active, turnsteer.Eligible(c.Gate, turnsteer.Presumed(epoch), active, turnsteer.Request{
		Thread: q.Thread, Attachment: streamOf(q.Thread), Epoch: epoch, Policy: q.Policy, ArtifactRead: q.ArtifactRead, Due: true, Now: time.Now(),
	})
}

var errNotTaken = errors.New("the message waits for the agent to take it in")

// steer gives the delivery to the running turn. The service's answer is no acceptance: the
// agent takes a message in later, which Observe sees in the log.
func (c *Channel) steer(ctx context.Context, p channel.Proposal) (channel.Answer, error) {
	th, err := c.Threads.Get(ctx, actor(p.User), p.Thread)
	if err != nil {
		return channel.Unsent(err), nil
	}
	if th.Open == "" {
		return channel.Unsent(errors.New("no turn runs any more")), nil
	}
	active, err := c.gather(ctx, p.User, th)
	if err != nil {
		return channel.Unsent(err), nil
	}
	if risk := active.Risk(); risk != turnsteer.LowRisk || !active.Steerable || active.Kind != turnsteer.Regular || !c.Gate.Open() {
		return channel.Unsent(fmt.Errorf("turn %s is not steerable any more: %s", active.Turn, risk)), nil
	}
	_, err = c.Threads.Steer(ctx, actor(p.User), thread.Steer{
		Thread: p.Thread, ID: thole.MessageID(p.Request), Expected: active.Turn, Input: thole.Text(p.Text), ClientID: p.Marker,
	})
	switch {
	case err == nil:
		return channel.Answer{}, errNotTaken
	case refusal(err):
		return channel.Answer{Acceptance: thole.Rejected, Evidence: "refused: " + err.Error()}, nil
	}
	return channel.Answer{}, err
}

// taken is the turn that a steered message became part of. pending: it waits for the
// agent, or in the queue, and may still be taken.
func (c *Channel) taken(ctx context.Context, w channel.Watch) (turn thole.TurnID, pending bool, err error) {
	waits := func(m event.Message) bool { return m.ClientID == w.Marker }
	queue, err := c.Threads.Queue(ctx, actor(w.User), w.Thread)
	if err != nil {
		return "", false, err
	}
	pending = slices.ContainsFunc(queue, waits)
	page := thread.PageParams{Limit: 100, Desc: true}
	for {
		turns, err := c.Threads.Turns(ctx, actor(w.User), w.Thread, page)
		if err != nil {
			return "", pending, err
		}
		for _, t := range turns.Items {
			if pending = pending || slices.ContainsFunc(t.Steers, waits); t.ClientID == w.Marker {
				return t.ID, false, nil
			}
			items, err := c.Threads.TurnItems(ctx, actor(w.User), w.Thread, []thole.TurnID{t.ID}, true)
			if err != nil {
				return "", pending, err
			}
			if slices.ContainsFunc(items[t.ID], func(r fold.ItemRecord) bool {
				return r.Item.Kind == event.ItemUserMessage && r.Item.ClientID == w.Marker
			}) {
				return t.ID, false, nil
			}
		}
		if turns.Next == "" {
			return "", pending, nil
		}
		page.Cursor = turns.Next
	}
}
