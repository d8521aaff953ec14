package attachment

import (
	"fmt"
	"strings"

	thole "github.com/tholehq/thole"
)

// Judgement is what a session's permissions say of a delivery.
type Judgement struct {
	// Allowed now; otherwise Held says that only a human can let it pass, and
	// without it the delivery waits until the session is as it was.
	Allowed, Held bool
	Why           Objection // unless allowed
	Reason        string
}

// Objection is what stands against a delivery.
type Objection string

const (
	ByDrift       Objection = "drift"       // the session allows more than its cap
	ByPolicy      Objection = "policy"      // the result may need something
	ByPermissions Objection = "permissions" // the session allows something
)

// Judge decides whether a delivery with this policy may go into a session whose
// cap and present permissions are these.
//
// Settings given with a turn would stick to the user's session, so nothing is
// given: a session that now allows more than its cap gets nothing.
func Judge(trust Trust, limit, now PermissionSnapshot, policy thole.DeliveryPolicy) Judgement {
	var j Judgement
	effective := limit.Effective(now)
	if more := limit.Beyond(now); len(more) > 0 {
		j.Why, j.Reason = ByDrift, fmt.Sprintf("session_profile_mismatch: the session now allows more than when it was attached (%s)", strings.Join(more, ", "))
		return j
	}
	if trust == TrustedAll {
		j.Allowed, j.Reason = true, "trusted-all"
		return j
	}
	if o := policy.Objections(); len(o) > 0 {
		j.Held, j.Why, j.Reason = true, ByPolicy, "strict-safe: "+strings.Join(o, ", ")
		return j
	}
	if a := effective.allows(); len(a) > 0 {
		j.Held, j.Why, j.Reason = true, ByPermissions, "strict-safe: "+strings.Join(a, ", ")
		return j
	}
	j.Allowed, j.Reason = true, "strict-safe"
	return j
}

// Drift describes how the present differs from the cap: direction and dimensions.
func Drift(limit, now PermissionSnapshot) string {
	wider, tighter := limit.Beyond(now), now.Beyond(limit)
	var parts []string
	if len(wider) > 0 {
		parts = append(parts, "wider: "+strings.Join(wider, ", "))
	}
	if len(tighter) > 0 {
		parts = append(parts, "tighter: "+strings.Join(tighter, ", "))
	}
	return strings.Join(parts, "; ")
}
