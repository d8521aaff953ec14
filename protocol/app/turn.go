package app

import "encoding/json"

// Turn states.
const (
	TurnInProgress  = "inProgress"
	TurnCompleted   = "completed"
	TurnInterrupted = "interrupted"
	TurnFailed      = "failed"
)

// How much of a turn's items a Turn carries.
const (
	ItemsNotLoaded = "notLoaded"
	ItemsSummary   = "summary"
	ItemsFull      = "full"
)

// Turn is one input taken to one outcome. Times are Unix seconds.
type Turn struct {
	ID          string     `json:"id"`
	RootTurnID  *string    `json:"rootTurnId"`
	Items       []Item     `json:"items"`
	ItemsView   string     `json:"itemsView"`
	Status      string     `json:"status" ts:"\"inProgress\" | \"completed\" | \"interrupted\" | \"failed\""`
	Error       *TurnError `json:"error"`
	StartedAt   *int64     `json:"startedAt"`
	CompletedAt *int64     `json:"completedAt"`
	DurationMs  *int64     `json:"durationMs"`
}

// TurnError says why a turn failed. Info is a string or an object with one key.
type TurnError struct {
	Message string          `json:"message"`
	Info    json.RawMessage `json:"codexErrorInfo"`
	Details *string         `json:"additionalDetails"`
	// Thole carries what the rest cannot, for clients that declared the extension.
	Thole *TurnErrorExtra `json:"thole,omitempty"`
}

// TurnErrorExtra is what only a thole server knows of a failure.
type TurnErrorExtra struct {
	// Code is the class of the failure: auth, rate_limit, model_refused, …
	Code string `json:"code"`
}

// TurnStartParams gives input to a thread. On a busy thread turn/start steers the
// running turn; thole/turn/startIfIdle refuses.
type TurnStartParams struct {
	ThreadID            string      `json:"threadId"`
	Input               []UserInput `json:"input"`
	ClientUserMessageID *string     `json:"clientUserMessageId,omitempty"`
	ToolOutput          *ToolOutput `json:"toolOutput,omitempty"`
	Settings
	SandboxPolicy     *SandboxPolicy     `json:"sandboxPolicy,omitempty"`
	Effort            *string            `json:"effort,omitempty"`
	Summary           *string            `json:"summary,omitempty"`
	CollaborationMode *CollaborationMode `json:"collaborationMode,omitempty"`
	// OutputSchema is a JSON schema of an object. The turn's last agentMessage is then JSON
	// text that satisfies it.
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	// IdempotencyKey makes a repeat return the first turn. A message that has one never steers:
	// a busy thread refuses it.
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
}

// ShellCommandParams runs a command line in the thread's workspace, by the user's
// own hand.
type ShellCommandParams struct {
	ThreadID string `json:"threadId"`
	Command  string `json:"command"`
}

// ToolOutput starts a turn with the result of something that ran outside.
type ToolOutput struct {
	Name      string          `json:"name"`
	Namespace *string         `json:"namespace,omitempty"`
	Output    json.RawMessage `json:"output"`
}

// TurnResult carries the turn that was started or steered.
type TurnResult struct {
	Turn Turn `json:"turn"`
}

// SetupResult names the turn that sets the workspace up; null while it waits for the end
// of the running one.
type SetupResult struct {
	TurnID *string `json:"turnId"`
}

// TurnSteerParams adds input to the running turn, which must be ExpectedTurnID.
type TurnSteerParams struct {
	ThreadID            string      `json:"threadId"`
	Input               []UserInput `json:"input"`
	ExpectedTurnID      string      `json:"expectedTurnId"`
	ClientUserMessageID *string     `json:"clientUserMessageId,omitempty"`
}

// TurnSteerResult names the steered turn.
type TurnSteerResult struct {
	TurnID string `json:"turnId"`
}

// TurnInterruptParams asks the running turn to stop.
type TurnInterruptParams struct {
	ThreadID string `json:"threadId"`
	TurnID   string `json:"turnId"`
}

