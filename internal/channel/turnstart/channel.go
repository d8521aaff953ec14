// Package turnstart is the channel to threads of a real Codex app-server.
//
// A delivery goes through the server's durable queue, which never steers: an
// entry either opens a turn of its own, or is still listed and can be taken back.
// Accepted means that our message opened a turn. Everything is correlated by the
// marker, given as the message's client id, and proven from what the server
// stores; notifications only say when to look again. So a connection may break at
// any time, as long as its process is provably the same.
//
// The channel gives no settings with a turn (they would stick to the user's
// session) unless the user asked for it, answers no server request, steers only where a
// person opened the gate and every proof of package turnsteer is there, and sends
// nothing to a server that lacks one of the methods it needs. On a server without
// the queue a turn is started directly, which steers when another client was
// faster: that is found out afterwards, and the turn that took the message accepts it.
package turnstart

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/attachment/keeper"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/channel/turnsteer"
	"github.com/tholehq/thole/internal/procid"
)

const (
	dialTime = 10 * time.Second
	callTime = 10 * time.Second
	// startTime is how long an entry may wait to open its turn before it is
	// started by name or taken back.
	startTime = 500 * time.Millisecond
	// giveUp ends Propose without an answer; Observe goes on looking.
	giveUp = 15 * time.Second
	// absentTime is between the two reads that prove a message absent, absentBusy
	// the same while a turn runs.
	absentTime = 2 * time.Second
	absentBusy = 10 * time.Second
	// look is the longest time between two looks at a turn without a wake-up.
	look      = time.Second
	reconnect = 250 * time.Millisecond
	busyPause = 2 * time.Second
	// cannotPause is before a server that lacks something is asked again.
	cannotPause = time.Minute
)

// Sessions knows which server serves a thread.
type Sessions interface {
	// Of returns the attachment of a thread; thole.CodeNotFound: none.
	Of(ctx context.Context, user thole.UserID, home string, thread thole.ThreadID) (attachment.Attachment, error)
	// ByID returns an attachment in any state.
	ByID(ctx context.Context, id thole.AttachmentID) (attachment.Attachment, error)
	// Saw records the permissions a session was seen with and returns its cap.
	Saw(ctx context.Context, id thole.AttachmentID, now attachment.PermissionSnapshot) (attachment.PermissionSnapshot, error)
	// Pin records what a session's settings were before a delivery tightened them,
	// nil that they are the user's own again.
	Pin(ctx context.Context, id thole.AttachmentID, p *attachment.Pin) error
	// SawTurn records the running turn of a session, as its stream shows it.
	SawTurn(ctx context.Context, id thole.AttachmentID, t *attachment.ActiveTurn) error
	// Autopsy opens the stored threads of a server whose process is gone, with a
	// server of our own that nobody else reaches and while nobody else can load
	// them. Close ends it.
	Autopsy(ctx context.Context, a attachment.Attachment, o appclient.Options) (c *appclient.Client, end func(), err error)
	// Epoch is the one that Provide would start a session in; thole.CodeBusy: not now.
	Epoch(ctx context.Context, id thole.AttachmentID) (int64, error)
	// Provide starts the server that a delivery brings with it, under its id and in the
	// epoch of its barrier, or in none.
	Provide(ctx context.Context, id thole.AttachmentID, epoch int64, o keeper.Open) (attachment.Attachment, error)
}

// Channel implements channel.Channel.
type Channel struct {
	Sessions Sessions
	Log      *slog.Logger
	// Gate lets deliveries go into running turns; closed unless it is set before use.
	Gate turnsteer.Gate

	trialText string        // of a steered trial, if not the standard one
	plain     bool          // asks for no experimental methods
	leftAfter time.Duration // the age from which on a trial is nobody's
	serverOf  func(int) int // the process that serves what a socket's process passes on; nil: itself

	pins sync.Map // of the mutexes, by attachment, held while it is pinned or found to be left pinned

	mu    sync.Mutex
	links map[thole.AttachmentID]*link
	// trials are those of the queues of living servers, steerTrials of their steering.
	trials, steerTrials map[procid.Identity]*trial
}

var (
	_ channel.Channel    = (*Channel)(nil)
	_ channel.Foreteller = (*Channel)(nil)
)

// New makes a channel; Close ends its connections.
func New(s Sessions, log *slog.Logger) *Channel {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Channel{Sessions: s, Log: log, links: map[thole.AttachmentID]*link{}, trials: map[procid.Identity]*trial{}, steerTrials: map[procid.Identity]*trial{}, leftAfter: 2 * (giveUp + callTime)}
}

