package acp

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/app"
)

// shownAsk is an ask that the editor was sent. It stays open for every client of the
// thread; the first answer counts.
type shownAsk struct {
	app.Ask
	request jsonrpc.ID // the editor's open request, zero when it has answered
	given   map[string][]string
	picked  []string    // of the question that is being answered and has several answers
	call    *wantedCall // of a tool of the editor's servers, that waits for the user
}

// askedNow shows what waits for an answer.
func (s *session) askedNow() {
	got, err := call[app.AskListResult](s.ctx, s.srv.owner, "thole/ask/list", app.AskListParams{ThreadID: s.id, PendingOnly: true})
	if err != nil {
		s.warn("What the agent asks cannot be read: " + err.Error())
		return
	}
	s.showAsks(got.Data)
}

// showAsks takes all asks that are pending: new ones are shown, others withdrawn.
func (s *session) showAsks(pending []app.Ask) {
	for id := range s.asks {
		if !slices.ContainsFunc(pending, func(a app.Ask) bool { return a.ID == id }) {
			s.withdraw(s.id + "/" + id)
		}
	}
	for _, a := range pending {
		if s.asks[a.ID] == nil {
			shown := &shownAsk{Ask: a}
			s.asks[a.ID] = shown
			s.show(shown)
		}
	}
}

// show asks the editor in the form that it has for the kind.
func (s *session) show(a *shownAsk) {
	switch event.AskKind(a.Kind) {
	case event.AskCommand, event.AskFileChange, event.AskPermissions:
		s.approve(a)
	case event.AskPlan:
		c := s.callFor(a, kindMode, "Approve the plan?")
		if a.Title != "" {
			c.Content = []toolContent{toolText(a.Title)}
		}
		s.permission(a, c, []permissionOption{
			{string(event.DecisionAllow), "Approve the plan", "allow_once"}, {string(event.DecisionDeny), "Keep planning", "reject_once"},
		}, func(choice string) { s.settle(a, app.Answer{Decision: choice}) })
	case event.AskInput:
		if s.srv.can.forms {
			s.form(a, questionForm(a.Questions), func(raw json.RawMessage) app.Answer { return app.Answer{Answers: formAnswers(a.Questions, raw)} })
			return
		}
		s.question(a)
	case event.AskElicitation:
		schema := a.Schema
		if s.srv.can.forms && simpleForm(schema) {
			s.form(a, schema, func(raw json.RawMessage) app.Answer {
				return app.Answer{Decision: string(event.DecisionAllow), Result: raw}
			})
			return
		}
		s.elsewhere(a)
	case event.AskTool: // the client that has the tool answers; see consider
	default:
		s.elsewhere(a)
	}
}

// callFor is the tool call that waits for the answer. One that the editor has not heard of
// is announced first.
func (s *session) callFor(a *shownAsk, kind, title string) toolCall {
	c := toolCall{ID: cmp.Or(a.ItemID, a.ID), Title: title, Kind: kind, Status: statusPending}
	have := s.turn(a.TurnID).item(c.ID)
	if !have.tool && !have.done {
		have.tool, have.waits = true, true
		first := c
		first.Update = "tool_call"
		s.update(first)
	}
	return c
}

// approve asks for a verdict on a command, edits or rights.
func (s *session) approve(a *shownAsk) {
	kind, title := kindOther, cmp.Or(a.Title, "The agent asks for a permission")
	switch {
	case a.Command != "":
		kind, title = kindExecute, shellLine(a.Command)
	case len(a.Changes) > 0:
		kind, title = kindEdit, "Edit files"
	}
	c := s.callFor(a, kind, title)
	switch {
	case a.Command != "":
		c.RawInput = object{"command": title, "cwd": s.cwd}
	case len(a.Changes) > 0:
		changes(&c, a.Changes, s.cwd)
	}
	if a.Reason != "" && a.Reason != title {
		c.Content = append(c.Content, toolText(a.Reason))
	}
	offered := a.Decisions
	if len(offered) == 0 {
		offered = []string{string(event.DecisionAllow), string(event.DecisionDeny)}
	}
	var options []permissionOption
	for _, o := range []permissionOption{
		{string(event.DecisionAllow), "Allow", "allow_once"}, {string(event.DecisionAlways), "Always allow", "allow_always"}, {string(event.DecisionDeny), "Reject", "reject_once"},
	} {
		if slices.Contains(offered, o.ID) {
			options = append(options, o)
		}
	}
	s.permission(a, c, options, func(choice string) { s.settle(a, app.Answer{Decision: choice}) })
}

