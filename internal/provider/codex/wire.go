package codex

import (
	"encoding/json"
	"time"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/protocol/app"
)

// note is any notification's params: the union of the members that are read.
// Unknown members are ignored: newer servers add some.
type note struct {
	ThreadID  string           `json:"threadId"`
	TurnID    string           `json:"turnId"`
	Turn      *app.Turn        `json:"turn"`
	Item      *wireItem        `json:"item"`
	ItemID    string           `json:"itemId"`
	Delta     string           `json:"delta"`
	Index     int              `json:"summaryIndex"`
	Error     *app.TurnError   `json:"error"`
	WillRetry bool             `json:"willRetry"`
	Usage     *app.ThreadUsage `json:"tokenUsage"`
	Plan      []app.PlanStep   `json:"plan"`
	Message   string           `json:"message"`
	Changes   []app.FileChange `json:"changes"`
	RequestID json.RawMessage  `json:"requestId"`
	Limits    app.RateLimits   `json:"rateLimits"`
}

// limits are the account's windows that codex knows.
func (n *note) limits() (out []event.Limit) {
	add := func(name string, l *app.RateLimitWindow) {
		if l == nil {
			return
		}
		e := event.Limit{Name: name, Used: l.UsedPercent, Window: val(l.WindowDurationMins)}
		if resets := val(l.ResetsAt); resets > 0 {
			e.Resets = time.Unix(resets, 0).UTC()
		}
		out = append(out, e)
	}
	add("primary", n.Limits.Primary)
	add("secondary", n.Limits.Secondary)
	return out
}

// wireItem is an item with the members of kinds that only codex has. What has
// another shape in some kind is left as it came.
type wireItem struct {
	app.Item
	Summary json.RawMessage `json:"summary"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
	Name    string          `json:"name"`
	Output  json.RawMessage `json:"output"`
	Query   string          `json:"query"`
	Path    string          `json:"path"`
	Review  string          `json:"review"`
}

// opt is a member that is left out when it is empty.
func opt(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// val is what a member says, the zero value when it was left out.
func val[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
