package thole

import (
	"cmp"
	"time"
)

// Outcome ends a turn. A turn has exactly one, and it never changes.
type Outcome string

const (
	OutcomeCompleted   Outcome = "completed"
	OutcomeFailed      Outcome = "failed"
	OutcomeInterrupted Outcome = "interrupted"
	// OutcomeReplaced is derived, never stored: a turn cut off by another one
	// that we did not ask for. It counts as negative everywhere.
	OutcomeReplaced Outcome = "replaced"
)

// Positive reports whether the turn did what was asked.
func (o Outcome) Positive() bool { return o == OutcomeCompleted }

// Phase is where the pipeline ends with this outcome.
func (o Outcome) Phase() Phase {
	//exhaustive:enforce
	switch o {
	case OutcomeCompleted:
		return PhaseSucceeded
	case OutcomeInterrupted:
		return PhaseCanceled
	case OutcomeFailed, OutcomeReplaced:
	}
	return PhaseFailed
}

// Phase is a turn's durable progress through the pipeline:
//
//	queued → claimed → restoring → linking → preparing → running ⇄ waiting_human
//	       → syncing → exported → succeeded | failed | canceled
//
// A turn is over for clients when the provider ends (its Outcome is recorded);
// syncing and exported follow.
type Phase string

const (
	PhaseQueued       Phase = "queued"
	PhaseClaimed      Phase = "claimed"
	PhaseRestoring    Phase = "restoring"
	PhaseLinking      Phase = "linking"
	PhasePreparing    Phase = "preparing"
	PhaseRunning      Phase = "running"
	PhaseWaitingHuman Phase = "waiting_human"
	PhaseSyncing      Phase = "syncing"
	PhaseExported     Phase = "exported"
	PhaseSucceeded    Phase = "succeeded"
	PhaseFailed       Phase = "failed"
	PhaseCanceled     Phase = "canceled"
)

// Terminal reports whether the pipeline is done with the turn.
func (p Phase) Terminal() bool {
	return p == PhaseSucceeded || p == PhaseFailed || p == PhaseCanceled
}

// ErrorCode is the closed set of reasons a turn fails for.
type ErrorCode string

const (
	ErrAuth            ErrorCode = "auth"
	ErrRateLimit       ErrorCode = "rate_limit"
	ErrOverloaded      ErrorCode = "overloaded"
	ErrContextTooLong  ErrorCode = "context_too_long"
	ErrModelRefused    ErrorCode = "model_refused"
	ErrNetwork         ErrorCode = "network"
	ErrToolFailed      ErrorCode = "tool_failed"
	ErrProviderCrashed ErrorCode = "provider_crashed"
	ErrCancelled       ErrorCode = "cancelled"
	ErrBadRequest      ErrorCode = "bad_request"
	// ErrLimit: the executor went beyond one of its limits: its disk, or what it may
	// report.
	ErrLimit ErrorCode = "executor_limit"
	// ErrBudget: a budget refused one of the turn's model calls.
	ErrBudget ErrorCode = "budget_exceeded"
)

// TurnError says why a turn failed and what the user can do about it.
type TurnError struct {
	Code    ErrorCode `json:"code"`
	Message string    `json:"message"`
	Hint    string    `json:"hint,omitempty"`
	// Status is the HTTP status of the model service, 0 when there was none.
	Status int `json:"status,omitempty"`
	// Retrying is true while the provider itself tries again; such an error
	// does not end the turn.
	Retrying bool `json:"retrying,omitempty"`
}

// Usage counts one turn's tokens. Input excludes cached tokens, Output excludes Reasoning.
type Usage struct {
	Input         int64 `json:"input"`
	Output        int64 `json:"output"`
	Reasoning     int64 `json:"reasoning,omitempty"`
	CacheRead     int64 `json:"cache_read,omitempty"`
	CacheWrite    int64 `json:"cache_write,omitempty"`
	ContextWindow int64 `json:"context_window,omitempty"`
	// CostMicros is the cost in millionths of a US dollar, nil when nobody knows.
	CostMicros *int64 `json:"cost_micros,omitempty"`
	Model      string `json:"model,omitempty"`
	// Last is what the newest model call used: its input is what the model's context
	// holds. Nil when nobody said.
	Last *Tokens `json:"last,omitempty"`
}

// Tokens counts those of one model call. Input excludes cached tokens, Output excludes
// Reasoning.
type Tokens struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	Reasoning  int64 `json:"reasoning,omitempty"`
	CacheRead  int64 `json:"cache_read,omitempty"`
	CacheWrite int64 `json:"cache_write,omitempty"`
}

// Tokens are the counted ones of u.
func (u Usage) Tokens() Tokens {
	return Tokens{Input: u.Input, Output: u.Output, Reasoning: u.Reasoning, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite}
}

// Plus sums the usage of turns, o being the newer one. The window, the model
// and the last call are those of the newest turn that says; the cost is unknown only while no turn knows
// one.
func (u Usage) Plus(o Usage) Usage {
	u.Input += o.Input
	u.Output += o.Output
	u.Reasoning += o.Reasoning
	u.CacheRead += o.CacheRead
	u.CacheWrite += o.CacheWrite
	u.ContextWindow = cmp.Or(o.ContextWindow, u.ContextWindow)
	u.Model = cmp.Or(o.Model, u.Model)
	u.Last = cmp.Or(o.Last, u.Last)
	if o.CostMicros != nil {
		sum := *o.CostMicros
		if u.CostMicros != nil {
			sum += *u.CostMicros
		}
		u.CostMicros = &sum
	}
	return u
}

// Profile is the provider-neutral permission to act. Every provider maps it to
// its own modes by one table; native mode names pass through unchanged.
type Profile string

const (
	ProfilePlan Profile = "plan" // reads and plans; the host denies every write
	ProfileAsk  Profile = "ask"  // asks before commands and edits
	ProfileEdit Profile = "edit" // edits the workspace, asks for the rest
	ProfileFull Profile = "full" // asks nothing
)

// Input is one part of what a user (or a job) says to a turn.
type Input struct {
	Type string `json:"type"` // "text", "image" or "file"; that of a TurnCommand stands alone
	Text string `json:"text,omitempty"`
	// URL is a data: URL, or for images a path inside the workspace.
	URL string `json:"url,omitempty"`
	// Name is a file's, made safe by FileName.
	Name string `json:"name,omitempty"`
}

// Text is the common input of one text part.
func Text(s string) []Input { return []Input{{Type: "text", Text: s}} }

// Stamp is when something began and ended; zero times mean "not yet".
type Stamp struct {
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
}

// TurnTime is what a turn waited for, from its start until its files were saved. Its parts
// add up to the whole: at each moment the turn waited for one of them, and where several
// were under way, for the first of Human, Tools, Model. Times are whole milliseconds.
type TurnTime struct {
	Model    time.Duration // answers of the model
	Tools    time.Duration // commands, edits and tools of the agent
	Human    time.Duration // answers of a person
	Overhead time.Duration // thole and the agent's own program: queue, restore, start, sync
}

// Whole is the sum of the parts.
func (t TurnTime) Whole() time.Duration { return t.Model + t.Tools + t.Human + t.Overhead }
