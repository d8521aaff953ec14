package event

// Kind is the closed set of events.
type Kind string

const (
	ThreadCreated Kind = "thread.created"
	ThreadUpdated Kind = "thread.updated" // name, settings, archived, native id
	ThreadDeleted Kind = "thread.deleted"
	// ThreadReverted: turns from Cut.Number on are no longer part of the thread.
	ThreadReverted Kind = "thread.reverted"
	ThreadStatus   Kind = "thread.status" // ephemeral: the derived status changed

	TurnStarted   Kind = "turn.started"
	TurnPhase     Kind = "turn.phase"
	TurnSteered   Kind = "turn.steered"       // a user gave Message to the running turn
	SteerTaken    Kind = "turn.steer_taken"   // reported only: the agent took in the message of Item
	SteerRefused  Kind = "turn.steer_refused" // the agent cannot take MessageID
	TurnInterrupt Kind = "turn.interrupt_requested"
	TurnEnded     Kind = "turn.ended" // Outcome, Error; reported with AskID: parked on it

	StepStarted Kind = "step.started" // a model call begins
	StepEnded   Kind = "step.ended"
	StepReset   Kind = "step.reset" // drop this step's items: the agent repeats the call

	ItemStarted   Kind = "item.started"   // Item, possibly empty so far
	ItemDelta     Kind = "item.delta"     // ephemeral: ItemID, Stream, Offset, Delta
	ItemUpdated   Kind = "item.updated"   // Item as it is now
	ItemCompleted Kind = "item.completed" // Item, final

	TodoSnapshot Kind = "todo.snapshot" // Todos is the whole list
	TodoUpdate   Kind = "todo.update"   // Todos has the changed entries

	AskRequested Kind = "ask.requested"
	AskResolved  Kind = "ask.resolved" // AskID, AskState, Answer

	UsageUpdated  Kind = "usage.updated"  // of this turn so far
	ErrorReported Kind = "error.reported" // Error.Retrying: the turn goes on
	NoteReported  Kind = "note.reported"  // Text, a warning worth showing
	LimitsUpdated Kind = "limits.updated" // Limits of the agent's account, as they are now
	// NetworkUpdated has what a run's processes sent over the network, at the run's end: Network.
	NetworkUpdated Kind = "network.updated"

	GoalUpdated Kind = "goal.updated" // Goal as it is now, none when it was cleared

	QueueAdded     Kind = "queue.added"
	QueueEdited    Kind = "queue.edited"
	QueueRemoved   Kind = "queue.removed"
	QueueReordered Kind = "queue.reordered"
)

// Kinds lists every kind once.
var Kinds = []Kind{
	ThreadCreated, ThreadUpdated, ThreadDeleted, ThreadReverted, ThreadStatus,
	TurnStarted, TurnPhase, TurnSteered, SteerTaken, SteerRefused, TurnInterrupt, TurnEnded,
	StepStarted, StepEnded, StepReset, ItemStarted, ItemDelta, ItemUpdated, ItemCompleted,
	TodoSnapshot, TodoUpdate, AskRequested, AskResolved, UsageUpdated, ErrorReported, NoteReported, LimitsUpdated, NetworkUpdated,
	GoalUpdated, QueueAdded, QueueEdited, QueueRemoved, QueueReordered,
}

// Stream says what a delta extends.
type Stream string

const (
	StreamText    Stream = "text"    // Item.Text of messages, reasoning and plans
	StreamSummary Stream = "summary" // Item.Summary of reasoning
	StreamInput   Stream = "input"   // the JSON text of Item.Tool.Input
	StreamOutput  Stream = "output"  // Item.Command.Output, or a tool's output so far
)
