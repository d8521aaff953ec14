// Package ownthread is the channel to thole's own threads, whichever agent runs
// them. It speaks to the thread service in this process.
//
// The service starts a turn only on an idle thread, in one step, so this channel
// has no race: a busy thread refuses and nothing happens. A thread's log is
// durable, so an accepted turn can be followed across any restart and the stream
// is one epoch for ever. The channel grants nothing: the turn runs with the
// thread's own settings and profile. Where a person opened the gate, a delivery may go
// into a running turn instead, by the rules of package turnsteer.
package ownthread

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/backoff"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/channel/turnsteer"
	"github.com/tholehq/thole/internal/thread"
)

// epoch of every thread: its log never starts again.
const epoch = 1

const (
	// pause is between looks at a thread service that is not there.
	pause = time.Second
	// settle is between the two reads that prove a turn absent: with a shared
	// database a commit whose connection broke may land a little later.
	settle = 2 * time.Second
)

// Threads is what the channel needs of the thread service.
type Threads interface {
	Get(ctx context.Context, actor thole.Actor, id thole.ThreadID) (fold.Thread, error)
	StartTurn(ctx context.Context, actor thole.Actor, p thread.StartTurn) (fold.Turn, error)
	Turn(ctx context.Context, actor thole.Actor, id thole.ThreadID, turn thole.TurnID) (fold.Turn, error)
	Turns(ctx context.Context, actor thole.Actor, id thole.ThreadID, p thread.PageParams) (thread.Page[fold.Turn], error)
	TurnItems(ctx context.Context, actor thole.Actor, id thole.ThreadID, turns []thole.TurnID, said bool) (map[thole.TurnID][]fold.ItemRecord, error)
	Asks(ctx context.Context, actor thole.Actor, id thole.ThreadID, pendingOnly bool) ([]fold.AskRecord, error)
	Queue(ctx context.Context, actor thole.Actor, id thole.ThreadID) ([]event.Message, error)
	Steer(ctx context.Context, actor thole.Actor, p thread.Steer) (fold.Turn, error)
	Subscribe(ctx context.Context, actor thole.Actor, id thole.ThreadID, o thread.SubscribeOptions) (*thread.Subscription, error)
}

// Channel implements channel.Channel.
type Channel struct {
	Threads Threads
	// Home is the endpoint by which jobs name this home; an empty endpoint means
	// the same.
	Home string
	// Gate lets deliveries go into running turns; its zero value is closed.
	Gate turnsteer.Gate
	// Egress is the policy of threads that have none of their own.
	Egress string
}

var _ channel.Channel = (*Channel)(nil)

// actor acts for the user whose job it is: it sees and may do what that user may.
func actor(u thole.UserID) thole.Actor {
	return thole.Actor{User: u, Via: "system", Client: "delivery"}
}

// streamOf names the stream: a thread of thole's needs no other hold.
func streamOf(id thole.ThreadID) thole.AttachmentID { return thole.AttachmentID(id) }

// stream refuses a proposal of another stream than its thread's only one.
func stream(p channel.Proposal) error {
	if p.Attachment != streamOf(p.Thread) || p.Epoch != epoch {
		return fmt.Errorf("stream %s in epoch %d is not that of thread %s", p.Attachment, p.Epoch, p.Thread)
	}
	return nil
}

// Probe implements channel.Channel. The user's own results are trusted, because
// they cannot make the thread do more than its profile lets it; anybody else's
// must be strictly safe.
func (c *Channel) Probe(ctx context.Context, q channel.Query) (channel.Readiness, error) {
	never := func(why channel.Reason, format string, args ...any) (channel.Readiness, error) {
		return channel.Readiness{Verdict: channel.Never, Why: why, Reason: fmt.Sprintf(format, args...)}, nil
	}
	if q.Endpoint != "" && q.Endpoint != c.Home {
		return never(channel.ReasonOtherHome, "endpoint %s is another home: this daemon reaches threads of %s", q.Endpoint, c.Home)
	}
	th, err := c.Threads.Get(authz.Doing(ctx, authz.RunThread), actor(q.User), q.Thread)
	switch {
	case thole.CodeOf(err) == thole.CodeNotFound:
		return never(channel.ReasonNoThread, "no thread %s in this home", q.Thread)
	case err != nil:
		return channel.Readiness{}, err
	}
	trust := "trusted-all"
	if th.Owner.User != q.User {
		trust = "strict-safe"
		if o := q.Policy.Objections(); len(o) > 0 {
			return never(channel.ReasonPolicy, "the thread belongs to another user and the policy is not strictly safe: %s", strings.Join(o, ", "))
		}
	}
	switch {
	case th.Archived:
		return channel.Readiness{Verdict: channel.NotNow, Why: channel.ReasonArchived, Reason: "the thread is archived"}, nil
	case th.Open != "":
		active, err := c.steerable(ctx, th, q)
		if err != nil {
			return channel.Readiness{Verdict: channel.NotNow, Why: channel.ReasonBusy, Reason: fmt.Sprintf("the thread is busy with turn %s; %v", th.Open, err)}, nil
		}
		return channel.Readiness{
			Verdict: channel.Now, Mode: thole.ModeTurnSteer, Attachment: streamOf(q.Thread), Epoch: epoch,
			Reason: fmt.Sprintf("turn %s is steerable: %s, %s", active.Turn, active.Kind, active.Risk()),
		}, nil
	}
	profile := th.Settings.Profile
	if profile == "" {
		profile = "default"
	}
	return channel.Readiness{
		Verdict: channel.Now, Mode: thole.ModeTurnStart, Attachment: streamOf(q.Thread), Epoch: epoch,
		Reason: fmt.Sprintf("idle; %s within profile %s", trust, profile),
	}, nil
}

