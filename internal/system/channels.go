package system

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/attachment/keeper"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/channel/message"
	"github.com/tholehq/thole/internal/channel/ownthread"
	"github.com/tholehq/thole/internal/channel/turnstart"
	"github.com/tholehq/thole/internal/channel/turnsteer"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/thread"
)

// channels are the ways by which this process reaches threads.
type channels struct {
	keeper *keeper.Keeper
	codex  *turnstart.Channel
	own    *ownthread.Channel
	work   func(ctx context.Context, user thole.UserID, home string, id thole.ThreadID) (tracked, held bool, err error)
	log    *slog.Logger

	stopSweep context.CancelFunc
	swept     chan struct{}
}

// sweepSessions is how often sessions are compared with their processes.
const sweepSessions = 5 * time.Second

func newChannels(cfg *config.Config, db *store.DB, d *deliveries, threads *thread.Machine, log *slog.Logger) *channels {
	c := &channels{own: &ownthread.Channel{Threads: threads, Home: cfg.Home, Gate: gate(cfg.Delivery.Steer), Egress: cfg.Egress.Policy}, work: d.work, log: log}
	c.keeper = keeper.New(keeper.Config{
		Store: db.Attachments(), Dir: filepath.Join(cfg.Home, "sessions"), Work: d.work, NewThread: turnstart.NewThread, Drifted: d.drifted, Log: log,
	})
	c.codex = turnstart.New(c.keeper, log)
	c.codex.Gate = gate(cfg.Delivery.Steer)
	return c
}

func (c *channels) byTarget() map[thole.Target]channel.Channel {
	return map[thole.Target]channel.Channel{thole.TargetThole: c.own, thole.TargetCLI: c.codex}
}

func (c *channels) methods() map[string]daemon.Method {
	s := &daemon.Sessions{Keeper: c.keeper, Probe: func(ctx context.Context, a attachment.Attachment) string {
		r, err := c.codex.Probe(ctx, channel.Query{User: a.User, Endpoint: a.Home, Thread: a.Thread, Policy: thole.DeliveryPolicy{ReadOnly: true}})
		switch {
		case err != nil:
			return err.Error()
		case r.Verdict != channel.Now:
			return r.Reason
		}
		return ""
	}}
	return s.Methods()
}

func (c *channels) start(ctx context.Context) error {
	if err := c.keeper.Resume(ctx); err != nil {
		return err
	}
	ctx, c.stopSweep = context.WithCancel(ctx)
	c.swept = make(chan struct{})
	go func() {
		defer close(c.swept)
		t := time.NewTicker(sweepSessions)
		defer t.Stop()
		c.putBack(ctx)
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
			if err := c.keeper.Sweep(ctx); err != nil && ctx.Err() == nil {
				c.log.Error("sweep of sessions failed", "err", err)
			}
			c.putBack(ctx)
			c.follow(ctx)
		}
	}()
	return nil
}

// gate opens steering for the classes of the configuration.
func gate(classes []string) turnsteer.Gate {
	var risks []turnsteer.Risk
	for _, c := range classes {
		risks = append(risks, turnsteer.Risk(c))
	}
	return turnsteer.OpenFor(risks...)
}

// follow sees the turns of sessions from their start on, where results may go into them.
func (c *channels) follow(ctx context.Context) {
	if !c.codex.Gate.Open() {
		return
	}
	open, err := c.keeper.List(ctx, false)
	ctx, cancel := context.WithTimeout(ctx, sweepSessions/2) // a silent server is looked for again
	defer cancel()
	var wg sync.WaitGroup
	for _, a := range open {
		wg.Go(func() {
			if e := c.codex.Follow(ctx, a); e != nil && ctx.Err() == nil {
				c.log.Debug("a session cannot be followed yet", "thread", a.Thread, "err", e)
			}
		})
	}
	wg.Wait()
	if err != nil && ctx.Err() == nil {
		c.log.Warn("sessions cannot be listed", "err", err)
	}
}

// putBack returns settings that a delivery left pinned.
func (c *channels) putBack(ctx context.Context) {
	open, err := c.keeper.List(ctx, false)
	for _, a := range open {
		if a.Pinned == nil {
			continue
		}
		err = errors.Join(err, c.codex.PutBack(ctx, a.ID, func(a attachment.Attachment) (bool, error) {
			tracked, _, err := c.work(ctx, a.User, a.Home, a.Thread)
			return tracked, err
		}))
	}
	if err != nil && ctx.Err() == nil {
		c.log.Warn("pinned settings are not put back yet", "err", err)
	}
}

// stop leaves the servers of open terminals running for the next owner of the
// home; those that nobody needs are ended now, because nobody may come.
func (c *channels) stop(ctx context.Context) error {
	c.stopSweep()
	<-c.swept
	c.codex.Close()
	c.keeper.Close()
	ctx, cancel := context.WithTimeout(ctx, sweepSessions)
	defer cancel()
	return c.keeper.Sweep(ctx)
}

// messages writes what receiving turns read, in the words of a file if one is
// named.
func messages(file string, limit int) (*message.Writer, error) {
	text := ""
	if file != "" {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, thole.Errorf(thole.CodeInvalid, "delivery.template: %w", err)
		}
		text = string(b)
	}
	w, err := message.New(text, limit)
	if err != nil {
		return nil, thole.Errorf(thole.CodeInvalid, "delivery.template %s, delivery.message_bytes %d: %w", file, limit, err).
			WithHint("correct the file or the number, or leave both out")
	}
	return w, nil
}

// limits are the shipped numbers with what the configuration says.
func limits(c config.Delivery) delivery.Limits {
	l := delivery.DefaultLimits()
	l.MaxJobs, l.MaxBytes = int64(c.MaxJobs), c.MaxBytes
	l.WaitWindow, l.MinInterval, l.Observation = c.WaitWindow, c.MinInterval, c.ObservationWindow
	return l
}

// drifted puts a change of a session's permissions into its thread's ledger.
func (d *deliveries) drifted(ctx context.Context, a attachment.Attachment, was, now string) error {
	owner := thole.DefaultOwner
	owner.User = a.User
	if now == "" {
		now = "none"
	}
	effective := a.Cap.Effective(*a.Current)
	return d.machine.Note(ctx, thole.SystemActor, owner, delivery.Address{User: a.User, Endpoint: a.Home, Thread: a.Thread}, "session.drift", map[string]string{
		"drift": now, "was": was, "attachment": string(a.ID), "startup": a.Cap.String(), "current": a.Current.String(), "effective": effective.String(),
	})
}

// work says what of a thread's deliveries needs its session.
func (d *deliveries) work(ctx context.Context, user thole.UserID, home string, id thole.ThreadID) (tracked, held bool, err error) {
	a := delivery.Address{User: user, Endpoint: home, Thread: id}
	v, err := d.machine.InspectHead(ctx, thole.Actor{User: user, Via: "system"}, a.LaneID())
	if thole.CodeOf(err) == thole.CodeNotFound {
		return false, false, nil
	}
	for i := range v.Attempts {
		tracked = tracked || v.Attempts[i].Tracked()
	}
	return tracked, err == nil && v.Batch.Replay == thole.ReplayManual, err
}
