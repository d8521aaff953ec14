// Package channel is the port by which a delivery reaches a thread: probe whether
// it may be sent now, propose it once, observe what became of it.
//
// A channel keeps no durable state and makes no decision about a batch. The
// barrier that makes sending safe is the delivery machine's: Propose is called
// only after the attempt is durably accept_pending, at most once per request id,
// and whatever the channel cannot prove it must report as unknown. The contract is a
// suite: channeltest.Conform, which every channel passes.
package channel

import (
	"context"
	"time"

	thole "github.com/tholehq/thole"
)

// Channel reaches threads of one target.
//
// Methods are safe for concurrent use. A context that ends gives up waiting and
// undoes nothing.
type Channel interface {
	// Probe asks, without any effect, whether this thread can take a delivery now.
	// An error means the same as NotNow with its text.
	Probe(ctx context.Context, q Query) (Readiness, error)

	// Propose sends the delivery. It must not send twice, and must answer Rejected
	// only with proof that nothing was or will be accepted. An error, or a context
	// that ends, means Unknown. Nothing is sent for a proposal that Check refuses, to
	// another epoch than its own, or to a process that is not proven to be the receiver.
	Propose(ctx context.Context, p Proposal) (Answer, error)

	// Observe follows a proposal on the stream it was made on and calls see for
	// everything it can prove, in order: first, if Turn is empty, whether the
	// proposal was accepted (found by its marker or request id), then the turn's
	// life. One read of a receiver's state is no verdict: that a turn ended otherwise
	// than completed takes the receiver's announcement or a second read that agrees.
	// It returns nil after a Rejected or a terminal event, see's error if it
	// fails, or ErrLost when nothing can be proven any more: before
	// the acceptance is known that means that the receiver is gone, because as long
	// as it lives the proposal may still be taken. Any other error is passing, and
	// Observe is called again. When ctx ends it returns ctx's error and nothing is
	// lost.
	Observe(ctx context.Context, w Watch, see func(Sighting) error) error
}

// Knower is a Channel that can prove that a thread does not exist. Unknown is nil.
type Knower interface {
	// Knows is thole.CodeNotFound for such a thread, with the command that lists those
	// there are.
	Knows(ctx context.Context, q Query) error
}

// Query is a thread and what would be sent to it.
type Query struct {
	User     thole.UserID
	Endpoint string
	Thread   thole.ThreadID
	Batch    thole.BatchID
	Policy   thole.DeliveryPolicy
	// ArtifactRead: the receiver would have to read an artifact.
	ArtifactRead bool
	// Released: the user saw what the policy says and had the batch sent all the same.
	Released bool
	// Brings is the server that the delivery starts for itself where no session holds the
	// thread; nil: none.
	Brings *thole.PluginTarget
}

// Verdict is the result of a probe.
type Verdict string

const (
	Now    Verdict = "now"     // send it
	NotNow Verdict = "not_now" // busy or away; try later
	Never  Verdict = "never"   // the thread's permissions forbid it; a human decides
)

// Reason says in one word why a thread takes nothing now. Programs decide by it; the
// sentence next to it is for people.
type Reason string

const (
	ReasonPolicy      Reason = "policy"                   // the result may need more than goes without a human
	ReasonPermissions Reason = "permissions"              // the session lets a turn do more than goes without a human
	ReasonDrift       Reason = "session_profile_mismatch" // the session allows more than when it was attached
	ReasonNoThread    Reason = "no_thread"
	ReasonOtherHome   Reason = "other_home"
	ReasonUnfitThread Reason = "unfit_thread"
	ReasonNoChannel   Reason = "no_channel"
	ReasonNoSession   Reason = "no_session"   // no session holds the thread
	ReasonAway        Reason = "session_away" // its session takes nothing in its state
	ReasonServer      Reason = "server_away"  // its server does not answer
	ReasonUnsupported Reason = "unsupported"  // its server cannot do what it has to
	ReasonNoServer    Reason = "no_server"    // the server that it brings cannot be started
	ReasonBusy        Reason = "busy"         // a turn runs, or messages are queued
	ReasonPinned      Reason = "pinned"       // a delivery's settings are not put back yet
	ReasonArchived    Reason = "archived"
	ReasonUnseen      Reason = "unseen"         // forecasts: its permissions were not seen yet
	ReasonHeldBefore  Reason = "held_before"    // forecasts: a result before it waits for a human
	ReasonWaiting     Reason = "results_before" // forecasts: results before it are on their way
	ReasonUnknown     Reason = "unknown"
)

// Hold is why a batch is held that is refused for this reason.
func (r Reason) Hold() thole.HoldReason {
	switch r {
	case ReasonNoThread:
		return thole.HoldNoThread
	case ReasonOtherHome:
		return thole.HoldOtherHome
	case ReasonUnfitThread:
		return thole.HoldUnfitThread
	case ReasonNoChannel:
		return thole.HoldNoChannel
	case ReasonNoServer:
		return thole.HoldNoServer
	default:
		return thole.HoldPolicy
	}
}

// Foreteller is a Channel whose Probe asks a server: Foretell answers from what is
// stored, at once, what is known of a thread.
type Foreteller interface {
	Foretell(ctx context.Context, q Query) (Readiness, error)
}

// Readiness is what a probe found.
type Readiness struct {
	Verdict    Verdict
	Why        Reason             // for NotNow and Never
	Mode       thole.DeliveryMode // how it would be sent, for Now
	Attachment thole.AttachmentID
	Epoch      int64
	Reason     string
	RetryAfter time.Duration // for NotNow; 0 lets the machine choose
}

// Proposal is one call after the barrier.
type Proposal struct {
	User       thole.UserID
	Thread     thole.ThreadID
	Mode       thole.DeliveryMode
	Request    string // also the idempotency key, where the wire has one
	Marker     string
	Attachment thole.AttachmentID
	Epoch      int64
	Batch      thole.BatchID
	Text       string // holds the marker
	// Asked is what the probe was asked: a server that is started for the proposal is
	// asked it then.
	Asked Query
}

// Check refuses a proposal that nobody recorded before: what names it comes from the
// barrier.
func (p *Proposal) Check() error {
	if p.Request == "" || p.Marker == "" || p.Attachment == "" || p.Epoch == 0 {
		return thole.Errorf(thole.CodeInvalid, "the proposal has no request id, marker or stream")
	}
	return nil
}

// Unsent is the answer to a proposal of which nothing left this process.
func Unsent(why error) Answer {
	return Answer{Acceptance: thole.Rejected, Evidence: "nothing was sent: " + why.Error()}
}

// Answer is what a channel can say of a proposal at once.
type Answer struct {
	Acceptance thole.Acceptance
	Turn       thole.TurnID // of an accepted one
	Attachment thole.AttachmentID
	Epoch      int64
	Evidence   string
	RetryAfter time.Duration // for Rejected
	// Hold says of a Rejected one that trying again would find the same.
	Hold Reason
}

// Watch names a proposal to follow. Turn is empty while it is not known whether
// the proposal was accepted.
type Watch struct {
	Proposal
	Turn thole.TurnID
}

// Sighting is one provable fact about a proposal: either its acceptance, or an
// event of its turn.
type Sighting struct {
	Acceptance thole.Acceptance // Accepted or Rejected; empty for an event
	Event      thole.TurnEvent
	Turn       thole.TurnID
	Attachment thole.AttachmentID
	Epoch      int64
	Evidence   string
}

type lostError struct{}

func (lostError) Error() string { return "the event stream cannot be proven continuous" }

// ErrLost is what Observe returns when continuity is gone.
var ErrLost error = lostError{}
