// Package thread owns threads: their append-only event logs and everything folded
// from them (turns, items, asks, todos, queued messages, usage, status).
//
// A thread changes only through Service. Each call is one transaction that
// appends events under the thread's expected sequence; subscribers hear of it
// after commit. The package knows no wire protocol, no agent CLI and nothing of
// delivery; it never starts a process. A Runner drives turns and reports back
// through Apply.
package thread

import (
	"context"
	"errors"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
)

// Service is all that servers, channels and drivers may do with threads.
//
// Every method takes the actor; a thread the actor may not see is
// thole.CodeNotFound. Errors are *thole.Error. Calls on one thread are
// linearizable; calls on different threads do not wait for each other.
type Service interface {
	Create(ctx context.Context, actor thole.Actor, p Create) (fold.Thread, error)
	Get(ctx context.Context, actor thole.Actor, id thole.ThreadID) (fold.Thread, error)
	List(ctx context.Context, actor thole.Actor, f Filter) (Page[fold.Thread], error)
	Fork(ctx context.Context, actor thole.Actor, id thole.ThreadID, p Fork) (fold.Thread, error)
	// Revert takes a turn and all later ones out of the thread, and out of what its agent
	// remembers. Files stay as they are. A busy thread is thole.CodeBusy.
	Revert(ctx context.Context, actor thole.Actor, id thole.ThreadID, before thole.TurnID) (fold.Thread, error)
	// Update changes name, settings or archived state; nil fields stay.
	Update(ctx context.Context, actor thole.Actor, id thole.ThreadID, p Update, when ...Precondition[fold.Thread]) (fold.Thread, error)
	// Delete removes a thread for good: no other one ever gets its id.
	Delete(ctx context.Context, actor thole.Actor, id thole.ThreadID, when ...Precondition[fold.Thread]) error
	// Gone is thole.CodeGone for a thread that was deleted and the actor could see, nil
	// for any other id.
	Gone(ctx context.Context, actor thole.Actor, id thole.ThreadID) error

	// StartTurn begins a turn. A busy thread is thole.CodeBusy and nothing happens:
	// callers that want steering or queueing say so with Steer or Enqueue. So it is
	// the atomic "start only if idle".
	StartTurn(ctx context.Context, actor thole.Actor, p StartTurn) (fold.Turn, error)
	// Steer adds input to the running turn; expected must be its id.
	Steer(ctx context.Context, actor thole.Actor, p Steer) (fold.Turn, error)
	// Interrupt asks the running turn to stop; the turn ends later, by Apply.
	Interrupt(ctx context.Context, actor thole.Actor, id thole.ThreadID, expected thole.TurnID) error
	// Answer settles an ask. First answer wins; the second caller gets
	// thole.CodeConflict, or the same result if it repeats the same answer.
	Answer(ctx context.Context, actor thole.Actor, id thole.ThreadID, ask thole.AskID, a event.Answer) (fold.AskRecord, error)

	// SetGoal changes the goal of a thread, or gives it one. An active goal is worked at
	// in turns that begin by themselves whenever the thread is idle and nothing is queued.
	SetGoal(ctx context.Context, actor thole.Actor, id thole.ThreadID, p SetGoal) (event.Goal, error)
	// ReportGoal is the agent's word, in an open turn, that the goal is complete or blocked.
	ReportGoal(ctx context.Context, actor thole.Actor, id thole.ThreadID, turn thole.TurnID, status event.GoalStatus, note string) (event.Goal, error)
	// ClearGoal takes the goal away and reports whether there was one.
	ClearGoal(ctx context.Context, actor thole.Actor, id thole.ThreadID) (bool, error)

	// Queued messages wait in the thread and start a turn when it becomes idle.
	Enqueue(ctx context.Context, actor thole.Actor, p Enqueue) (event.Message, error)
	Queue(ctx context.Context, actor thole.Actor, id thole.ThreadID) ([]event.Message, error)
	EditQueued(ctx context.Context, actor thole.Actor, id thole.ThreadID, m thole.MessageID, input []thole.Input, when ...Precondition[event.Message]) (event.Message, error)
	RemoveQueued(ctx context.Context, actor thole.Actor, id thole.ThreadID, m thole.MessageID, when ...Precondition[event.Message]) (bool, error)
	ReorderQueued(ctx context.Context, actor thole.Actor, id thole.ThreadID, order []thole.MessageID, when ...Precondition[[]event.Message]) error
	// StartQueued starts one queued message now if the thread is idle (CodeBusy
	// otherwise); an empty id takes the head.
	StartQueued(ctx context.Context, actor thole.Actor, id thole.ThreadID, m thole.MessageID) (fold.Turn, error)
	// PromoteQueued turns a queued message into a steer of the running turn.
	PromoteQueued(ctx context.Context, actor thole.Actor, id thole.ThreadID, m thole.MessageID) (fold.Turn, error)

	// Turn returns one turn, without its items.
	Turn(ctx context.Context, actor thole.Actor, id thole.ThreadID, turn thole.TurnID) (fold.Turn, error)
	Turns(ctx context.Context, actor thole.Actor, id thole.ThreadID, p PageParams) (Page[fold.Turn], error)
	// Items pages the items of a thread, or of one turn.
	Items(ctx context.Context, actor thole.Actor, id thole.ThreadID, turn thole.TurnID, p PageParams) (Page[fold.ItemRecord], error)
	// TurnItems returns the items of some turns, in one query however many they are; with
	// said only what the user, the agent and thole said. It has items of whole turns, the
	// newest ones, and at most MaxTurnItems of them: a turn that is not in the map was not
	// read.
	TurnItems(ctx context.Context, actor thole.Actor, id thole.ThreadID, turns []thole.TurnID, said bool) (map[thole.TurnID][]fold.ItemRecord, error)
	// Output reads what is kept of the output of a command from a byte on: more than its item
	// has, where that was cut. CodeNotFound for an item that is no command.
	Output(ctx context.Context, actor thole.Actor, id thole.ThreadID, item thole.ItemID, offset int64, limit int) (Output, error)
	Asks(ctx context.Context, actor thole.Actor, id thole.ThreadID, pendingOnly bool) ([]fold.AskRecord, error)
	// Search pages the messages of the actor's threads that have a text in them, newest
	// turn first, with the place in each. Only the beginning of a very long message is searched.
	Search(ctx context.Context, actor thole.Actor, p Search) (Page[Hit], error)
	// Waiting pages the pending asks of all threads that the actor may see, longest
	// waiting first. What a client's own tool is asked is left out: no person answers it.
	Waiting(ctx context.Context, actor thole.Actor, p PageParams) (Page[Waiting], error)
	Todos(ctx context.Context, actor thole.Actor, id thole.ThreadID) ([]event.Todo, error)
	// Network lists what the thread's turns sent over the network, oldest first, as long as
	// the log is kept. A turn appears when its first run has ended.
	Network(ctx context.Context, actor thole.Actor, id thole.ThreadID) ([]TurnNetwork, error)
	// Events reads the durable log after a sequence number. A sequence that
	// retention removed is thole.CodeGone.
	Events(ctx context.Context, actor thole.Actor, id thole.ThreadID, after uint64, limit int) ([]event.Event, error)

	// Loaded lists the threads this process holds in memory: those with a running
	// turn, a subscriber, or either of them a short while ago.
	Loaded(ctx context.Context, actor thole.Actor) ([]thole.ThreadID, error)

	// Subscribe takes a snapshot at sequence N inside the thread's own order and
	// delivers everything from N+1: no loss, no duplicate. With After set, events
	// After+1…N come first, then for each item in flight one delta at offset 0 with
	// its text so far, then N+1…; a cursor that retention overtook is
	// thole.CodeGone. ctx bounds this call only: a subscription lives until Close.
	// Delivered events are shared between subscribers: read, never write.
	Subscribe(ctx context.Context, actor thole.Actor, id thole.ThreadID, o SubscribeOptions) (*Subscription, error)
	// Watch delivers the coarse changes of all threads the actor may see (created,
	// status, name, archived, deleted), the ends of their turns and their asks.
	Watch(ctx context.Context, actor thole.Actor) (*Subscription, error)

	// Apply appends what a provider reported for a turn, in order and idempotently
	// by event id. It is the only way a running turn changes. Deltas are published
	// but not stored; they are checkpointed into their item.
	Apply(ctx context.Context, ref TurnRef, events []event.Event) error
	// SetPhase records the pipeline's progress of a turn.
	SetPhase(ctx context.Context, ref TurnRef, phase thole.Phase, lastError string) error
}

