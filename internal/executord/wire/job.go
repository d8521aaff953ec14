package wire

import (
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
)

// JobRequest starts the command of a job in the box of its thread. Repeating a request
// changes nothing and returns the job's state.
type JobRequest struct {
	ID      thole.JobID   `json:"id"`
	Argv    []string      `json:"argv"`
	Timeout time.Duration `json:"timeout,omitempty"`
	// Network is what the thread may reach.
	Network *event.NetworkPolicy `json:"network,omitempty"`
}

// Job is a command as executord knows it. Of one that is over Ended is true.
type Job struct {
	ID    thole.JobID `json:"id"`
	Ended bool        `json:"ended"`
	// ExitCode is -1 where the command did not end by itself; Summary says how it ended.
	ExitCode int    `json:"exit_code"`
	Summary  string `json:"summary,omitempty"`
	Bytes    int64  `json:"bytes"` // of output
}

// JobEnd ends the command of a job, if it runs. With Forget nothing is kept of it.
type JobEnd struct {
	ID     thole.JobID `json:"id"`
	Why    string      `json:"why,omitempty"`
	Forget bool        `json:"forget,omitempty"`
}

// MaxJobOutput bounds what is kept of a command's output.
const MaxJobOutput = 64 << 20
