// Package usage is the words for what turns used: sums of model calls, and of turns that
// made none through the gateway, by day, owner, provider, model, upstream or thread. It
// holds no rows and decides nothing; the store answers a Query.
package usage

import (
	"slices"
	"time"

	thole "github.com/tholehq/thole"
)

// By is what sums are grouped by.
type By string

const (
	ByDay      By = "day" // UTC
	ByUser     By = "user"
	ByProject  By = "project"
	ByApp      By = "app"
	ByProvider By = "provider"
	ByModel    By = "model"
	ByThread   By = "session"
	ByUpstream By = "upstream" // "" is what did not go through the gateway
)

// Groups are all groupings.
var Groups = []By{ByDay, ByUser, ByProject, ByApp, ByProvider, ByModel, ByThread, ByUpstream}

// Valid reports whether b is a known grouping; empty means none.
func (b By) Valid() bool { return b == "" || slices.Contains(Groups, b) }

// Query selects what was used. Zero fields do not filter. A call counts when it is
// settled, at the time it began; a turn without calls at its end.
type Query struct {
	User   thole.UserID
	Thread thole.ThreadID
	From   time.Time
	To     time.Time // exclusive
	By     By
}

// Sum adds up. CostMicros leaves out what has no price; Unpriced counts the turns with
// such a call.
type Sum struct {
	Key        string
	Turns      int64
	Input      int64
	Output     int64
	Reasoning  int64
	CacheRead  int64
	CacheWrite int64
	CostMicros int64
	Unpriced   int64
	// Calls through the gateway, and those of them whose usage nobody knows: they
	// count with an upper bound.
	Calls   int64
	Unknown int64
	// Differs counts turns whose agent's own figure is more than 5 % off.
	Differs int64
}
