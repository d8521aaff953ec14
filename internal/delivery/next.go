package delivery

import (
	"fmt"
	"slices"

	thole "github.com/tholehq/thole"
)

// Next is what a human types about a batch that does not go on by itself; nothing
// for one that does. What follows # says why.
func (v BatchView) Next() []string {
	b := &v.Batch
	if b.CloseReason != "" || !v.Head && !b.Aside() {
		return nil
	}
	thread := fmt.Sprintf("--source-thread-id %s", v.Lane.Thread)
	if v.Lane.Endpoint != "" {
		thread += fmt.Sprintf(" --endpoint %q", v.Lane.Endpoint)
	}
	look := "thole thread show " + string(v.Lane.Thread)
	if b.Target == thole.TargetCLI {
		look = "codex resume " + string(v.Lane.Thread)
	}
	if b.Aside() {
		thread += " --batch-id " + string(b.ID)
	}
	arrived := "thole batch close-head " + thread + " --reason operator_confirmed_delivery"
	again := "thole batch deliver " + string(b.ID)
	drop := "thole batch close-head " + thread + " --reason operator_closed_unconfirmed"
	open := v.open()
	switch {
	case open != nil && open.State == thole.AttemptAcceptPending:
		return []string{unsettledHint(b, open)}
	case b.Replay != thole.ReplayManual:
		return nil
	case !slices.ContainsFunc(v.Attempts, func(a Attempt) bool { return a.mayHaveArrived() }):
		return append(v.results(), again+"   # to send it all the same", drop+"   # once you have seen it")
	}
	return []string{look + "   # is the result there?", arrived + "   # if it is", again + " --anyway   # if it is not", drop + "   # if it does not matter"}
}

// results are the commands that show what the batch carries.
func (v BatchView) results() (lines []string) {
	for _, j := range v.Jobs {
		line := "thole job query " + string(j.ID)
		if j.Artifact != "" {
			line = "thole artifact read --artifact-id " + string(j.Artifact)
		}
		lines = append(lines, line+"   # the result")
	}
	return lines
}

func (v BatchView) open() *Attempt {
	for i := range v.Attempts {
		if v.Attempts[i].State.Open() {
			return &v.Attempts[i]
		}
	}
	return nil
}

// unsettledHint is the way out of a call without an answer: it is settled as soon
// as its receiver answers or is gone.
func unsettledHint(b *Batch, a *Attempt) string {
	if b.Target != thole.TargetCLI || a.Observation.Attachment == "" {
		return "thole daemon status   # it is settled by itself while the daemon runs"
	}
	return fmt.Sprintf("thole codex sessions inspect %s   # it is settled when that server answers, or when its process is ended", a.Observation.Attachment)
}
