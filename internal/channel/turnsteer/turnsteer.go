// Package turnsteer decides whether a delivery may be steered into a running turn,
// and how: the contract such a delivery has to meet, whichever channel sends it.
//
// The gate is closed unless a person opened it for a class of risk. With it
// closed, or with any proof missing, stale or unknown, the answer is to wait until
// the thread is idle. Steering by text cuts off the answer that is being written,
// so that even an eligible one costs the user something.
package turnsteer

import (
	"fmt"
	"slices"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/attachment"
)

// fresh is how old the view of a running turn may be.
const fresh = 2 * time.Second

// Gate allows steering into turns of some classes of risk. Its zero value is closed.
type Gate struct{ classes []Risk }

// OpenFor opens the gate for the classes that a person named.
func OpenFor(classes ...Risk) Gate { return Gate{classes: classes} }

// Open reports whether anything may be steered at all.
func (g Gate) Open() bool { return len(g.classes) > 0 }

// Risks are the classes that a gate can be opened for.
func Risks() []Risk { return []Risk{LowRisk} }

// Kind of a running turn.
type Kind string

const (
	Regular    Kind = "regular"
	Compaction Kind = "compact"
	Review     Kind = "review"
)

// Risk of a running turn.
type Risk string

const (
	LowRisk     Risk = "read_only_low_risk" // the only one that may be steered
	HighRisk    Risk = "not_low_risk"
	RiskUnknown Risk = "unknown"
)

// Need is what is known of one dimension; the zero value is unknown.
type Need string

const (
	Needed    Need = "true"
	NotNeeded Need = "false"
)

// Active is the running turn of a thread as one stream proved it.
type Active struct {
	Thread     thole.ThreadID
	Attachment thole.AttachmentID
	Epoch      int64
	Turn       thole.TurnID // active_turn_id
	Kind       Kind         // active_turn_kind
	Approval   Need         // active_turn_requires_approval
	Network    Need         // active_turn_requires_network
	Write      Need         // active_turn_requires_write_access
	Steerable  bool         // active_turn_steerable
	Others     int          // further turns that run in the thread
	At         time.Time
}

// View is the durable form of what was seen.
func (a *Active) View() *attachment.ActiveTurn {
	return &attachment.ActiveTurn{
		Turn: string(a.Turn), Kind: string(a.Kind), Approval: string(a.Approval), Network: string(a.Network), Write: string(a.Write),
		Risk: string(a.Risk()), Steerable: a.Steerable, Epoch: a.Epoch, At: a.At,
	}
}

// KindOf is the kind of a turn by its items: a message of a user opens a regular one.
func KindOf(items []string) Kind {
	switch {
	case slices.Contains(items, "enteredReviewMode"):
		return Review
	case slices.Contains(items, "contextCompaction"):
		return Compaction
	case len(items) > 0 && items[0] == "userMessage":
		return Regular
	}
	return ""
}

// Evidence is what a turn was seen doing.
type Evidence struct {
	Permissions *attachment.PermissionSnapshot // nil: not known
	Items       []string                       // kinds of its items
	Flags       []string                       // activeFlags: waitingOnApproval, waitingOnUserInput
	Asks        int                            // pending server requests
	Complete    bool                           // every item since the turn's start was seen
}

// quiet are the items that a turn can have without touching anything.
var quiet = map[string]bool{"userMessage": true, "agentMessage": true, "reasoning": true, "plan": true}

// Classify derives a turn's needs: it needs what its settings would let it do, or
// what it was seen doing. Without the whole view they stay unknown.
func Classify(a Active, e Evidence) Active {
	if e.Permissions == nil || !e.Complete {
		a.Approval, a.Network, a.Write = "", "", ""
		return a
	}
	acts := false
	for _, kind := range e.Items {
		acts = acts || !quiet[kind]
	}
	need := func(may bool) Need {
		if may || acts {
			return Needed
		}
		return NotNeeded
	}
	a.Approval = need(e.Permissions.Approval || e.Asks > 0 || len(e.Flags) > 0)
	a.Network, a.Write = need(e.Permissions.Network), need(e.Permissions.Write)
	return a
}

// Risk is active_turn_risk_class.
func (a Active) Risk() Risk {
	for _, n := range []Need{a.Approval, a.Network, a.Write} {
		switch n {
		case Needed:
			return HighRisk
		case NotNeeded:
		default:
			return RiskUnknown
		}
	}
	return LowRisk
}

// Capability is what was proven of an app-server for the present epoch.
type Capability struct {
	Epoch       int64
	SameTurn    bool // the answer names the running turn
	Reconciles  bool // the marker is found in exactly that turn
	Outcomes    bool // completed, failed, interrupted and replaced are distinguished, by turnend's rules
	Ordered     bool // steers of one thread cannot overtake each other
	NoExtraTurn bool // a live try started no turn and ended none early
}

// Presumed is what a server has after a trial proved all of it. Eligible is asked with it
// before that, to make a trial only where it is worth its cost.
func Presumed(epoch int64) Capability {
	return Capability{Epoch: epoch, SameTurn: true, Reconciles: true, Outcomes: true, Ordered: true, NoExtraTurn: true}
}

// Validated reports capability_turn_steer.
func (c Capability) Validated(epoch int64) bool {
	return c.Epoch == epoch && c.SameTurn && c.Reconciles && c.Outcomes && c.Ordered && c.NoExtraTurn
}

// Request is a delivery that could be steered.
type Request struct {
	Thread       thole.ThreadID
	Attachment   thole.AttachmentID
	Epoch        int64
	Policy       thole.DeliveryPolicy
	ArtifactRead bool
	OpenAttempt  bool // the thread has one that is not over
	Due          bool // order, budget and interval allow it, as for an idle thread
	Now          time.Time
}

// Eligible returns nil if every proof is there. The error lists each one that is
// not; the delivery then waits for the thread to be idle.
func Eligible(g Gate, c Capability, a Active, r Request) error {
	var missing []string
	need := func(ok bool, format string, args ...any) {
		if !ok {
			missing = append(missing, fmt.Sprintf(format, args...))
		}
	}
	need(g.Open(), "the gate is closed")
	need(c.Validated(r.Epoch), "capability_turn_steer is not validated for epoch %d", r.Epoch)
	need(len(r.Policy.Objections()) == 0, "the batch is not read-only and low-risk")
	need(!r.ArtifactRead, "the batch needs an artifact to be read")
	need(!r.OpenAttempt, "the thread has an unresolved attempt")
	need(r.Due, "order, budget or interval do not allow a delivery now")
	need(r.Epoch > 0 && a.Thread == r.Thread && a.Attachment == r.Attachment && a.Epoch == r.Epoch, "the running turn was seen on another stream")
	need(!a.At.IsZero() && !a.At.After(r.Now) && r.Now.Sub(a.At) <= fresh, "the view of the running turn is stale")
	need(a.Turn != "" && a.Others == 0, "there is not exactly one running turn")
	need(a.Kind == Regular, "the running turn is not a regular one")
	need(a.Steerable, "the running turn is not proven steerable")
	need(slices.Contains(g.classes, a.Risk()) && slices.Contains(Risks(), a.Risk()), "the running turn's risk is %s", a.Risk())
	if len(missing) == 0 {
		return nil
	}
	return thole.Errorf(thole.CodeUnsupported, "wait until the thread is idle: %s", strings.Join(missing, "; "))
}
