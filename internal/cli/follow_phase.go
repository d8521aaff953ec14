package cli

import (
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/protocol/app"
)

// phase says on the waiting line what the turn does.
func (f *follower) phase(method string, p notice) {
	switch method {
	case "thole/turn/phase":
		f.spin.set(phaseText(thole.Phase(p.Phase)))
	case "item/started", "thole/item/updated":
		switch it := p.Item; {
		case it.Type == app.ItemCommandExecution && it.CommandLine() != "":
			f.spin.set("running " + oneLine(it.CommandLine(), 60))
		case it.Type == app.ItemReasoning:
			f.spin.set("thinking")
		case it.Type == app.ItemFileChange:
			f.spin.set("editing files")
		case it.Tool != "":
			f.spin.set("using " + it.Tool)
		}
	case "item/completed", "item/agentMessage/delta":
		f.spin.set("working")
	}
}

// phaseText is a phase in words.
func phaseText(p thole.Phase) string {
	switch p {
	case thole.PhaseQueued:
		return "waiting for a free place"
	case thole.PhaseClaimed, thole.PhaseRestoring, thole.PhaseLinking:
		return "preparing the files"
	case thole.PhasePreparing:
		return "starting the agent"
	case thole.PhaseRunning:
		return "waiting for the model"
	case thole.PhaseWaitingHuman:
		return "waiting for an answer"
	case thole.PhaseSyncing, thole.PhaseExported:
		return "saving the files"
	}
	return ""
}
