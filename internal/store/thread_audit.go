package store

import (
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/thread"
)

// maxPaths is how many files of one edit a link names.
const maxPaths = 50

// linkEvents records what of a commit is a link: who answered which ask, and which files an
// agent says it edited.
func linkEvents(tx *sqldb.Tx, c *thread.Commit) error {
	for _, e := range c.Events {
		var entry audit.Entry
		by := e.Actor
		switch {
		case e.Kind == event.AskResolved && (e.Data.AskState == event.AskAnswered || e.Data.AskState == event.AskSelfAnswered):
			entry = answerEntry(e)
		case e.Kind == event.ItemCompleted && e.Data.Item != nil && e.Data.Item.Kind == event.ItemFileChange && e.Data.Item.State == event.StateCompleted:
			entry, by = editEntry(e), thole.AgentActor
		default:
			continue
		}
		o := c.Row.Thread.Owner
		entry.At, entry.App, entry.Project, entry.Owner = e.Time, o.App, o.Project, o.User
		if !by.Person() {
			entry.OnBehalf = o.User
		}
		if _, err := link(tx, byActor(tx, by, entry)); err != nil {
			return err
		}
	}
	return nil
}

// answerEntry leaves out what was written: it stays in the thread. An ask that the agent
// resolved by itself is the agent's.
func answerEntry(e event.Event) audit.Entry {
	after := map[string]string{"thread": string(e.Thread), "turn": string(e.Turn), "state": string(e.Data.AskState)}
	if e.Data.Answer != nil && e.Data.Answer.Decision != "" {
		after["decision"] = string(e.Data.Answer.Decision)
	}
	return audit.Entry{Action: "ask.answer", Kind: "ask", ID: string(e.Data.AskID), After: audit.Facts(after)}
}

type editedPath struct {
	Path string `json:"path"`
	Kind string `json:"kind"`
	Move string `json:"move,omitempty"`
}

func editEntry(e event.Event) audit.Entry {
	all := e.Data.Item.Changes
	paths := make([]editedPath, 0, min(len(all), maxPaths))
	for _, f := range all[:min(len(all), maxPaths)] {
		paths = append(paths, editedPath{boundText(f.Path, 200), f.Kind, boundText(f.Move, 200)})
	}
	return audit.Entry{Action: "file.edit", Kind: "thread", ID: string(e.Thread), After: audit.Facts(map[string]any{
		"turn": e.Turn, "item": e.Data.Item.ID, "files": len(all), "paths": paths,
	})}
}
