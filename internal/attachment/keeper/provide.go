package keeper

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/attachment"
)

// Epoch is the one that a server of this session would be started in: the first, or the
// next one after it was retired. CodeBusy: the session is in between.
func (k *Keeper) Epoch(ctx context.Context, id thole.AttachmentID) (int64, error) {
	a, err := k.cfg.Store.Attachment(ctx, id)
	switch {
	case err != nil:
		return 0, err
	case a == nil:
		return 1, nil
	case a.State == attachment.Retired:
		return a.Epoch + 1, nil
	}
	return 0, thole.Errorf(thole.CodeBusy, "session %s is %s", id, a.State)
}

// Provide starts the server that a delivery brings with it, under an id that the delivery
// chose and in the epoch that its barrier names, and holds it until nothing of its thread is
// under way. No foreground reaches it. A session of that id and epoch that lives is returned
// as it is; any other epoch is CodeConflict, so that no server ever takes the place of one
// that an attempt was recorded with.
func (k *Keeper) Provide(ctx context.Context, id thole.AttachmentID, epoch int64, o Open) (attachment.Attachment, error) {
	if err := o.check(); err != nil {
		return attachment.Attachment{}, err
	}
	if o.Kind != attachment.Owned || o.Thread == "" || o.Client != 0 || id == "" {
		return attachment.Attachment{}, thole.Errorf(thole.CodeInternal, "provide a server: it is of a thread and of no foreground")
	}
	now := k.now()
	a := attachment.Attachment{
		ID: id, User: o.User, Home: o.Home, Thread: o.Thread, Kind: attachment.Owned, Epoch: epoch, Dir: o.Dir, Program: o.Codex,
		Trust: o.Trust, Wish: o.Wish, State: attachment.Stale, Note: starting, Created: now, Updated: now, Version: 1,
	}
	have, err := k.cfg.Store.Attachment(ctx, id)
	if err != nil {
		return a, err
	}
	switch {
	case have == nil && epoch == 1:
	case have != nil && have.User == o.User && have.Home == o.Home && have.Thread == o.Thread && have.State == attachment.Retired && have.Epoch+1 == epoch:
		// What it was first seen to allow stays its cap.
		a.Created, a.Version, a.Cap, a.Current, a.Revision = have.Created, have.Version, have.Cap, have.Current, have.Revision
	case have != nil && have.Epoch == epoch && have.Usable():
		return *have, nil
	default:
		return a, thole.Errorf(thole.CodeConflict, "session %s cannot begin epoch %d", id, epoch)
	}
	if a.Address, err = k.place(a); err != nil {
		return a, err
	}
	k.busy.Store(id, true)
	defer k.busy.Delete(id)
	if have == nil {
		err = k.cfg.Store.InsertAttachment(ctx, &a)
	} else {
		var ok bool
		if ok, err = k.cfg.Store.UpdateAttachmentIf(ctx, &a); err == nil && !ok {
			err = thole.Errorf(thole.CodeConflict, "session %s was changed meanwhile", id)
		}
	}
	if err != nil {
		return a, err
	}
	return k.begin(ctx, a, o)
}
