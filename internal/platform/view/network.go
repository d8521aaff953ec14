package view

import (
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
)

// RunNetwork is what the processes of one run exchanged with the network.
type RunNetwork struct {
	RunID string `json:"run_id,omitempty" doc:"absent for what happens between runs"`
	// Live counts are of an executor that runs; they are recorded when its run ends.
	Live    bool            `json:"live,omitempty" doc:"so far; recorded when the run ends"`
	Traffic []event.Traffic `json:"traffic" doc:"one entry for each target and verdict"`
}

// OfNetwork is the record of a run.
func OfNetwork(turn thole.TurnID, list []event.Traffic, live bool) RunNetwork {
	return RunNetwork{RunID: string(turn), Live: live, Traffic: append([]event.Traffic{}, list...)}
}