// question puts the first question that has no answer as a choice: an editor without forms
// has nothing else.
func (s *session) question(a *shownAsk) {
	i := len(a.given)
	if i == len(a.Questions) {
		s.settle(a, app.Answer{Answers: a.given})
		return
	}
	q := a.Questions[i]
	var options []permissionOption
	var about []string
	for _, o := range q.Options {
		if slices.Contains(a.picked, o.Label) {
			continue
		}
		options = append(options, permissionOption{o.Label, o.Label, "allow_once"})
		if o.Description != "" {
			about = append(about, o.Label+": "+o.Description)
		}
	}
	const skip, done = "\x00skip", "\x00done"
	if len(a.picked) > 0 {
		options = append(options, permissionOption{done, "No more", "allow_once"})
		about = append(about, "Chosen: "+strings.Join(a.picked, ", "))
	} else {
		options = append(options, permissionOption{skip, "Skip", "reject_once"})
	}
	c := s.callFor(a, kindOther, q.Question)
	c.Title = q.Question
	if q.Multi {
		about = append(about, "Several may apply: each is chosen on its own.")
	}
	if q.IsOther || len(q.Options) == 0 {
		about = append(about, "Another answer can be given with: thole thread answer "+s.id+" "+a.ID+" --answer '"+q.ID+"=TEXT'")
	}
	if len(about) > 0 {
		c.Content = []toolContent{toolText(strings.Join(about, "\n"))}
	}
	s.permission(a, c, options, func(choice string) {
		if choice == skip {
			s.settle(a, app.Answer{Decision: string(event.DecisionDeny)})
			return
		}
		if choice != done {
			a.picked = append(a.picked, choice)
		}
		if !q.Multi || choice == done || len(a.picked) == len(q.Options) {
			if a.given == nil {
				a.given = map[string][]string{}
			}
			a.given[q.ID], a.picked = a.picked, nil
		}
		s.question(a)
	})
}

// permission asks the editor. An error is no answer, as the editor may not know the
// request; that the user dismissed it is.
func (s *session) permission(a *shownAsk, c toolCall, options []permissionOption, then func(choice string)) {
	s.request(a, "session/request_permission", object{"sessionId": s.id, "toolCall": c, "options": options}, func(raw json.RawMessage) {
		var got permissionAnswer
		if strictjson.Unmarshal(raw, &got) != nil {
			return
		}
		switch {
		case got.Outcome.Outcome == "cancelled":
			s.dismissed(a)
		case got.Outcome.Outcome == "selected" && slices.ContainsFunc(options, func(o permissionOption) bool { return o.ID == got.Outcome.OptionID }):
			then(got.Outcome.OptionID)
		}
	})
}

// dismissed: editors answer so when they cancel the turn, which settles the ask itself.
func (s *session) dismissed(a *shownAsk) {
	if a.call != nil {
		a.call.settle(false)
		return
	}
	for _, p := range s.prompts {
		if p.cancelled {
			return
		}
	}
	s.settle(a, app.Answer{Decision: string(event.DecisionCancel)})
}

// form asks for data.
func (s *session) form(a *shownAsk, schema json.RawMessage, read func(json.RawMessage) app.Answer) {
	message := cmp.Or(a.Reason, a.Title, "The agent needs an answer.")
	if len(a.Questions) == 1 {
		message = a.Questions[0].Question
	}
	p := object{"sessionId": s.id, "mode": "form", "message": message, "requestedSchema": schema}
	if a.ItemID != "" {
		p["toolCallId"] = a.ItemID
	}
	s.request(a, "elicitation/create", p, func(raw json.RawMessage) {
		var got elicitationAnswer
		if strictjson.Unmarshal(raw, &got) != nil {
			return
		}
		switch got.Action {
		case "accept":
			s.settle(a, read(got.Content))
		case "decline":
			s.settle(a, app.Answer{Decision: string(event.DecisionDeny)})
		case "cancel":
			s.dismissed(a)
		}
	})
}

