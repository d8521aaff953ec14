package event

import (
	"fmt"
	"time"
)

// Limit is how much of an allowance of the agent's account is used.
type Limit struct {
	Name   string    `json:"name"`             // the provider's word for it
	Used   int       `json:"used"`             // percent
	Window int       `json:"window,omitempty"` // minutes
	Resets time.Time `json:"resets,omitzero"`
}

// Near reports whether it is worth a remark.
func (l Limit) Near() bool { return l.Used >= 80 }

// String is a remark: "82% of the primary limit (5h0m0s) is used".
func (l Limit) String() string {
	s := fmt.Sprintf("%d%% of the %s limit", l.Used, l.Name)
	if l.Window > 0 {
		s += fmt.Sprintf(" (%s)", time.Duration(l.Window)*time.Minute)
	}
	s += " is used"
	if !l.Resets.IsZero() {
		s += " until " + l.Resets.UTC().Format("2006-01-02 15:04 MST")
	}
	return s
}