// Knows implements channel.Knower: every thread of this home is in its store.
func (c *Channel) Knows(ctx context.Context, q channel.Query) error {
	if q.Endpoint != "" && q.Endpoint != c.Home {
		return thole.Errorf(thole.CodeNotFound, "endpoint %s is another home: this one reaches threads of %s", q.Endpoint, c.Home).
			WithHint("thole --home %q job submit", q.Endpoint)
	}
	_, err := c.Threads.Get(authz.Doing(ctx, authz.RunThread), actor(q.User), q.Thread)
	if thole.CodeOf(err) == thole.CodeNotFound {
		return thole.Errorf(thole.CodeNotFound, "no thread %s in this home", q.Thread).WithHint("thole thread list shows the threads")
	}
	return err
}

// Propose implements channel.Channel.
func (c *Channel) Propose(ctx context.Context, p channel.Proposal) (channel.Answer, error) {
	if err := p.Check(); err != nil {
		return channel.Unsent(err), nil
	}
	if err := stream(p); err != nil {
		return channel.Unsent(err), nil
	}
	if p.Mode == thole.ModeTurnSteer {
		return c.steer(ctx, p)
	}
	turn, err := c.Threads.StartTurn(ctx, actor(p.User), thread.StartTurn{
		Thread: p.Thread, Input: thole.Text(p.Text), ClientID: p.Marker, Idempotency: p.Request, Trace: string(p.Batch),
	})
	if err == nil {
		return channel.Answer{
			Acceptance: thole.Accepted, Turn: turn.ID, Attachment: streamOf(p.Thread), Epoch: epoch,
			Evidence: fmt.Sprintf("the turn is number %d of the thread's log", turn.Number),
		}, nil
	}
	if refusal(err) {
		return channel.Answer{Acceptance: thole.Rejected, Evidence: "refused: " + err.Error()}, nil
	}
	return channel.Answer{}, err
}

// refusal distinguishes what the service says before it writes anything, or after it took
// back what it wrote.
func refusal(err error) bool {
	switch thole.CodeOf(err) {
	case thole.CodeBusy, thole.CodeConflict, thole.CodeNotFound, thole.CodeInvalid, thole.CodeOverloaded, thole.CodeUnauthorized, thole.CodeBudgetExceeded, thole.CodeUnsupported:
		return true
	}
	return false
}

// find looks for the turn a proposal made or went into. That the subscription was
// possible says that no commit of this process is in doubt. pending: it may still be taken.
func (c *Channel) find(ctx context.Context, w channel.Watch) (id thole.TurnID, pending bool, err error) {
	for read := range 2 {
		if read > 0 {
			if err := backoff.Sleep(ctx, settle); err != nil {
				return "", false, err
			}
		}
		if w.Mode == thole.ModeTurnSteer {
			id, pending, err = c.taken(ctx, w)
		} else {
			id, err = c.scan(ctx, w)
		}
		if err != nil || id != "" || pending {
			return id, pending, err
		}
	}
	return "", false, nil
}

func (c *Channel) scan(ctx context.Context, w channel.Watch) (thole.TurnID, error) {
	page := thread.PageParams{Limit: 100, Desc: true}
	for {
		turns, err := c.Threads.Turns(ctx, actor(w.User), w.Thread, page)
		if err != nil {
			return "", err
		}
		for _, t := range turns.Items {
			if t.ClientID == w.Marker {
				return t.ID, nil
			}
		}
		if turns.Next == "" {
			return "", nil
		}
		page.Cursor = turns.Next
	}
}

// passing distinguishes errors that time heals from the end of the thread.
func passing(err error) bool {
	if errors.Is(err, thread.ErrSlow) {
		return true
	}
	switch thole.CodeOf(err) {
	case thole.CodeUnavailable, thole.CodeOverloaded, thole.CodeBusy, thole.CodeInternal:
		return true
	}
	return false
}