// MaxTurnItems bounds what TurnItems reads.
const MaxTurnItems = 10_000

// ErrKeyReused: an idempotency key came with another message than the first time.
var ErrKeyReused = errors.New("the idempotency key was used for another message")

// Errors of a Runner. Any other leaves open whether the agent was reached.
var (
	// ErrNoTurn: the turn does not run here, or has just ended.
	ErrNoTurn = errors.New("thread: the turn does not run")
	// ErrNotSteerable: the turn's agent takes no messages while it works.
	ErrNotSteerable = errors.New("thread: the agent cannot be steered")
)

// Runner takes turns from their start to their end. The thread machine calls it
// after commit; a Runner must tolerate repeats. Its methods return at once: callers hold
// a client's place in the thread's order, and must not wait for an agent there.
type Runner interface {
	// Wake says that a turn may be waiting to run.
	Wake(id thole.ThreadID, turn thole.TurnID)
	// Steer, Answer and Interrupt are about a running turn. The durable fact is already
	// recorded when they are called, and reaches the agent by that record; an error says
	// what is known at once.
	Steer(ctx context.Context, ref TurnRef, input []thole.Input, clientID string) error
	Answer(ctx context.Context, ref TurnRef, ask thole.AskID, a event.Answer) error
	Interrupt(ctx context.Context, ref TurnRef) error
	// Recover says what becomes of a turn that was running when its process ended.
	Recover(ctx context.Context, t fold.Thread, turn fold.Turn) Fate
}

// TurnRef names one turn and the fence under which a driver may write it: the
// queue's token.
type TurnRef struct {
	Thread   thole.ThreadID
	Turn     thole.TurnID
	Token    string
	Executor thole.ExecutorID
}
