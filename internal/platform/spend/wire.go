package spend

import "time"

// Methods on a home's socket.
const (
	MethodUsage  = "thole/usage"
	MethodPrices = "thole/usage/prices"

	MethodBudgetSet    = "thole/budget/set"
	MethodBudgetList   = "thole/budget/list"
	MethodBudgetShow   = "thole/budget/show"
	MethodBudgetRemove = "thole/budget/remove"
)

// UsageParams asks what was used.
type UsageParams struct {
	By     string    `json:"by,omitempty"`
	Thread string    `json:"thread,omitempty"`
	From   time.Time `json:"from,omitzero"`
	To     time.Time `json:"to,omitzero"`
}

// BudgetParams names a budget.
type BudgetParams struct {
	ID string `json:"id,omitempty"`
}
