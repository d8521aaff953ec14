package app

import "encoding/json"

// AttachParams subscribes to a thread, continuing after a cursor when After is
// set. A cursor that the log no longer reaches is refused with the code "gone".
type AttachParams struct {
	ThreadID string  `json:"threadId"`
	After    *uint64 `json:"after,omitempty"`
	NoDeltas bool    `json:"noDeltas,omitempty"`
}

// AttachResult is the thread at Seq. Notifications that follow carry the member
// seq next to their params: the cursor to continue after.
type AttachResult struct {
	ThreadView
	Seq   uint64             `json:"seq"`
	Turn  *Turn              `json:"turn"` // the running turn with its items so far
	Asks  []Ask              `json:"asks"`
	Todos []Todo             `json:"todos"`
	Queue []QueuedSubmission `json:"queue"`
}

// Ask is a question with its durable state.
type Ask struct {
	ID      string `json:"id"`
	Kind    string `json:"kind"`
	State   string `json:"state" ts:"\"pending\" | \"answered\" | \"expired\" | \"canceled\" | \"self_answered\""`
	TurnID  string `json:"turnId"`
	ItemID  string `json:"itemId,omitempty"`
	Title   string `json:"title,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Command string `json:"command,omitempty"`
	// Cwd is where the command would run.
	Cwd string `json:"cwd,omitempty"`
	// Call is what would be called of a tool or granted, on one line.
	Call string `json:"call,omitempty"`
	// Input is what the agent gives the call, where an answer may replace it.
	Input     json.RawMessage `json:"input,omitempty"`
	Changes   []FileChange    `json:"changes,omitempty"`
	Questions []Question      `json:"questions,omitempty"`
	Decisions []string        `json:"decisions,omitempty"`
	Schema    json.RawMessage `json:"schema,omitempty"`
	AskedAtMs int64           `json:"askedAtMs"`
	// DeadlineMs is when the ask expires, absent when it waits for ever.
	DeadlineMs *int64  `json:"deadlineMs,omitempty"`
	Answer     *Answer `json:"answer,omitempty"`
	// AnsweredBy is "agent" when the agent answered itself (self_answered): no person did.
	AnsweredBy string `json:"answeredBy,omitempty"`
}

// Answer settles an ask.
type Answer struct {
	Decision  string              `json:"decision,omitempty" ts:"\"allow\" | \"always\" | \"deny\" | \"cancel\""`
	Message   string              `json:"message,omitempty"`
	Answers   map[string][]string `json:"answers,omitempty"`
	Input     json.RawMessage     `json:"input,omitempty"`
	Amendment json.RawMessage     `json:"amendment,omitempty"`
	Result    json.RawMessage     `json:"result,omitempty"`
}

// AskAnswerParams answers an ask by its id.
type AskAnswerParams struct {
	ThreadID string `json:"threadId"`
	AskID    string `json:"askId"`
	Answer   Answer `json:"answer"`
}

// AskResult carries one ask.
type AskResult struct {
	Ask Ask `json:"ask"`
}

// AskListParams lists a thread's asks.
type AskListParams struct {
	ThreadID    string `json:"threadId"`
	PendingOnly bool   `json:"pendingOnly,omitempty"`
}

// AskListResult is a thread's asks, oldest first.
type AskListResult struct {
	Data []Ask `json:"data"`
}

// Todo is one entry of the agent's list.
type Todo struct {
	ID      string `json:"id"`
	Content string `json:"content"`
	State   string `json:"state" ts:"\"todo\" | \"doing\" | \"done\" | \"canceled\""`
}

// TodoListResult is the agent's list as it is now.
type TodoListResult struct {
	Data []Todo `json:"data"`
}

// ProviderListResult is every agent CLI that this server can drive.
type ProviderListResult struct {
	Data []json.RawMessage `json:"data"`
}

// InputDelta is tool input while the model writes it.
type InputDelta struct {
	ThreadID string `json:"threadId"`
	TurnID   string `json:"turnId"`
	ItemID   string `json:"itemId"`
	Delta    string `json:"delta"`
}

// ItemUpdated replaces an item that is not complete yet.
type ItemUpdated struct {
	ThreadID string `json:"threadId"`
	TurnID   string `json:"turnId"`
	Item     Item   `json:"item"`
}

// TurnPhase is a turn's progress through the pipeline. Error is what went wrong on
// the way: at the end, why the turn's files are not saved.
type TurnPhase struct {
	ThreadID string `json:"threadId"`
	TurnID   string `json:"turnId"`
	Phase    string `json:"phase"`
	Error    string `json:"error,omitempty"`
}

// StepReset says that the agent repeats a model call: items of it that were not
// complete will not be.
type StepReset struct {
	ThreadID string `json:"threadId"`
	TurnID   string `json:"turnId"`
}
