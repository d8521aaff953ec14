package delivery

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	thole "github.com/tholehq/thole"
)

// Address is the thread a result belongs to. Endpoint names the place the thread
// lives in (a Codex home, a thole home), so that the same thread id in two homes,
// or of two users, never shares a queue.
type Address struct {
	User     thole.UserID
	Endpoint string
	Thread   thole.ThreadID
}

// LaneID is the stable key of an address.
func (a Address) LaneID() string {
	h := sha256.New()
	for _, part := range []string{string(a.User), a.Endpoint, string(a.Thread)} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Lane is the delivery side of one thread: its queue position counters, its
// fences and its place in the fair order. Every change to a lane's batches and
// attempts locks it first.
type Lane struct {
	ID    string
	Owner thole.Owner
	Address

	Generation  int64     // of the newest attempt; rises for ever
	NextSeq     int64     // sequence of the next batch
	LastReadyAt time.Time // ready times never go back within a lane
	NotBefore   time.Time // minimum interval after an accepted delivery
	// EligibleAfter keeps a candidate that failed before acceptance from being
	// first again at once; Failures grows the pause.
	EligibleAfter time.Time
	Failures      int64
	// Blocked is a safety item of the thread's host (a heartbeat not yet quiet, a
	// degraded binding). While set, nothing is sent.
	Blocked string

	// At most one is set. DueAt: nothing to do before this time. Ticket: the
	// place in the fair order of Scope.
	DueAt  time.Time
	Ticket int64
	Scope  thole.Target

	Version int64
}

// Scope is one fair order. Cursor is the ticket served last; tickets are given in
// rising order, so a lane that was served or failed queues after all others.
type Scope struct {
	Target     thole.Target
	Cursor     int64
	LastTicket int64
	Revision   int64 // of the newest snapshot
}

// Advance is a step of a fair order: tickets and snapshots to give out, and the
// ticket that was served.
type Advance struct{ Tickets, Revisions, Served int64 }

// Job is outside work whose result belongs to a thread.
type Job struct {
	ID       thole.JobID
	LaneID   string
	Owner    thole.Owner
	Target   thole.Target
	Endpoint string
	Thread   thole.ThreadID
	Parent   thole.JobID

	State       thole.JobState
	TaskKind    string
	TaskSummary string
	Metadata    string // the submitted metadata document, as given
	DedupeKey   string
	Policy      thole.DeliveryPolicy
	// Supervised: the command runs under thole's supervisor, which reports it.
	Supervised bool
	// Command runs in the box of the thread, in Executor once it was given there; nil
	// for work elsewhere.
	Command  *Command
	Executor thole.ExecutorID
	// Plugin is what a plugin's result is delivered by; nil for work of others.
	Plugin *thole.PluginTarget

	// Settled is the outcome of a job that still waits for open children.
	Settled       thole.JobState
	SettledBy     string // request that finished or cancelled it
	ResultSummary string
	ExitCode      int64 // of a supervised command; -1: none
	Artifact      thole.ArtifactID
	Inline        string
	// InlineBytes and RequiresArtifactRead are derived when a result is stored.
	InlineBytes          int64
	RequiresArtifactRead bool

	Batch       thole.BatchID // empty for children: they travel inside their parent
	BatchOrder  int64
	CreatedAt   time.Time
	ReadyAt     time.Time
	UpdatedAt   time.Time
	CompletedAt time.Time
	Version     int64
}

// Command is what a job runs in the box of its thread.
type Command struct {
	Argv []string `json:"argv"`
	// Timeout ends it; 0: never.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Turn is the one whose agent asked for it, "" for a person.
	Turn thole.TurnID `json:"turn,omitempty"`
}

// Batch is an ordered run of ready jobs of one lane; the unit of delivery.
type Batch struct {
	ID      thole.BatchID
	LaneID  string
	Seq     int64 // order within the lane
	Target  thole.Target
	Mode    thole.DeliveryMode
	State   thole.BatchState
	Replay  thole.ReplayPolicy
	Summary string
	// HeldFor says why the batch waits for a human.
	HeldFor thole.HoldReason
	// ReleasedBy is the person who let it go although it was held, and took
	// responsibility for its attempts up to ReleasedGeneration.
	ReleasedBy         thole.UserID
	ReleasedGeneration int64

	Jobs                 int64
	ArtifactCount        int64
	InlineBytes          int64
	Policy               thole.DeliveryPolicy
	RequiresArtifactRead bool

	FirstReadyAt   time.Time
	LastReadyAt    time.Time
	MaterializedAt time.Time
	LastAttemptAt  time.Time
	NotBefore      time.Time
	WindowEndsAt   time.Time
	MaxAttempts    int64
	AttemptCount   int64 // accepted by the channel, nothing else
	HeadAttempt    thole.AttemptID
	Generation     int64

	// Plugin is the server that the batch brings with it: that of its first job, and nil
	// unless the delivery starts it.
	Plugin *thole.PluginTarget

	Boundary Boundary

	ClosedAt    time.Time
	CloseReason thole.CloseReason
	CreatedAt   time.Time
	UpdatedAt   time.Time
	Version     int64
}

// Aside reports whether the batch waits next to its thread's queue: no channel reaches its
// target, so nothing that happens to the thread moves it, and it stands before nothing.
func (b *Batch) Aside() bool { return b.HeldFor == thole.HoldNoChannel }

// Boundary is what is recorded when a receiver crosses the continuation boundary:
// all of it with the close as handoff_recorded, or nothing. No channel of today
// crosses one.
type Boundary struct {
	State            thole.BoundaryState
	CrossedAt        time.Time
	Attempt          thole.AttemptID
	Generation       int64
	SnapshotRevision int64
	EnvelopeRef      string // artifact that holds the recovery envelope
	Envelope         string // the envelope itself, if it is small
	EnvelopeBytes    int64
	RetentionUntil   time.Time
	PinUntil         time.Time
}

// Attempt is one fenced try to deliver a batch.
type Attempt struct {
	ID         thole.AttemptID
	LaneID     string
	Batch      thole.BatchID
	Generation int64
	State      thole.AttemptState

	// Ticket is the place in the fair order that this attempt uses up once the
	// channel accepts it.
	Ticket int64
	// Holder is the process that follows the attempt, by a lease.
	Holder     string
	LeaseUntil time.Time

	RPC         RPC
	Observation Observation
	Arm         Arm

	SnapshotPath     string
	SnapshotRevision int64
	DeliveryDeadline time.Time // of the barrier
	CooldownUntil    time.Time
	CreatedAt        time.Time
	UpdatedAt        time.Time
	Version          int64
}

// RPC is the call that accept_pending stands for.
type RPC struct {
	RequestID string
	Kind      thole.DeliveryMode
	StartedAt time.Time
	State     thole.RPCState
	Marker    string
}

// Observation is how the accepted turn is followed.
type Observation struct {
	Turn        thole.TurnID
	Attachment  thole.AttachmentID
	Epoch       int64
	AcceptedAt  time.Time
	State       thole.ObservationState
	Deadline    time.Time
	LastEvent   thole.TurnEvent
	LastEventAt time.Time
}

// Arm is the heartbeat side of an attempt.
type Arm struct {
	BridgeRequest string
	Lease         string
	LeaseDeadline time.Time
	PendingSince  time.Time
	Deadline      time.Time
	Binding       string
	Automation    string
	AutomationIs  thole.AutomationBinding
}

// Deadline is when the sweep must decide about the attempt; zero means that its
// lane's due time and its batch's window bound it.
func (a *Attempt) Deadline() time.Time {
	switch {
	case a.State == thole.AttemptAcceptPending:
		return a.DeliveryDeadline
	case a.State == thole.AttemptArmPending:
		return a.Arm.Deadline
	case a.State == thole.AttemptCooldown && a.RPC.Kind.Observed():
		return a.Observation.Deadline
	}
	return time.Time{}
}

// Tracked reports whether the attempt still has a truth of its own to find: the
// batch's window must not overtake it.
func (a *Attempt) Tracked() bool {
	return a != nil && (a.State.Barrier() || a.State == thole.AttemptCooldown && a.RPC.Kind.Observed())
}

// Fence names exactly one attempt on one thread. A caller whose fence does not
// match changes nothing.
type Fence struct {
	LaneID     string
	Batch      thole.BatchID
	Attempt    thole.AttemptID
	Generation int64
	// Revision is compared when it is not zero.
	Revision int64
	// Request is the call's own id: a rejected call leaves the attempt prepared,
	// and its late answer must not settle the next call.
	Request string
}

// Fence returns the fence of the attempt's present call.
func (a *Attempt) Fence() Fence {
	return Fence{LaneID: a.LaneID, Batch: a.Batch, Attempt: a.ID, Generation: a.Generation, Revision: a.SnapshotRevision, Request: a.RPC.RequestID}
}

func (f Fence) matches(a *Attempt) bool {
	return a != nil && f.LaneID == a.LaneID && f.Batch == a.Batch && f.Attempt == a.ID && f.Generation == a.Generation &&
		(f.Revision == 0 || f.Revision == a.SnapshotRevision)
}

// Audit is one row of the ledger: which decision, by whom, with which proof.
type Audit struct {
	Seq        int64
	At         time.Time
	Actor      thole.Actor
	Event      string
	LaneID     string
	Job        thole.JobID
	Batch      thole.BatchID
	Attempt    thole.AttemptID
	Generation int64
	From, To   string
	Proof      map[string]string
}
