// Package procid names one process for ever: its pid may be used again, but not
// with the same start on the same boot. It proves that a process still runs and
// reaches none.
package procid

import (
	"fmt"
	"os"
)

// Identity is one process.
type Identity struct {
	PID   int    `json:"pid"`
	Boot  string `json:"boot_id"`
	Start string `json:"start_ticks"`
}

// Of is the process that has the pid now; one that is not there is never alive.
func Of(pid int) Identity {
	start, ok := startOf(pid)
	if !ok {
		return Identity{PID: pid}
	}
	return Identity{PID: pid, Boot: boot(), Start: start}
}

// Self is this process.
func Self() Identity { return Of(os.Getpid()) }

// Zero reports whether no process is meant.
func (i Identity) Zero() bool { return i == Identity{} }

// Alive proves that exactly this process still runs: not its successor under the
// same pid, and no zombie. What cannot be proven is an error.
func (i Identity) Alive() error {
	switch {
	case i.Zero():
		return fmt.Errorf("no process is known")
	case i.Start == "" || Of(i.PID) != i:
		return fmt.Errorf("process %d is gone", i.PID)
	}
	return nil
}

func (i Identity) String() string { return fmt.Sprintf("%d@%s", i.PID, i.Start) }
