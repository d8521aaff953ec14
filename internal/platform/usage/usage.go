// Package usage is the words for what runs cost: sums of settled turns by day,
// provider, model or thread. It holds no rows and decides nothing; the store
// answers a Query, and only turns that ended count.
package usage

import (
	"time"

	thole "github.com/tholehq/thole"
)

// By is what sums are grouped by.
type By string

const (
	ByDay      By = "day" // UTC
	ByProvider By = "provider"
	ByModel    By = "model"
	ByThread   By = "session"
)

// Valid reports whether b is a known grouping; empty means none.
func (b By) Valid() bool {
	return b == "" || b == ByDay || b == ByProvider || b == ByModel || b == ByThread
}

// Query selects settled turns of one user. Zero fields do not filter.
type Query struct {
	User   thole.UserID
	Thread thole.ThreadID
	From   time.Time
	To     time.Time // exclusive
	By     By
}

// Sum adds turns up. CostMicros leaves out the turns whose cost nobody knows;
// Unpriced counts them.
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
}
