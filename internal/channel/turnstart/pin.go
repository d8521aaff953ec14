package turnstart

import (
	"context"
	"fmt"
	"sync"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/attachment"
)

// pin tightens a session that allows more than its cap, for one delivery. What it
// was is durable before anything changes, so that a daemon that follows the delivery to
// its end puts it back.
func (c *Channel) pin(ctx context.Context, l *link, a attachment.Attachment) error {
	if !a.Wish.Pin {
		return nil
	}
	settings, now, err := l.permissions(ctx)
	if err != nil {
		return err
	}
	if a.Cap == nil {
		return fmt.Errorf("the session has no cap yet")
	}
	if len(a.Cap.Beyond(now)) == 0 {
		return nil
	}
	tight, err := a.Cap.Tighten(settings, now)
	if err != nil {
		return err
	}
	defer c.lockPin(a.ID)()
	p := attachment.Pin{Before: settings, During: tight, Epoch: a.Epoch}
	if err := c.Sessions.Pin(ctx, a.ID, &p); err != nil {
		return err
	}
	a.Pinned = &p
	err = l.call(ctx, "thread/settings/update", tight.Update(), nil)
	if err == nil {
		err = c.within(ctx, l, *a.Cap)
	}
	if err != nil {
		if e := c.unpin(ctx, l, a); e != nil {
			err = fmt.Errorf("%w, and the settings could not be put back yet: %w", err, e)
		}
		return fmt.Errorf("pin the session's permissions: %w", err)
	}
	return nil
}

// lockPin serializes pinning of one session; a server that is silent meanwhile delays
// no other's.
func (c *Channel) lockPin(id thole.AttachmentID) (unlock func()) {
	mu, _ := c.pins.LoadOrStore(id, new(sync.Mutex))
	mu.(*sync.Mutex).Lock() //nolint:forcetypeassert // nothing else is stored
	return mu.(*sync.Mutex).Unlock
}

// within proves that a session allows nothing beyond a cap.
func (c *Channel) within(ctx context.Context, l *link, limit attachment.PermissionSnapshot) error {
	_, now, err := l.permissions(ctx)
	if err == nil && len(limit.Beyond(now)) > 0 {
		err = fmt.Errorf("the session still allows more than its cap: %v", limit.Beyond(now))
	}
	return err
}

// unpin gives a user's settings back. Settings that are no longer the pinned ones
// were chosen meanwhile, and stay.
func (c *Channel) unpin(ctx context.Context, l *link, a attachment.Attachment) error {
	if a.Pinned == nil {
		return nil
	}
	_, now, err := l.permissions(ctx)
	if err != nil {
		return err
	}
	pinned, err := attachment.Read(a.Pinned.During)
	if err != nil {
		return err
	}
	if now.Equal(pinned) {
		if err := l.call(ctx, "thread/settings/update", a.Pinned.Before.Update(), nil); err != nil {
			return err
		}
	}
	return c.Sessions.Pin(ctx, a.ID, nil)
}

// release puts back what the delivery of an attachment pinned, if anything.
func (c *Channel) release(ctx context.Context, l *link, a attachment.Attachment) error {
	if !a.Wish.Pin {
		return nil
	}
	a, err := c.Sessions.ByID(ctx, a.ID)
	if err != nil {
		return err
	}
	return c.unpin(ctx, l, a)
}

// PutBack gives a user's settings back that a delivery pinned which nobody follows
// any more: its observation ended before its turn did, or its server died. tracked
// says whether a daemon does. A turn that still runs keeps its pin until it ends.
func (c *Channel) PutBack(ctx context.Context, id thole.AttachmentID, tracked func(attachment.Attachment) (bool, error)) error {
	// A delivery has passed its barrier, and so tracked, before it pins.
	defer c.lockPin(id)()
	a, err := c.Sessions.ByID(ctx, id)
	if err != nil || a.Pinned == nil || a.Thread == "" || a.Process.Alive() != nil {
		return err
	}
	if busy, err := tracked(a); err != nil || busy {
		return err
	}
	l, err := c.connect(ctx, a)
	if err != nil {
		return err
	}
	th, err := l.status(ctx)
	if err != nil || !th.idle() {
		return err
	}
	return c.unpin(ctx, l, a)
}
