package keeper

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/procid"
)

const (
	draining  = "its server is finishing"
	drainTime = 10 * time.Minute
)

// Leave says that the foreground of a session has ended.
func (k *Keeper) Leave(ctx context.Context, user thole.UserID, id thole.AttachmentID) (attachment.Attachment, error) {
	a, err := k.ByID(ctx, id)
	if err != nil || a.User != user {
		return attachment.Attachment{}, thole.Errorf(thole.CodeNotFound, "no session %s", id)
	}
	if a.State == attachment.Pending {
		return k.finish(ctx, a, false) // it made no thread: there is nothing to follow
	}
	if a, err = k.move(ctx, id, attachment.Detached, "the foreground has ended"); err != nil {
		return a, err
	}
	return k.tend(ctx, a)
}

// Resume takes up after a restart: waits for new threads go on.
func (k *Keeper) Resume(ctx context.Context) error {
	list, err := k.cfg.Store.Attachments(ctx, false)
	if err != nil {
		return err
	}
	for _, a := range list {
		if a, err = k.relabel(ctx, a); err != nil {
			return err
		}
		if a.State == attachment.Pending {
			k.awaitThread(a)
		}
	}
	return k.Sweep(ctx)
}

// relabel gives the row of an older version, which noted the launcher of its server,
// the server's own process: the one on our socket, in the session that the launcher
// leads. It is the same server, so the epoch stays.
func (k *Keeper) relabel(ctx context.Context, a attachment.Attachment) (attachment.Attachment, error) {
	if a.Kind != attachment.Owned || a.Process.Alive() != nil {
		return a, nil //nolint:nilerr // one that is gone is not the launcher of anything
	}
	leader := a.Process
	server, err := serverOf(ctx, a.Address, 0)
	if err != nil || server == leader || procid.SessionOf(server.PID) != leader.PID {
		return a, nil //nolint:nilerr // what cannot be shown to be the same stays as it is, and gets nothing
	}
	if err := note(filepath.Join(k.dir(a), launcherFile), leader); err != nil {
		return a, err
	}
	return k.change(ctx, a.ID, func(a *attachment.Attachment) (bool, error) {
		did := a.Process == leader
		if did {
			a.Process = server
		}
		return did, nil
	})
}

// Sweep brings every attachment to where its processes and its deliveries say it
// is. It may run at any time.
func (k *Keeper) Sweep(ctx context.Context) error {
	list, err := k.cfg.Store.Attachments(ctx, false)
	if err != nil {
		return err
	}
	for _, a := range list {
		if _, err := k.tend(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// tend moves one attachment on. A server of thole's is ended only when nothing of its
// thread is under way; what was accepted is followed first.
func (k *Keeper) tend(ctx context.Context, a attachment.Attachment) (attachment.Attachment, error) {
	if _, busy := k.busy.Load(a.ID); busy || a.State == attachment.Retired {
		return a, nil
	}
	if a.Process.Zero() {
		return k.bury(ctx, a, "it never began: the daemon died while it started the server")
	}
	var tracked, held bool
	if a.Thread != "" {
		var err error
		if tracked, held, err = k.cfg.Work(ctx, a.User, a.Home, a.Thread); err != nil {
			return a, err
		}
	}
	gone := a.Process.Alive()
	left := !a.Client.Zero() && a.Client.Alive() != nil
	spare := a.Kind == attachment.Owned && a.Client.Zero() && !tracked // a delivery brought it, and is over
	switch {
	case gone != nil && tracked:
		return k.move(ctx, a.ID, attachment.Stale, gone.Error())
	case gone != nil && held:
		return k.move(ctx, a.ID, attachment.Parked, "a held result waits for a human")
	case gone != nil:
		return k.bury(ctx, a, gone.Error())
	case a.State == attachment.Pending && (left || a.Note == draining):
		return k.finish(ctx, a, false)
	case a.State == attachment.Live && (left || spare):
		why := fmt.Sprintf("the foreground, process %d, is gone", a.Client.PID)
		if spare {
			why = "the delivery that it was started for is over"
		}
		var err error
		if a, err = k.move(ctx, a.ID, attachment.Detached, why); err != nil {
			return a, err
		}
		fallthrough
	case a.State == attachment.Detached || a.State == attachment.Parked:
		if !tracked {
			return k.finish(ctx, a, held)
		}
	}
	return a, nil
}

// finish lets go of a server that nothing needs. One of thole's is asked to drain, so
// that a turn the user left running comes to its end, and killed when it does not.
func (k *Keeper) finish(ctx context.Context, a attachment.Attachment, held bool) (attachment.Attachment, error) {
	switch {
	case a.Kind != attachment.Owned && held:
		return k.move(ctx, a.ID, attachment.Parked, "a held result waits for a human")
	case a.Kind != attachment.Owned:
		return k.bury(ctx, a, "its foreground has ended")
	case a.Note == draining && k.now().Sub(a.Updated) < drainTime:
		return a, nil
	case a.Note == draining:
		return a, k.end(ctx, a)
	}
	terminate(a)
	return k.change(ctx, a.ID, func(a *attachment.Attachment) (bool, error) {
		did := a.Note != draining && a.State != attachment.Retired
		a.Note = draining
		return did, nil
	})
}
