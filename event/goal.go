package event

import "time"

// GoalStatus is where a goal stands. Only an active one is worked on without being asked.
type GoalStatus string

const (
	GoalActive        GoalStatus = "active"
	GoalPaused        GoalStatus = "paused"
	GoalBlocked       GoalStatus = "blocked"        // the agent cannot go on without a person
	GoalUsageLimited  GoalStatus = "usage_limited"  // a budget or an account allows no more
	GoalBudgetLimited GoalStatus = "budget_limited" // its own token budget is used
	GoalComplete      GoalStatus = "complete"
)

// GoalStatuses lists every status once.
var GoalStatuses = []GoalStatus{GoalActive, GoalPaused, GoalBlocked, GoalUsageLimited, GoalBudgetLimited, GoalComplete}

// Goal is what a thread works at, turn after turn, until it is reached. A value is never
// changed, only replaced.
type Goal struct {
	Objective string     `json:"objective"`
	Status    GoalStatus `json:"status"`
	// Budget is how many tokens may be used for it, 0 for no limit.
	Budget int64 `json:"budget,omitempty"`
	// Tokens and Millis are what turns used while it was active.
	Tokens int64 `json:"tokens,omitempty"`
	Millis int64 `json:"millis,omitempty"`
	// Alone counts the turns that began for it since a person last said something.
	Alone   int       `json:"alone,omitempty"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
}

// Spent reports whether the goal's own budget is used.
func (g Goal) Spent() bool { return g.Budget > 0 && g.Tokens >= g.Budget }
