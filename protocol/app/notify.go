package app

import "encoding/json"

// ThreadStarted announces a new thread to every connection.
type ThreadStarted struct {
	Thread Thread `json:"thread"`
}

// StatusChanged sends every connection a thread's new status.
type StatusChanged struct {
	ThreadID string       `json:"threadId"`
	Status   ThreadStatus `json:"status"`
}

// ThreadRef is the params of the notifications that only name a thread.
type ThreadRef struct {
	ThreadID string `json:"threadId"`
}

// NameUpdated sends every connection a thread's new name.
type NameUpdated struct {
	ThreadID   string `json:"threadId"`
	ThreadName string `json:"threadName,omitempty"`
}

// SettingsUpdated sends subscribers a thread's new settings.
type SettingsUpdated struct {
	ThreadID       string         `json:"threadId"`
	ThreadSettings ThreadSettings `json:"threadSettings"`
}

// TurnNotification is turn/started and turn/completed.
type TurnNotification struct {
	ThreadID string `json:"threadId"`
	Turn     Turn   `json:"turn"`
}

// ItemStarted announces an item that may still grow.
type ItemStarted struct {
	Item        Item   `json:"item"`
	ThreadID    string `json:"threadId"`
	TurnID      string `json:"turnId"`
	StartedAtMs int64  `json:"startedAtMs"`
}

// ItemDone announces an item that is final.
type ItemDone struct {
	Item          Item   `json:"item"`
	ThreadID      string `json:"threadId"`
	TurnID        string `json:"turnId"`
	CompletedAtMs int64  `json:"completedAtMs"`
}

// Delta extends an item's text or output.
type Delta struct {
	ThreadID     string `json:"threadId"`
	TurnID       string `json:"turnId"`
	ItemID       string `json:"itemId"`
	Delta        string `json:"delta"`
	SummaryIndex *int   `json:"summaryIndex,omitempty"`
	ContentIndex *int   `json:"contentIndex,omitempty"`
}

// SummaryPart opens a part of a reasoning item's summary.
type SummaryPart struct {
	ThreadID     string `json:"threadId"`
	TurnID       string `json:"turnId"`
	ItemID       string `json:"itemId"`
	SummaryIndex int    `json:"summaryIndex"`
}

// TokenUsage counts tokens.
type TokenUsage struct {
	TotalTokens           int64 `json:"totalTokens"`
	InputTokens           int64 `json:"inputTokens"`
	CachedInputTokens     int64 `json:"cachedInputTokens"`
	CacheWriteInputTokens int64 `json:"cacheWriteInputTokens"`
	OutputTokens          int64 `json:"outputTokens"`
	ReasoningOutputTokens int64 `json:"reasoningOutputTokens"`
}

// UsageUpdated sends subscribers what a thread has used.
type UsageUpdated struct {
	ThreadID   string      `json:"threadId"`
	TurnID     string      `json:"turnId"`
	TokenUsage ThreadUsage `json:"tokenUsage"`
}

// ThreadUsage is the thread's sum and its newest model call.
type ThreadUsage struct {
	Total              TokenUsage `json:"total"`
	Last               TokenUsage `json:"last"`
	ModelContextWindow *int64     `json:"modelContextWindow"`
}

// PlanUpdated replaces the agent's list of steps.
type PlanUpdated struct {
	ThreadID    string     `json:"threadId"`
	TurnID      string     `json:"turnId"`
	Explanation *string    `json:"explanation"`
	Plan        []PlanStep `json:"plan"`
}

// DiffUpdated is all that a turn has changed in files so far.
type DiffUpdated struct {
	ThreadID string `json:"threadId"`
	TurnID   string `json:"turnId"`
	Diff     string `json:"diff"`
}

// PatchUpdated replaces the edits of a fileChange that is not complete yet.
type PatchUpdated struct {
	ThreadID string       `json:"threadId"`
	TurnID   string       `json:"turnId"`
	ItemID   string       `json:"itemId"`
	Changes  []FileChange `json:"changes"`
}

// ToolProgress is what an MCP server reports of a call in progress.
type ToolProgress struct {
	ThreadID string `json:"threadId"`
	TurnID   string `json:"turnId"`
	ItemID   string `json:"itemId"`
	Message  string `json:"message"`
}

// PlanStep is one step of the agent's list.
type PlanStep struct {
	Step   string `json:"step"`
	Status string `json:"status" ts:"\"pending\" | \"inProgress\" | \"completed\""`
}

// ErrorNotification reports a failure inside a turn. It never ends the turn.
type ErrorNotification struct {
	Error     TurnError `json:"error"`
	WillRetry bool      `json:"willRetry"`
	ThreadID  string    `json:"threadId"`
	TurnID    string    `json:"turnId"`
}

// Warning is worth showing.
type Warning struct {
	ThreadID *string `json:"threadId"`
	Message  string  `json:"message"`
}

// RateLimitsUpdated reports how much of the account's allowances is used.
type RateLimitsUpdated struct {
	RateLimits RateLimits `json:"rateLimits"`
}

// RateLimits are the two windows of an account, nil where there is none.
type RateLimits struct {
	Primary   *RateLimitWindow `json:"primary"`
	Secondary *RateLimitWindow `json:"secondary"`
}

// RateLimitWindow is one of them. ResetsAt is in seconds of Unix time.
type RateLimitWindow struct {
	UsedPercent        int    `json:"usedPercent"`
	WindowDurationMins *int   `json:"windowDurationMins"`
	ResetsAt           *int64 `json:"resetsAt"`
}

// Resolved reports that a server request needs no answer any more.
type Resolved struct {
	ThreadID  string          `json:"threadId"`
	RequestID json.RawMessage `json:"requestId" ts:"string | number"`
}
