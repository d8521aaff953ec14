package opencode

import (
	"encoding/json"
	"strconv"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
)

// pending is a permission or question of the server that waits for a human.
type pending struct {
	ask    event.Ask
	native nativeAsk
}

func (p *pending) question() bool { return p.ask.Kind == event.AskInput }

func askID(native string) thole.AskID { return provider.StableID[thole.AskID](name, "ask", native) }

func questionID(i int) string { return "q" + strconv.Itoa(i+1) }

func questionAsk(item thole.ItemID, a nativeAsk) event.Ask {
	ask := event.Ask{ID: askID(a.ID), Kind: event.AskInput, Item: item,
		Decisions: []event.Decision{event.DecisionAllow, event.DecisionDeny, event.DecisionCancel}}
	for i, q := range a.Questions {
		tq := event.Question{ID: questionID(i), Header: q.Header, Text: q.Question, Multi: q.Multiple, Free: q.Custom == nil || *q.Custom}
		for _, o := range q.Options {
			tq.Options = append(tq.Options, event.Option{Label: o.Label, Description: o.Description})
		}
		ask.Questions = append(ask.Questions, tq)
	}
	return ask
}

func permissionAsk(item thole.ItemID, dir string, a nativeAsk) event.Ask {
	ask := event.Ask{ID: askID(a.ID), Item: item,
		Decisions: []event.Decision{event.DecisionAllow, event.DecisionAlways, event.DecisionDeny, event.DecisionCancel}}
	if len(a.Always) > 0 {
		ask.Amendment, _ = json.Marshal(map[string]any{"permission": a.Permission, "patterns": a.Always})
	}
	switch a.Permission {
	case "bash":
		ask.Kind, ask.Dir, ask.Command = event.AskCommand, dir, a.Metadata.Command
		if ask.Command == "" {
			ask.Command = strings.Join(a.Patterns, " && ")
		}
	case "edit":
		ask.Kind, ask.Changes = event.AskFileChange, []event.FileChange{changeOf(dir, a)}
	default:
		ask.Kind, ask.Title = event.AskPermissions, a.Permission
		ask.Reason = strings.Join(a.Patterns, ", ")
	}
	return ask
}

// changeOf is the edit that a permission is asked for.
func changeOf(dir string, a nativeAsk) event.FileChange {
	c := event.FileChange{Path: provider.Relative(dir, a.Metadata.Filepath), Kind: "update", Diff: plainDiff(a.Metadata.Diff)}
	if strings.Contains(c.Diff, "\n@@ -0,0 ") || strings.HasPrefix(c.Diff, "@@ -0,0 ") {
		c.Kind = "add"
	}
	return c
}

// plainDiff drops the "Index:" lines that the server's diffs begin with.
func plainDiff(diff string) string {
	if strings.HasPrefix(diff, "Index: ") {
		if _, rest, ok := strings.Cut(diff, "\n---"); ok {
			return "---" + rest
		}
	}
	return diff
}

// answersOf are the answers in the order of the questions. Declining is an answer
// too: the server would end the turn on a rejection.
func (p *pending) answersOf(a event.Answer) [][]string {
	out := make([][]string, len(p.native.Questions))
	for i := range out {
		out[i] = a.Answers[questionID(i)]
		if a.Decision == event.DecisionDeny {
			msg := a.Message
			if msg == "" {
				msg = "The user did not answer this question."
			}
			out[i] = []string{msg}
		}
		if out[i] == nil {
			out[i] = []string{}
		}
	}
	return out
}
