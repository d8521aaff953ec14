package keeper

import (
	"context"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/backoff"
	"github.com/tholehq/thole/internal/procid"
)

// Open asks for a session.
type Open struct {
	User   thole.UserID
	Home   string         // the Codex home
	Thread thole.ThreadID // "": the foreground will make one
	Dir    string
	Codex  string // the program
	Env    []string
	Client int // pid of the foreground
	Trust  attachment.Trust
	Wish   attachment.Wishes
	// Address names a server that is not ours. Server is its process, as the user
	// knows it; it is needed only where the transport does not report it.
	Kind    attachment.Kind
	Address string
	Server  int
}

func (o *Open) check() error {
	var err error
	if o.Wish, err = o.Wish.Check(); err != nil {
		return err
	}
	if o.Trust == "" {
		o.Trust = attachment.StrictSafe
	}
	switch {
	case o.Trust != attachment.StrictSafe && o.Trust != attachment.TrustedAll:
		return thole.Errorf(thole.CodeInvalid, "delivery policy %q is not strict-safe or trusted-all", o.Trust)
	case o.Home == "":
		return thole.Errorf(thole.CodeInvalid, "no Codex home")
	case o.Thread != "" && !thole.ValidUUID(string(o.Thread)):
		return thole.Errorf(thole.CodeInvalid, "invalid thread id %q", o.Thread)
	case o.Kind == attachment.Owned && o.Codex == "":
		return thole.Errorf(thole.CodeInvalid, "no codex program")
	case o.Kind != attachment.Owned && (o.Address == "" || o.Thread == ""):
		return thole.Errorf(thole.CodeInvalid, "a server that is not ours needs an address and a thread")
	}
	return nil
}

// Open starts or joins a server for a thread and holds it.
func (k *Keeper) Open(ctx context.Context, o Open) (attachment.Attachment, error) {
	if err := o.check(); err != nil {
		return attachment.Attachment{}, err
	}
	var server procid.Identity
	if o.Kind != attachment.Owned {
		var err error
		if server, err = serverOf(ctx, o.Address, o.Server); err != nil {
			return attachment.Attachment{}, err
		}
	}
	epoch, pinned := int64(1), (*attachment.Pin)(nil)
	if o.Thread != "" {
		old, err := k.cfg.Store.AttachmentOf(ctx, o.User, o.Home, o.Thread)
		if err != nil {
			return attachment.Attachment{}, err
		}
		if old != nil {
			if back, done, err := k.replace(ctx, *old, o, server); err != nil || done {
				return back, err
			}
		}
		last, err := k.cfg.Store.LastAttachment(ctx, o.User, o.Home, o.Thread)
		if err != nil {
			return attachment.Attachment{}, err
		}
		if last != nil {
			epoch, pinned = last.Epoch+1, last.Pinned
		}
	}
	now := k.now()
	a := attachment.Attachment{
		ID: thole.NewID[thole.AttachmentID](now), User: o.User, Home: o.Home, Thread: o.Thread, Kind: o.Kind, Address: o.Address,
		State: attachment.Live, Epoch: epoch, Process: server, Dir: o.Dir, Program: o.Codex, Trust: o.Trust, Wish: o.Wish, Pinned: pinned, Created: now, Updated: now, Version: 1,
	}
	if o.Client != 0 {
		client, err := identify(o.Client)
		if err != nil {
			return a, err
		}
		a.Client = client
	}
	if o.Kind == attachment.Owned {
		return k.start(ctx, a, o)
	}
	return a, k.cfg.Store.InsertAttachment(ctx, &a)
}

// starting is the note of a row whose server is not known yet: an intent. What was
// started for it is found by the socket that the row names.
const starting = "its server is being started"

// start makes a server of our own: the intent first, then the process, then the
// session. What does not come to its end is ended again, by us or by our successor.
func (k *Keeper) start(ctx context.Context, a attachment.Attachment, o Open) (attachment.Attachment, error) {
	var err error
	if a.Address, err = k.place(a); err != nil {
		return a, err
	}
	a.State, a.Note = attachment.Stale, starting
	k.busy.Store(a.ID, true)
	defer k.busy.Delete(a.ID)
	if err := k.cfg.Store.InsertAttachment(ctx, &a); err != nil {
		return a, err
	}
	begun, err := k.begin(ctx, a, o)
	if err == nil && begun.State == attachment.Pending {
		k.awaitThread(begun)
	}
	return begun, err
}

