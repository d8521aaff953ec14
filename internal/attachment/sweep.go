package attachment

import (
	"context"
	"fmt"
	"syscall"
	"time"

	thole "github.com/tholehq/thole"
)

const (
	draining  = "its server is finishing"
	drainTime = 10 * time.Minute
)

// Leave says that the foreground of a session has ended.
func (k *Keeper) Leave(ctx context.Context, user thole.UserID, id thole.AttachmentID) (Attachment, error) {
	a, err := k.ByID(ctx, id)
	if err != nil || a.User != user {
		return Attachment{}, thole.Errorf(thole.CodeNotFound, "no session %s", id)
	}
	if a, err = k.move(ctx, id, Detached, "the foreground has ended"); err != nil {
		return a, err
	}
	return k.tend(ctx, a)
}

// Resume takes up after a restart: waits for new threads go on.
func (k *Keeper) Resume(ctx context.Context) error {
	list, err := k.cfg.Store.Attachments(ctx, false)
	for _, a := range list {
		if a.State == Pending {
			k.awaitThread(a)
		}
	}
	if err != nil {
		return err
	}
	return k.Sweep(ctx)
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

// tend moves one attachment on. A server of ours is ended only when nothing of its
// thread is under way; what was accepted is followed first.
func (k *Keeper) tend(ctx context.Context, a Attachment) (Attachment, error) {
	if a.State == Retired {
		return a, nil
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
	switch {
	case gone != nil && tracked:
		return k.move(ctx, a.ID, Stale, gone.Error())
	case gone != nil && held:
		return k.move(ctx, a.ID, Parked, "a held result waits for a human")
	case gone != nil:
		k.clear(a)
		return k.retire(ctx, a.ID, gone.Error())
	case a.State == Live && left || a.State == Pending && left:
		var err error
		if a, err = k.move(ctx, a.ID, Detached, fmt.Sprintf("the foreground, process %d, is gone", a.Client.PID)); err != nil {
			return a, err
		}
		fallthrough
	case a.State == Detached || a.State == Parked:
		if !tracked {
			return k.finish(ctx, a, held)
		}
	}
	return a, nil
}

// finish lets go of a server that nothing needs. One of ours is told to drain, so
// that a turn the user left running comes to its end, and killed when it does not.
func (k *Keeper) finish(ctx context.Context, a Attachment, held bool) (Attachment, error) {
	switch {
	case a.Kind != Owned && held:
		return k.move(ctx, a.ID, Parked, "a held result waits for a human")
	case a.Kind != Owned:
		return k.retire(ctx, a.ID, "its foreground has ended")
	case a.Note == draining && k.now().Sub(a.Updated) < drainTime:
		return a, nil
	case a.Note == draining:
		signal(a, syscall.SIGKILL)
		return a, nil
	}
	signal(a, syscall.SIGTERM)
	return k.change(ctx, a.ID, func(a *Attachment) (bool, error) {
		did := a.Note != draining && a.State != Retired
		a.Note = draining
		return did, nil
	})
}
