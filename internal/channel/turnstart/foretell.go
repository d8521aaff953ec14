package turnstart

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/channel"
)

// Foretell implements channel.Foreteller: what the session was last seen to allow, and
// whether its process lives. No server is asked, so a silent one delays nobody.
func (c *Channel) Foretell(ctx context.Context, q channel.Query) (channel.Readiness, error) {
	a, err := c.Sessions.Of(ctx, q.User, q.Endpoint, q.Thread)
	switch {
	case thole.CodeOf(err) == thole.CodeNotFound && q.Brings.Owned():
		return c.brought(ctx, q)
	case thole.CodeOf(err) == thole.CodeNotFound:
		return noSession(q), nil
	case err != nil:
		return channel.Readiness{}, err
	case !a.Usable():
		return notNow(channel.ReasonAway, 0, "the session is %s", a.State), nil
	}
	if err := a.Process.Alive(); err != nil {
		return notNow(channel.ReasonServer, 0, "%v", err), nil
	}
	if a.Cap == nil || a.Current == nil {
		// What the user said at the start still decides about the result itself.
		if o := q.Policy.Objections(); a.Trust == attachment.StrictSafe && len(o) > 0 {
			_, against := judge(a, attachment.PermissionSnapshot{}, attachment.PermissionSnapshot{}, q)
			return *against, nil
		}
		return notNow(channel.ReasonUnseen, 0, "what the session allows was not seen yet"), nil
	}
	if _, against := judge(a, *a.Cap, *a.Current, q); against != nil {
		return *against, nil
	}
	return channel.Readiness{Verdict: channel.Now, Mode: thole.ModeTurnStart, Attachment: a.ID, Epoch: a.Epoch}, nil
}

func noSession(q channel.Query) channel.Readiness {
	return notNow(channel.ReasonNoSession, 0, "no session holds the thread; start one with: thole codex run --bind-thread-id %s", q.Thread)
}

// judge says what a session's permissions have against a delivery, nil if nothing.
func judge(a attachment.Attachment, limit, now attachment.PermissionSnapshot, q channel.Query) (attachment.Judgement, *channel.Readiness) {
	if a.Wish.Pin {
		now = limit.Effective(now)
	}
	trust := a.Trust
	if q.Released {
		trust = attachment.TrustedAll
	}
	j := attachment.Judge(trust, limit, now, q.Policy)
	why := map[attachment.Objection]channel.Reason{
		attachment.ByDrift: channel.ReasonDrift, attachment.ByPolicy: channel.ReasonPolicy, attachment.ByPermissions: channel.ReasonPermissions,
	}[j.Why]
	switch {
	case j.Held:
		return j, &channel.Readiness{Verdict: channel.Never, Why: why, Reason: j.Reason}
	case !j.Allowed:
		r := notNow(why, cannotPause, "%s", j.Reason)
		return j, &r
	}
	return j, nil
}