// begin starts the server of a row that is there, and ends what does not come to its end.
func (k *Keeper) begin(ctx context.Context, a attachment.Attachment, o Open) (attachment.Attachment, error) {
	server, err := k.launch(ctx, a, o)
	begun := a
	if err == nil {
		begun, err = k.change(ctx, a.ID, func(a *attachment.Attachment) (bool, error) {
			if a.State == attachment.Retired {
				return false, thole.Errorf(thole.CodeConflict, "the session was ended while it began")
			}
			a.State, a.Process, a.Note = attachment.Live, server, ""
			if a.Thread == "" {
				a.State = attachment.Pending
			}
			return true, nil
		})
	}
	if err != nil {
		a.Process = server
		if _, e := k.bury(context.WithoutCancel(ctx), a, "it never began: "+err.Error()); e != nil {
			k.cfg.Log.Error("a session that never began is not ended yet", "attachment", a.ID, "err", e)
		}
		return a, err
	}
	return begun, nil
}

// replace decides about the attachment a thread already has: it is joined again,
// retired so that a new one can be made, or in the way.
// server is the process of one that is not ours: another than before is a new epoch.
func (k *Keeper) replace(ctx context.Context, old attachment.Attachment, o Open, server procid.Identity) (attachment.Attachment, bool, error) {
	if _, busy := k.busy.Load(old.ID); busy {
		return old, false, thole.Errorf(thole.CodeBusy, "a session for thread %s is just being started", old.Thread).WithHint("try again in a moment")
	}
	alive := old.Process.Alive() == nil
	if alive && old.Client.Alive() == nil && old.Client.PID != o.Client {
		return old, false, thole.Errorf(thole.CodeBusy, "thread %s is open in another terminal, or leased by a plugin (process %d)", old.Thread, old.Client.PID)
	}
	tracked, held, err := k.cfg.Work(ctx, old.User, old.Home, old.Thread)
	if err != nil {
		return old, false, err
	}
	switch {
	case held:
		return old, false, thole.Errorf(thole.CodeHeld, "session_pending_manual_resolution: a result for thread %s waits for you", old.Thread).
			WithHint("thole batch inspect-head --source-thread-id %s", old.Thread)
	case tracked && !alive:
		return old, false, thole.Errorf(thole.CodeBusy, "a delivery to thread %s is still being settled", old.Thread).WithHint("try again in a moment")
	case alive && !server.Zero() && server != old.Process && tracked:
		return old, false, thole.Errorf(thole.CodeConflict, "the thread's session is on process %d and has a delivery under way, and process %d serves %s", old.Process.PID, server.PID, o.Address).
			WithHint("try again when it has ended: thole codex sessions inspect %s", old.ID)
	case alive && !server.Zero() && server != old.Process:
	case old.Wish != o.Wish || old.Trust != o.Trust || old.Kind != o.Kind:
		if tracked {
			return old, false, thole.Errorf(thole.CodeConflict, "session_profile_mismatch: the thread's session has another profile and a delivery under way").
				WithHint("thole codex sessions inspect %s", old.ID)
		}
	case alive:
		var client procid.Identity
		if o.Client != 0 {
			if client, err = identify(o.Client); err != nil {
				return old, false, err
			}
		}
		a, err := k.change(ctx, old.ID, func(a *attachment.Attachment) (bool, error) {
			a.State, a.Client, a.Note = attachment.Live, client, ""
			return true, nil
		})
		return a, true, err
	}
	if alive && old.Kind == attachment.Owned {
		if err := k.drain(ctx, old); err != nil {
			return old, false, err
		}
	}
	_, err = k.bury(ctx, old, "replaced by a new session")
	return old, false, err
}

// move changes the state; repeating it changes nothing. Retired is for ever.
func (k *Keeper) move(ctx context.Context, id thole.AttachmentID, to attachment.State, why string) (attachment.Attachment, error) {
	return k.change(ctx, id, func(a *attachment.Attachment) (bool, error) {
		if a.State == to || a.State == attachment.Retired {
			return false, nil
		}
		a.State, a.Note = to, why
		return true, nil
	})
}

// awaitThread binds a pending attachment when its foreground makes a thread.
func (k *Keeper) awaitThread(a attachment.Attachment) {
	k.wg.Go(func() {
		for k.ctx.Err() == nil && a.Process.Alive() == nil {
			thread, err := k.cfg.NewThread(k.ctx, a)
			if err == nil {
				if _, err = k.bind(k.ctx, a.ID, thread); err == nil {
					return
				}
			}
			if k.ctx.Err() == nil {
				k.cfg.Log.Warn("cannot bind a new thread yet", "attachment", a.ID, "err", err)
			}
			_ = backoff.Sleep(k.ctx, time.Second)
		}
	})
}