// request sends the editor a request for an ask; answered runs in the session.
func (s *session) request(a *shownAsk, method string, params any, answered func(json.RawMessage)) {
	id, err := s.srv.rpc.Go(s.ctx, method, params, func(raw json.RawMessage, err error) {
		s.later(func() {
			if s.asks[a.ID] != a {
				return // withdrawn
			}
			a.request = jsonrpc.ID{}
			if err == nil {
				answered(raw)
			}
		})
	})
	if err == nil {
		a.request = id
	}
}

// settle gives the thread the answer. Another client may have been first.
func (s *session) settle(a *shownAsk, answer app.Answer) {
	_, err := call[app.AskResult](s.ctx, s.srv.owner, "thole/ask/answer", app.AskAnswerParams{ThreadID: s.id, AskID: a.ID, Answer: answer})
	switch class(err) {
	case "", thole.CodeConflict, thole.CodeNotFound, thole.CodeGone:
	default:
		s.warn("The answer was not taken: " + err.Error())
	}
}

// withdraw takes back what the editor need not answer any more. id is the owner's name
// for the ask: thread/ask.
func (s *session) withdraw(id string) {
	_, ask, _ := strings.Cut(id, "/")
	a := s.asks[ask]
	if a == nil {
		return
	}
	delete(s.asks, ask)
	if a.call != nil {
		a.call.settle(false)
	}
	call := cmp.Or(a.ItemID, a.ID)
	if have := s.turn(a.TurnID).item(call); have.waits {
		have.waits, have.tool = false, false
		s.update(toolCall{Update: "tool_call_update", ID: call, Status: statusCompleted})
	}
	if !a.request.IsZero() {
		_ = s.srv.rpc.Notify(s.ctx, "$/cancel_request", object{"requestId": a.request})
	}
}

// elsewhere says how to answer what the editor has no form for.
func (s *session) elsewhere(a *shownAsk) {
	s.warn("The agent waits for an answer that this editor cannot give: " + cmp.Or(a.Reason, a.Title, a.Kind) + ". Give it with: thole thread answer " + s.id + " " + a.ID)
}

// questionForm is questions as a form: a choice for each, and a line for another answer.
func questionForm(list []app.Question) json.RawMessage {
	fields := object{}
	var required []string
	for _, q := range list {
		f := object{"type": "string", "title": cmp.Or(q.Header, q.Question), "description": q.Question}
		if len(q.Options) > 0 {
			choices := make([]object, 0, len(q.Options))
			for _, o := range q.Options {
				c := object{"const": o.Label, "title": o.Label}
				if o.Description != "" {
					c["description"] = o.Description
				}
				choices = append(choices, c)
			}
			if q.Multi {
				f["type"], f["items"] = "array", object{"anyOf": choices}
			} else {
				f["oneOf"] = choices
			}
		}
		fields[q.ID] = f
		if len(q.Options) > 0 && q.IsOther {
			fields[q.ID+otherField] = object{"type": "string", "title": "Another answer"}
		} else {
			required = append(required, q.ID)
		}
	}
	return encode(object{"type": "object", "properties": fields, "required": required})
}

const otherField = "_other"

func formAnswers(list []app.Question, raw json.RawMessage) map[string][]string {
	var content map[string]json.RawMessage
	_ = strictjson.Unmarshal(raw, &content)
	out := map[string][]string{}
	for _, q := range list {
		var word, other string
		var words []string
		if strictjson.Unmarshal(content[q.ID], &word) == nil && word != "" {
			words = []string{word}
		} else {
			_ = strictjson.Unmarshal(content[q.ID], &words)
		}
		if strictjson.Unmarshal(content[q.ID+otherField], &other) == nil && other != "" {
			if !q.Multi {
				words = nil
			}
			words = append(words, other)
		}
		out[q.ID] = words
	}
	return out
}

// simpleForm reports whether a schema is one that editors show: an object of plain values.
// It is an MCP server's, so that is looked at here.
func simpleForm(raw json.RawMessage) bool {
	var schema struct {
		Type       string                     `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if strictjson.Unmarshal(raw, &schema) != nil || schema.Type != "object" {
		return false
	}
	for _, p := range schema.Properties {
		var field struct {
			Type string `json:"type"`
		}
		if strictjson.Unmarshal(p, &field) != nil || !slices.Contains([]string{"string", "number", "integer", "boolean", "array"}, field.Type) {
			return false
		}
	}
	return true
}
