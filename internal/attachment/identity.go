package attachment

import (
	"fmt"

	thole "github.com/tholehq/thole"
)

// Identity names one process for ever: its pid may be used again, but not with
// the same start on the same boot.
type Identity struct {
	PID   int    `json:"pid"`
	Boot  string `json:"boot_id"`
	Start string `json:"start_ticks"`
}

// IdentityOf reads a running process's identity.
func IdentityOf(pid int) (Identity, error) {
	start, ok := startOf(pid)
	b := bootID()
	if !ok || b == "" {
		return Identity{}, thole.Errorf(thole.CodeUnavailable, "process %d cannot be identified", pid)
	}
	return Identity{PID: pid, Boot: b, Start: start}, nil
}

// Zero reports whether there is no process.
func (i Identity) Zero() bool { return i == Identity{} }

// Alive proves that the process still runs. What cannot be proven is an error.
func (i Identity) Alive() error {
	if i.Zero() {
		return thole.Errorf(thole.CodeUnavailable, "no process is known")
	}
	now, err := IdentityOf(i.PID)
	if err != nil || now != i {
		return thole.Errorf(thole.CodeGone, "process %d is gone", i.PID)
	}
	return nil
}

func (i Identity) String() string { return fmt.Sprintf("%d@%s", i.PID, i.Start) }
