// Package measure names what is worth measuring and is how a part of the program
// reports it without knowing who listens. It keeps nothing, and no part changes
// what it does by it.
package measure

import (
	"context"
	"time"
)

// What is one measured thing.
type What string

// Steps have a beginning and an end.
const (
	Turn        What = "turn"        // a worker's whole time with a turn
	Claim       What = "claim"       // from the turn's start until a worker has it
	Start       What = "start"       // of an executor
	Restore     What = "restore"     // of its workspace
	Link        What = "link"        // of the agents' data directories
	Validate    What = "validate"    // of what the manifest requires
	Run         What = "run"         // from the request until the agent is done
	Apply       What = "apply"       // of some of its events to the thread
	Sync        What = "sync"        // of a workspace
	Maintenance What = "maintenance" // of an executor
	Deliver     What = "deliver"     // from the barrier to the recorded answer
)

// Times are reported when they are over.
const (
	Commit    What = "commit"     // of one durable change
	ModelWait What = "model wait" // until an agent shows the first of its answer
)

// Counts only rise.
const (
	Retried    What = "retried"     // a turn went back to the queue
	Fenced     What = "fenced"      // a worker lost its lease
	SyncFailed What = "sync failed" // and is tried again later
	Held       What = "held"        // a batch waits for a human
	Slow       What = "slow"        // a subscriber was ended because it fell behind
)

// Step is something that takes time.
type Step struct {
	What
	// Trace groups the steps of one piece of work, also across processes. A step
	// within another belongs to that one's.
	Trace string
	Began time.Time // zero: now
	About []string  // names and values in turns
}

// Meter listens. All methods are safe for concurrent use and do not block.
type Meter interface {
	// Begin returns the context of what happens within the step, and its end.
	Begin(ctx context.Context, s Step) (context.Context, func(error))
	Took(w What, d time.Duration)
	Count(w What)
}

// None hears nothing.
var None Meter = none{}

type none struct{}

func (none) Begin(ctx context.Context, _ Step) (context.Context, func(error)) {
	return ctx, func(error) {}
}
func (none) Took(What, time.Duration) {}
func (none) Count(What)               {}

// Do measures fn as a step.
func Do(ctx context.Context, m Meter, s Step, fn func(context.Context) error) error {
	ctx, end := m.Begin(ctx, s)
	err := fn(ctx)
	end(err)
	return err
}