// Close ends every connection.
func (c *Channel) Close() {
	c.mu.Lock()
	links := c.links
	c.links = map[thole.AttachmentID]*link{}
	c.mu.Unlock()
	for _, l := range links {
		l.client.Close()
	}
}

func notNow(why channel.Reason, wait time.Duration, format string, args ...any) channel.Readiness {
	return channel.Readiness{Verdict: channel.NotNow, Why: why, Reason: fmt.Sprintf(format, args...), RetryAfter: wait}
}

// Probe implements channel.Channel: idle, nothing queued, permissions within the
// cap, on a server that is provably the attachment's own.
func (c *Channel) Probe(ctx context.Context, q channel.Query) (channel.Readiness, error) {
	a, err := c.Sessions.Of(ctx, q.User, q.Endpoint, q.Thread)
	if thole.CodeOf(err) == thole.CodeNotFound {
		if q.Brings.Owned() {
			return c.brought(ctx, q)
		}
		return noSession(q), nil
	}
	if err != nil {
		return channel.Readiness{}, err
	}
	if !a.Usable() {
		return notNow(channel.ReasonAway, 0, "the session is %s", a.State), nil
	}
	l, err := c.connect(ctx, a)
	if err != nil {
		if thole.CodeOf(err) == thole.CodeUnsupported {
			return notNow(channel.ReasonUnsupported, cannotPause, "%v", err), nil
		}
		return notNow(channel.ReasonServer, 0, "%v", err), nil
	}
	if err := c.prove(ctx, l, a); err != nil {
		return notNow(channel.ReasonUnsupported, cannotPause, "%v", err), nil
	}
	if a.Pinned != nil {
		if q.Batch == "" && a.Pinned.Epoch == a.Epoch { // a forecast or an inspection
			return notNow(channel.ReasonPinned, busyPause, "a delivered turn runs with pinned permissions"), nil
		}
		// Left behind by a delivery whose end nobody saw.
		if err := c.unpin(ctx, l, a); err != nil {
			return notNow(channel.ReasonPinned, busyPause, "the settings of before a delivery could not be put back yet: %v", err), nil
		}
	}
	news := l.news.Load()
	view, th, queue, err := l.survey(ctx)
	if err != nil {
		return notNow(channel.ReasonServer, busyPause, "%v", err), nil
	}
	if err := l.able(ctx); err != nil {
		if thole.CodeOf(err) == thole.CodeUnsupported {
			return notNow(channel.ReasonUnsupported, cannotPause, "%v", err), nil
		}
		return notNow(channel.ReasonServer, busyPause, "%v", err), nil
	}
	if why := view.Thread.unfit(); why != "" {
		return channel.Readiness{Verdict: channel.Never, Why: channel.ReasonUnfitThread, Reason: why}, nil
	}
	now, err := attachment.Read(view.Settings)
	if err != nil {
		return notNow(channel.ReasonUnsupported, cannotPause, "%v", err), nil
	}
	limit, err := c.Sessions.Saw(ctx, a.ID, now)
	if err != nil {
		return channel.Readiness{}, err
	}
	j, against := judge(a, limit, now, q)
	if against != nil {
		return *against, nil
	}
	if len(queue) > 0 {
		return notNow(channel.ReasonBusy, busyPause, "%d messages are queued in the thread already", len(queue)), nil
	}
	if !th.idle() {
		if err := c.steerable(ctx, l, a, th, now, q); err != nil {
			return notNow(channel.ReasonBusy, busyPause, "the thread is %s; %v", th.Status.Type, err), nil
		}
		l.fit.Store(news)
		return channel.Readiness{
			Verdict: channel.Now, Mode: thole.ModeTurnSteer, Attachment: a.ID, Epoch: a.Epoch,
			Reason: fmt.Sprintf("steerable, %s, %s/%s, process %s", j.Reason, now.Policy, now.Sandbox, a.Process),
		}, nil
	}
	if a.Active != nil {
		if err := c.Sessions.SawTurn(ctx, a.ID, nil); err != nil {
			return channel.Readiness{}, err
		}
	}
	how := "queue empty"
	if !l.queued {
		how = "guarded turn/start"
	}
	l.fit.Store(news)
	return channel.Readiness{
		Verdict: channel.Now, Mode: thole.ModeTurnStart, Attachment: a.ID, Epoch: a.Epoch,
		Reason: fmt.Sprintf("idle, %s, %s, %s/%s, process %s", how, j.Reason, now.Policy, now.Sandbox, a.Process),
	}, nil
}

func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) error {
	select {
	case <-time.After(d):
	case <-wake:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
