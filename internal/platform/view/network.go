package view

import (
	"cmp"

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

// Reach is what the agents of a thread may reach.
type Reach struct {
	Policy  string   `json:"policy,omitempty" enum:"none,gateway,list,open" doc:"that holds"`
	Ceiling string   `json:"ceiling,omitempty" enum:"none,gateway,list,open" doc:"egress.policy of the configuration: no session may have more"`
	Allow   []string `json:"allow,omitempty" doc:"of this session; with policy list nothing else passes"`
	Models  []string `json:"models,omitempty" doc:"model endpoints, HOST:PORT, that pass every policy but none; known while an executor runs"`
}

// OfReach is the policy of a thread under that of the configuration.
func OfReach(ceiling string, n *event.NetworkPolicy, models []string) Reach {
	r := Reach{Policy: ceiling, Ceiling: ceiling, Models: models}
	if n != nil {
		r.Policy, r.Allow = cmp.Or(n.Policy, ceiling), n.Allow
	}
	return r
}
