// Package channel is the port by which a delivery reaches a thread: probe whether
// it may be sent now, propose it once, observe what became of it.
//
// A channel keeps no durable state and makes no decision about a batch. The
// barrier that makes sending safe is the delivery machine's: Propose is called
// only after the attempt is durably accept_pending, at most once per request id,
// and whatever the channel cannot prove it must report as unknown.
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
	// that ends, means Unknown.
	Propose(ctx context.Context, p Proposal) (Answer, error)

	// Observe follows a proposal on the stream it was made on and calls see for
	// everything it can prove, in order: first, if Turn is empty, whether the
	// proposal was accepted (found by its marker or request id), then the turn's
	// life. It returns nil after a Rejected or a terminal event, see's error if it
	// fails, a *SteeredError, or ErrLost when nothing can be proven any more: before
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
	// Released: the user saw what the policy says and had the batch sent all the same.
	Released bool
}

// Verdict is the result of a probe.
type Verdict string

const (
	Now    Verdict = "now"     // send it
	NotNow Verdict = "not_now" // busy or away; try later
	Never  Verdict = "never"   // the thread's permissions forbid it; a human decides
)

// Readiness is what a probe found.
type Readiness struct {
	Verdict    Verdict
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
}

// Answer is what a channel can say of a proposal at once.
type Answer struct {
	Acceptance thole.Acceptance
	Turn       thole.TurnID // of an accepted one
	Attachment thole.AttachmentID
	Epoch      int64
	Evidence   string
	RetryAfter time.Duration // for Rejected
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

// SteeredError is what Observe returns of a message that went into a turn someone
// else opened: it arrived, and the turn's end proves nothing about it.
type SteeredError struct{ Turn thole.TurnID }

func (e *SteeredError) Error() string {
	return "the message was steered into turn " + string(e.Turn) + ", which it did not open"
}

// ErrLost is what Observe returns when continuity is gone.
var ErrLost error = lostError{}