// TurnsListParams pages a thread's turns, newest first by default.
type TurnsListParams struct {
	ThreadID string `json:"threadId"`
	PageParams
	ItemsView *string `json:"itemsView,omitempty"`
}

// TurnsPage is a page of turns.
type TurnsPage struct {
	Data []Turn `json:"data"`
	Page
}

// ItemsListParams pages a thread's items, oldest first by default.
type ItemsListParams struct {
	ThreadID string  `json:"threadId"`
	TurnID   *string `json:"turnId,omitempty"`
	PageParams
}

// ItemsPage is a page of items.
type ItemsPage struct {
	Data []ItemEntry `json:"data"`
	Page
}

// ReviewStartParams asks for a review in a turn of the thread.
type ReviewStartParams struct {
	ThreadID string       `json:"threadId"`
	Target   ReviewTarget `json:"target"`
	// Delivery is inline.
	Delivery *string `json:"delivery,omitempty"`
}

// ReviewTarget is what to look at.
type ReviewTarget struct {
	Type         string  `json:"type" ts:"\"uncommittedChanges\" | \"baseBranch\" | \"commit\" | \"custom\""`
	Branch       string  `json:"branch,omitempty"`
	SHA          string  `json:"sha,omitempty"`
	Title        *string `json:"title,omitempty"`
	Instructions string  `json:"instructions,omitempty"`
}

// ReviewStartResult is the turn that reviews.
type ReviewStartResult struct {
	Turn           Turn   `json:"turn"`
	ReviewThreadID string `json:"reviewThreadId"`
}

// ListParams walk a list that has one order.
type ListParams struct {
	Cursor *string `json:"cursor,omitempty"`
	Limit  *int    `json:"limit,omitempty"`
}

// PageParams walk a list.
type PageParams struct {
	Cursor        *string `json:"cursor,omitempty"`
	Limit         *int    `json:"limit,omitempty"`
	SortDirection *string `json:"sortDirection,omitempty" ts:"\"asc\" | \"desc\""`
}

// QueuedSubmission is a message that waits in the thread.
type QueuedSubmission struct {
	ID                  string      `json:"id"`
	Input               []UserInput `json:"input"`
	ClientUserMessageID string      `json:"clientUserMessageId"`
}

// QueueAddParams queues a message after the running turn; an idle thread takes it
// at once.
type QueueAddParams struct {
	ThreadID            string      `json:"threadId"`
	Input               []UserInput `json:"input"`
	ClientUserMessageID string      `json:"clientUserMessageId"`
}

// QueueResult carries one queued message.
type QueueResult struct {
	QueuedSubmission QueuedSubmission `json:"queuedSubmission"`
}

// QueueUpdateParams replaces a queued message's input.
type QueueUpdateParams struct {
	ThreadID           string      `json:"threadId"`
	QueuedSubmissionID string      `json:"queuedSubmissionId"`
	Input              []UserInput `json:"input"`
}

// QueueParams names one queued message; thread/queue/start takes the head when it
// is absent.
type QueueParams struct {
	ThreadID           string  `json:"threadId"`
	QueuedSubmissionID *string `json:"queuedSubmissionId,omitempty"`
}

// QueueReorderParams names every queued message once.
type QueueReorderParams struct {
	ThreadID            string   `json:"threadId"`
	QueuedSubmissionIDs []string `json:"queuedSubmissionIds"`
}

// QueueListParams names a thread and a page of its queue.
type QueueListParams struct {
	ThreadID string `json:"threadId"`
	ListParams
}

// QueueListResult is the queue, head first.
type QueueListResult struct {
	Data       []QueuedSubmission `json:"data"`
	NextCursor *string            `json:"nextCursor"`
}

// DeletedResult says whether there was anything to delete.
type DeletedResult struct {
	Deleted bool `json:"deleted"`
}
