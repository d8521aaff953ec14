package codex

import (
	"encoding/json"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/strictjson"
)

// pending is a server request that waits for an answer.
type pending struct {
	id     jsonrpc.ID
	ask    event.Ask
	params askParams
}

// newAsk reads a server request; ok is false for requests that are no question
// to a human.
func (d *decoder) newAsk(id jsonrpc.ID, method string, params json.RawMessage) (p pending, ok bool) {
	p = pending{id: id}
	if strictjson.Unmarshal(params, &p.params) != nil {
		return p, false
	}
	a := &p.ask
	a.ID = d.em.AskID(id.String() + "/" + p.params.ItemID)
	a.Reason = p.params.Reason
	if p.params.ItemID != "" {
		a.Item = d.em.ItemID(p.params.ItemID)
	}
	a.Decisions = []event.Decision{event.DecisionAllow, event.DecisionAlways, event.DecisionDeny, event.DecisionCancel}
	switch method {
	case "item/commandExecution/requestApproval":
		a.Kind, a.Title = event.AskCommand, "Run a command"
		a.Command, a.Dir = unwrap(p.params.Command), p.params.Cwd
		a.Amendment = value(p.params.Amendment)
	case "item/fileChange/requestApproval":
		a.Kind, a.Title = event.AskFileChange, "Change files"
		if item, open := d.em.Opened(a.Item); open {
			a.Changes = item.Changes
		}
	case "item/permissions/requestApproval":
		a.Kind, a.Title = event.AskPermissions, "Grant more permissions"
		a.Amendment = value(p.params.Permissions)
	case "item/tool/requestUserInput":
		a.Kind, a.Decisions = event.AskInput, nil
		for _, q := range p.params.Questions {
			a.Questions = append(a.Questions, question(q))
		}
		if len(a.Questions) > 0 {
			a.Title = a.Questions[0].Text
		}
	case "mcpServer/elicitation/request":
		item := a.Item
		*a = provider.Elicitation(a.ID, p.params.ServerName, p.params.Message, p.params.URL, value(p.params.Schema))
		a.Item = item
	default:
		return p, false
	}
	return p, true
}

func question(w wireQuestion) event.Question {
	q := event.Question{ID: w.ID, Header: w.Header, Text: w.Text, Free: w.Other || len(w.Options) == 0, Secret: w.Secret}
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
	case event.AskPermissions:
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
