package turnstart

import (
	"context"
	"os"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/attachment/keeper"
	"github.com/tholehq/thole/internal/channel"
)

// brought says whether a delivery that brings its server would be made: what it may need is
// judged by what is known before there is one. Nothing is started.
func (c *Channel) brought(ctx context.Context, q channel.Query) (channel.Readiness, error) {
	a := attachment.Attachment{ID: q.Brings.Session, Trust: attachment.Trust(q.Brings.Trust)}
	if _, against := judge(a, attachment.PermissionSnapshot{}, attachment.PermissionSnapshot{}, q); against != nil {
		return *against, nil
	}
	epoch, err := c.Sessions.Epoch(ctx, a.ID)
	if thole.CodeOf(err) == thole.CodeBusy {
		return notNow(channel.ReasonAway, 0, "%v", err), nil
	}
	if err != nil {
		return channel.Readiness{}, err
	}
	return channel.Readiness{
		Verdict: channel.Now, Mode: thole.ModeTurnStart, Attachment: a.ID, Epoch: epoch,
		Reason: "no session holds the thread; its own server is started after the barrier: " + q.Brings.Program,
	}, nil
}

// provide starts the server that a proposal brings, and asks it what every other server is
// asked before the barrier. refused is nil if the proposal may be sent to it.
func (c *Channel) provide(ctx context.Context, p channel.Proposal) (a attachment.Attachment, refused *channel.Answer) {
	t := p.Asked.Brings
	no := func(err error, hold channel.Reason) (attachment.Attachment, *channel.Answer) {
		answer := channel.Unsent(err)
		answer.Hold = hold
		return a, &answer
	}
	a, err := c.Sessions.Provide(ctx, p.Attachment, p.Epoch, keeper.Open{
		User: p.User, Home: p.Asked.Endpoint, Thread: p.Thread, Kind: attachment.Owned, Codex: t.Program, Dir: t.Dir, Trust: attachment.Trust(t.Trust), Env: os.Environ(),
		Wish: attachment.Wishes{Approval: attachment.Wish(t.Approval), Network: attachment.Wish(t.Network), Write: attachment.Wish(t.Write)},
	})
	switch {
	case ctx.Err() != nil, thole.CodeOf(err) == thole.CodeConflict, thole.CodeOf(err) == thole.CodeBusy:
		return no(err, "") // another session has the thread, or the daemon stops
	case err != nil:
		return no(err, channel.ReasonNoServer)
	}
	q := p.Asked
	q.Brings = nil
	r, err := c.Probe(ctx, q)
	switch {
	case err != nil:
		return no(err, "")
	case r.Verdict == channel.Never:
		return no(thole.Errorf(thole.CodeHeld, "%s", r.Reason), r.Why)
	case r.Why == channel.ReasonUnsupported: // and so it would be the next time
		return no(thole.Errorf(thole.CodeUnsupported, "%s", r.Reason), channel.ReasonNoServer)
	case r.Verdict != channel.Now || r.Mode != thole.ModeTurnStart || r.Attachment != p.Attachment || r.Epoch != p.Epoch:
		return no(thole.Errorf(thole.CodeBusy, "%s", r.Reason), "")
	}
	return a, nil
}

// unbegun reports a proposal whose own server never ran in the epoch of its barrier: then
// nothing was sent, and nobody can send it any more. a is nil where there is no session.
func unbegun(w channel.Watch, a *attachment.Attachment) bool {
	b := w.Asked.Brings
	if !b.Owned() || b.Session != w.Attachment || w.Turn != "" {
		return false
	}
	if a == nil {
		return true
	}
	return a.State == attachment.Retired && (a.Epoch < w.Epoch || a.Epoch == w.Epoch && a.Process.Zero())
}
