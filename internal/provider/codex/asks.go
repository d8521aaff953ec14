package codex

import (
	"encoding/json"

	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/app"
)

// pending is a server request that waits for an answer.
type pending struct {
	request *appclient.Request
	thread  string
	ask     event.Ask
	network bool // of a command that codex lets reach no host unasked
}

// newAsk reads a server request; ok is false for requests that are no question
// to a human.
func (d *decoder) newAsk(id, method string, params json.RawMessage) (p pending, ok bool) {
	a := &p.ask
	about := func(thread, item, reason string) {
		p.thread, a.Reason = thread, reason
		a.ID = d.em.AskID(id + "/" + item)
		if item != "" {
			a.Item = d.em.ItemID(item)
		}
		a.Decisions = []event.Decision{event.DecisionAllow, event.DecisionAlways, event.DecisionDeny, event.DecisionCancel}
	}
	switch method {
	case "item/commandExecution/requestApproval":
		q, fits := read[app.CommandApproval](params)
		about(q.ThreadID, q.ItemID, val(q.Reason))
		a.Kind, a.Title, ok = event.AskCommand, "Run a command", fits
		a.Command, a.Argv = line(val(q.Command))
		a.Dir = val(q.Cwd)
		if q.ProposedExecpolicyAmendment != nil {
			a.Amendment, _ = json.Marshal(q.ProposedExecpolicyAmendment)
		}
		if n := q.NetworkApprovalContext; n != nil {
			p.network = true
			a.Kind, a.Title = event.AskPermissions, "Reach "+n.Host+" by "+n.Protocol
			a.Command, a.Argv, a.Amendment = "", "", nil
		}
	case "item/fileChange/requestApproval":
		q, fits := read[app.FileApproval](params)
		about(q.ThreadID, q.ItemID, val(q.Reason))
		a.Kind, a.Title, ok = event.AskFileChange, "Change files", fits
		if item, open := d.em.Opened(a.Item); open {
			a.Changes = item.Changes
		}
	case "item/permissions/requestApproval":
		q, fits := read[app.PermissionsApproval](params)
		about(q.ThreadID, q.ItemID, val(q.Reason))
		a.Kind, a.Title, ok = event.AskPermissions, "Grant more permissions", fits
		a.Amendment = value(q.Permissions)
	case "item/tool/requestUserInput":
		q, fits := read[app.UserInputRequest](params)
		about(q.ThreadID, q.ItemID, "")
		a.Kind, a.Decisions, ok = event.AskInput, nil, fits
		for _, q := range q.Questions {
			a.Questions = append(a.Questions, question(q))
		}
		if len(a.Questions) > 0 {
			a.Title = a.Questions[0].Text
		}
	case "item/tool/call":
		q, fits := read[app.ToolCall](params)
		about(q.ThreadID, q.CallID, "")
		toolAsk(a, q)
		ok = fits
	case "mcpServer/elicitation/request":
		q, fits := read[app.Elicitation](params)
		about(q.ThreadID, "", "")
		*a, ok = provider.Elicitation(a.ID, q.ServerName, q.Message, q.URL, value(q.RequestedSchema)), fits
	}
	return p, ok
}

func read[T any](params json.RawMessage) (v T, ok bool) {
	ok = strictjson.Unmarshal(params, &v) == nil
	return v, ok
}

func question(w app.Question) event.Question {
	q := event.Question{ID: w.ID, Header: w.Header, Text: w.Question, Free: w.IsOther || len(w.Options) == 0, Secret: w.IsSecret}
	for _, o := range w.Options {
		q.Options = append(q.Options, event.Option{Label: o.Label, Description: o.Description})
	}
	return q
}

// reply is the answer on the wire.
func (p pending) reply(a event.Answer) any {
	switch p.ask.Kind {
	case event.AskInput:
		answers := map[string]any{}
		for _, q := range p.ask.Questions {
			given := a.Answers[q.ID]
			if given == nil {
				given = []string{}
			}
			answers[q.ID] = map[string]any{"answers": given}
		}
		return map[string]any{"answers": answers}
	case event.AskElicitation:
		return provider.Elicited(a)
	case event.AskTool:
		return toolReply(a)
	case event.AskPermissions:
		if p.network {
			break
		}
		granted := json.RawMessage("{}")
		scope := "turn"
		if a.Decision == event.DecisionAllow || a.Decision == event.DecisionAlways {
			granted = p.ask.Amendment
			if a.Amendment != nil {
				granted = a.Amendment
			}
		}
		if a.Decision == event.DecisionAlways {
			scope = "session"
		}
		return map[string]any{"permissions": granted, "scope": scope}
	}
	return map[string]any{"decision": p.decision(a)}
}

// decision of a command or file change approval.
func (p pending) decision(a event.Answer) any {
	switch a.Decision {
	case event.DecisionAllow:
		return "accept"
	case event.DecisionAlways:
		if p.ask.Kind == event.AskCommand && len(a.Amendment) > 0 {
			return map[string]any{"acceptWithExecpolicyAmendment": map[string]any{"execpolicy_amendment": a.Amendment}}
		}
		return "acceptForSession"
	case event.DecisionCancel:
		return "cancel"
	}
	return "decline"
}
