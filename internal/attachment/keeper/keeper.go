// Package keeper holds app-servers for attachments: it starts and ends those that
// are ours, proves which process serves an address, and moves attachments to where
// their processes and deliveries say they are. It talks to no server but to read
// what a dead server of thole's left; the channel does. It refuses two attachments that
// are not retired for one thread.
package keeper

import (
	"context"
	"log/slog"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/attachment"
)

// Config makes a Keeper.
type Config struct {
	Store attachment.Store
	// Dir keeps the sockets and logs of servers we own.
	Dir string
	// Work says what deliveries of a thread need its session: an attempt under
	// way, or a held batch that waits for a human.
	Work func(ctx context.Context, user thole.UserID, home string, thread thole.ThreadID) (tracked, held bool, err error)
	// NewThread waits on a server until its foreground made a thread, and returns
	// it. It ends with ctx.
	NewThread func(ctx context.Context, a attachment.Attachment) (thole.ThreadID, error)
	// Drifted is called when a session's permissions move away from its cap, or back.
	Drifted func(ctx context.Context, a attachment.Attachment, was, now string) error
	Now     func() time.Time
	Log     *slog.Logger
}

// Keeper is the only writer of attachments.
type Keeper struct {
	cfg  Config
	ctx  context.Context // of waits for new threads
	stop context.CancelFunc
	wg   sync.WaitGroup
	busy sync.Map // ids of attachments whose servers this keeper is starting

	onStep func(string) // called at each step of a start, by tests
}

func (k *Keeper) step(name string) {
	if k.onStep != nil {
		k.onStep(name)
	}
}

// New makes a keeper. Close ends its waits and leaves the servers running: a
// successor finds them by their identity.
func New(c Config) *Keeper {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	k := &Keeper{cfg: c}
	k.ctx, k.stop = context.WithCancel(context.Background())
	return k
}

// Close waits until nothing of the keeper runs.
func (k *Keeper) Close() {
	k.stop()
	k.wg.Wait()
}

func (k *Keeper) now() time.Time { return k.cfg.Now().UTC().Truncate(time.Millisecond) }

// change applies fn to the newest row until it sticks. fn returns false to leave
// the row as it is.
func (k *Keeper) change(ctx context.Context, id thole.AttachmentID, fn func(*attachment.Attachment) (bool, error)) (attachment.Attachment, error) {
	for {
		a, err := k.cfg.Store.Attachment(ctx, id)
		if err != nil {
			return attachment.Attachment{}, err
		}
		if a == nil {
			return attachment.Attachment{}, thole.Errorf(thole.CodeNotFound, "no session %s", id)
		}
		if did, err := fn(a); err != nil || !did {
			return *a, err
		}
		a.Updated = k.now()
		if ok, err := k.cfg.Store.UpdateAttachmentIf(ctx, a); err != nil || ok {
			return *a, err
		}
	}
}

// Of returns the attachment of a thread that is not retired.
func (k *Keeper) Of(ctx context.Context, user thole.UserID, home string, thread thole.ThreadID) (attachment.Attachment, error) {
	a, err := k.cfg.Store.AttachmentOf(ctx, user, home, thread)
	if err != nil {
		return attachment.Attachment{}, err
	}
	if a == nil {
		return attachment.Attachment{}, thole.Errorf(thole.CodeNotFound, "no session holds thread %s", thread)
	}
	return *a, nil
}

// ByID returns an attachment in any state.
func (k *Keeper) ByID(ctx context.Context, id thole.AttachmentID) (attachment.Attachment, error) {
	a, err := k.cfg.Store.Attachment(ctx, id)
	if err != nil {
		return attachment.Attachment{}, err
	}
	if a == nil {
		return attachment.Attachment{}, thole.Errorf(thole.CodeNotFound, "no session %s", id)
	}
	return *a, nil
}

// List returns attachments, newest first.
func (k *Keeper) List(ctx context.Context, all bool) ([]attachment.Attachment, error) {
	return k.cfg.Store.Attachments(ctx, all)
}

// Saw records the permissions a session was seen with. The first ones become its
// cap and never change; each difference is reported before it is kept, so that none
// stays untold.
func (k *Keeper) Saw(ctx context.Context, id thole.AttachmentID, now attachment.PermissionSnapshot) (attachment.PermissionSnapshot, error) {
	a, err := k.ByID(ctx, id)
	if err != nil {
		return attachment.PermissionSnapshot{}, err
	}
	if a.Current != nil && a.Current.Equal(now) {
		return *a.Cap, nil
	}
	was := ""
	if a.Cap == nil {
		limit := a.Wish.Bound(now)
		a.Cap = &limit
	} else if a.Current != nil {
		was = attachment.Drift(*a.Cap, *a.Current)
	}
	a.Current = &now
	if d := attachment.Drift(*a.Cap, now); d != was {
		k.cfg.Log.Warn("permissions of a session changed", "thread", a.Thread, "attachment", a.ID, "drift", d, "was", was)
		if k.cfg.Drifted != nil {
			if err := k.cfg.Drifted(ctx, a, was, d); err != nil {
				return attachment.PermissionSnapshot{}, err
			}
		}
	}
	limit := a.Cap
	a, err = k.change(ctx, id, func(a *attachment.Attachment) (bool, error) {
		if a.Cap == nil {
			a.Cap = limit
		}
		a.Current = &now
		a.Revision++
		return true, nil
	})
	if err != nil {
		return attachment.PermissionSnapshot{}, err
	}
	return *a.Cap, nil
}

// bind gives a pending attachment the thread its foreground made.
func (k *Keeper) bind(ctx context.Context, id thole.AttachmentID, thread thole.ThreadID) (attachment.Attachment, error) {
	a, err := k.ByID(ctx, id)
	if err != nil {
		return a, err
	}
	last, err := k.cfg.Store.LastAttachment(ctx, a.User, a.Home, thread)
	if err != nil {
		return a, err
	}
	epoch := int64(1)
	if last != nil {
		epoch = last.Epoch + 1
	}
	return k.change(ctx, id, func(a *attachment.Attachment) (bool, error) {
		if a.State != attachment.Pending {
			return false, nil
		}
		a.State, a.Thread, a.Epoch = attachment.Live, thread, epoch
		return true, nil
	})
}

// Staying says why the daemon must not leave, "" if it may.
func (k *Keeper) Staying(ctx context.Context) string {
	list, err := k.cfg.Store.Attachments(ctx, false)
	if err != nil { // unknown is not no
		return "the Codex sessions cannot be read: " + err.Error()
	}
	for i := range list {
		if s := list[i].State; s == attachment.Live || s == attachment.Pending {
			return "a Codex session is open"
		}
	}
	return ""
}

// SawTurn records the running turn of a session, nil that none runs.
func (k *Keeper) SawTurn(ctx context.Context, id thole.AttachmentID, t *attachment.ActiveTurn) error {
	_, err := k.change(ctx, id, func(a *attachment.Attachment) (bool, error) {
		if a.Active.Same(t) {
			return false, nil
		}
		a.Active = t
		return true, nil
	})
	return err
}

// Pin records that a delivery is about to change a thread's settings, before it
// does; nil that they are the user's own again.
func (k *Keeper) Pin(ctx context.Context, id thole.AttachmentID, p *attachment.Pin) error {
	_, err := k.change(ctx, id, func(a *attachment.Attachment) (bool, error) {
		did := p != nil || a.Pinned != nil
		a.Pinned = p
		return did, nil
	})
	return err
}
