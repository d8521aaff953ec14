// Package artifact owns result files: it copies them into the home, proves them
// by hash and size, decides what travels inline, and keeps them until nothing
// needs them.
//
// Ingest makes the bytes durable before the job that owns them may complete; from
// then on the caller's file does not matter. Sweep removes what retention lets
// go. Reads of large artifacts go in chunks under a short lease. The package does
// not know batches: delivery reports when the last one that refers to an
// artifact closed.
package artifact

import (
	"time"

	thole "github.com/tholehq/thole"
)

// Retention is how long an artifact is kept at least.
type Retention struct {
	Min       time.Duration // after it was made
	PostClose time.Duration // after the last batch that refers to it closed
}

// DefaultRetention is the shipped retention.
func DefaultRetention() Retention {
	return Retention{Min: 24 * time.Hour, PostClose: 72 * time.Hour}
}

// Record is what is stored about an artifact. Path and Manifest are relative to
// the artifact directory.
type Record struct {
	ID          thole.ArtifactID
	Job         thole.JobID
	Owner       thole.Owner
	Path        string
	Manifest    string
	Name        string // the base name it was handed in with
	ContentType string
	Size        int64
	SHA256      string
	CreatedAt   time.Time
	// Held is true while a running job or an open batch refers to the artifact.
	Held         bool
	LastClosedAt time.Time
	PinUntil     time.Time
	RemovedAt    time.Time
	Version      int64
}

// EligibleAt is when the artifact may be removed; false while something open
// refers to it.
func (r *Record) EligibleAt(k Retention) (time.Time, bool) {
	if r.Held {
		return time.Time{}, false
	}
	at := r.CreatedAt.Add(k.Min)
	if !r.LastClosedAt.IsZero() {
		if t := r.LastClosedAt.Add(k.PostClose); t.After(at) {
			at = t
		}
	}
	if r.PinUntil.After(at) {
		at = r.PinUntil
	}
	return at, true
}
