package app

import "encoding/json"

// Goal is what a thread works at by itself.
type Goal struct {
	ThreadID        string `json:"threadId"`
	Objective       string `json:"objective"`
	Status          string `json:"status" ts:"\"active\" | \"paused\" | \"blocked\" | \"usageLimited\" | \"budgetLimited\" | \"complete\""`
	TokenBudget     *int64 `json:"tokenBudget"`
	TokensUsed      int64  `json:"tokensUsed"`
	TimeUsedSeconds int64  `json:"timeUsedSeconds"`
	CreatedAt       int64  `json:"createdAt"`
	UpdatedAt       int64  `json:"updatedAt"`
}

// GoalSetParams gives a thread a goal or changes what is given. A tokenBudget of null
// takes the budget away; one that is left out stays.
type GoalSetParams struct {
	ThreadID    string          `json:"threadId"`
	Objective   *string         `json:"objective,omitempty"`
	Status      *string         `json:"status,omitempty" ts:"\"active\" | \"paused\" | \"blocked\" | \"usageLimited\" | \"budgetLimited\" | \"complete\""`
	Origin      *string         `json:"origin,omitempty" ts:"\"user\" | \"automatic\""`
	TokenBudget json.RawMessage `json:"tokenBudget,omitempty" ts:"number | null"`
}

// GoalSetResult is the goal as it is now.
type GoalSetResult struct {
	Goal Goal `json:"goal"`
}

// GoalGetResult is the thread's goal, null when it has none.
type GoalGetResult struct {
	Goal *Goal `json:"goal"`
}

// GoalClearResult says whether there was a goal.
type GoalClearResult struct {
	Cleared bool `json:"cleared"`
}

// GoalUpdated sends subscribers a thread's goal as it is now, with the turn that changed it.
type GoalUpdated struct {
	ThreadID string  `json:"threadId"`
	TurnID   *string `json:"turnId"`
	Goal     Goal    `json:"goal"`
}
