package view

import (
	"strings"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
)

// InboxEntry is a pending question with what it asks in one text and the session
// that it is of.
type InboxEntry struct {
	Question
	Text    string       `json:"text" doc:"what is asked: the command, the paths of the files, the question in words"`
	Session InboxSession `json:"session"`
}

// InboxSession is what a session is known by.
type InboxSession struct {
	ID       string `json:"id"`
	Title    string `json:"title"`
	Provider string `json:"provider"`
	Archived bool   `json:"archived"`
	ParentID string `json:"parent_id,omitempty" doc:"the session whose agent started it"`
}

// OfWaiting converts a pending ask of a session.
func OfWaiting(r fold.AskRecord, s InboxSession) InboxEntry {
	return InboxEntry{Question: OfAsk(r), Text: AskText(r.Ask), Session: s}
}

// AskText is what an ask is about, without a verb: the page has one
// for its kind.
func AskText(a event.Ask) string {
	var all []string
	switch {
	case a.Command != "":
		return a.Command
	case len(a.Questions) > 0:
		for _, q := range a.Questions {
			all = append(all, q.Text)
		}
		return strings.Join(all, "\n")
	case len(a.Changes) > 0:
		for _, c := range a.Changes {
			all = append(all, c.Path)
		}
		return strings.Join(all, ", ")
	case a.Tool != nil && a.Title == "":
		return strings.TrimPrefix(a.Tool.Server+": "+a.Tool.Name, ": ")
	case a.Title == "":
		return a.Reason
	case a.Reason == "" || a.Kind == event.AskPlan:
		return a.Title
	}
	return a.Title + ": " + a.Reason
}
