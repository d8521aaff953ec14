package appserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/commandline"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/serial"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/app"
)

// An ask goes to clients as a server request. Its id names the thread and the ask,
// so it is the same on every connection, in every process and after a restart: a
// late answer can only ever reach the ask that its sender saw.

func requestID(id thole.ThreadID, ask thole.AskID) string { return string(id) + "/" + string(ask) }

func parseRequestID(id jsonrpc.ID) (thole.ThreadID, thole.AskID, bool) {
	if _, isInt := id.Int(); isInt {
		return "", "", false
	}
	t, a, ok := strings.Cut(id.String(), "/")
	return thole.ThreadID(t), thole.AskID(a), ok && t != "" && a != ""
}

// request encodes an ask. dir is where the thread's agent works.
func request(id thole.ThreadID, turn thole.TurnID, a event.Ask, at int64, dir string) *frame {
	t, u, i := string(id), string(turn), string(cmp.Or(a.Item, thole.ItemID(a.ID)))
	rid, reason := requestID(id, a.ID), ptr(a.Reason)
	extra := &app.AskExtra{Kind: string(a.Kind), DeadlineAtMs: millis(a.Deadline), Line: a.Command}
	switch formOf(a) {
	case event.AskCommand:
		w := app.CommandApproval{
			Kind: "command", ThreadID: t, TurnID: u, ItemID: i, StartedAtMs: at, EnvironmentID: new("local"), Reason: reason, Cwd: new(absolute(dir, a.Dir)),
			ProposedExecpolicyAmendment: execRule(a), AvailableDecisions: decisions(a),
		}
		if a.Kind == event.AskCommand {
			w.Command, w.CommandActions = new(argv(a.Command, a.Argv)), actions(a.Command, *w.Cwd)
		} else {
			call := toolLine(a)
			w.Command, w.CommandActions = &call, []app.CommandAction{{Type: string(commandline.Unknown), Command: call}}
		}
		return ask(rid, "item/commandExecution/requestApproval", w, func() any { w.Thole = extra; return w })
	case event.AskFileChange:
		w := app.FileApproval{ThreadID: t, TurnID: u, ItemID: i, StartedAtMs: at, Reason: reason}
		return ask(rid, "item/fileChange/requestApproval", w, func() any { w.Thole = extra; return w })
	case event.AskPermissions:
		w := app.PermissionsApproval{ThreadID: t, TurnID: u, ItemID: i, EnvironmentID: new("local"), StartedAtMs: at, Cwd: absolute(dir, a.Dir), Reason: reason, Permissions: a.Amendment}
		return ask(rid, "item/permissions/requestApproval", w, func() any { w.Thole = extra; return w })
	case event.AskInput:
		w := app.UserInputRequest{ThreadID: t, TurnID: u, ItemID: i, Questions: oneChoice(questions(a)), IsBlocking: true}
		if left := thole.Millis(a.Deadline) - at; !a.Deadline.IsZero() && left > 0 {
			w.AutoResolutionMs = &left
		}
		return ask(rid, "item/tool/requestUserInput", w, func() any { w.Questions, w.Thole = questions(a), extra; return w })
	case event.AskElicitation:
		w := app.Elicitation{
			ThreadID: t, TurnID: &u, ServerName: cmp.Or(a.Title, "mcp"), Mode: "form", Message: cmp.Or(a.Reason, a.Title), RequestedSchema: a.Schema,
		}
		if len(w.RequestedSchema) == 0 {
			w.RequestedSchema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		return ask(rid, "mcpServer/elicitation/request", w, func() any { w.Thole = extra; return w })
	case event.AskTool:
		w := toolCall(t, u, i, a)
		return ask(rid, "item/tool/call", w, func() any { w.Thole = extra; return w })
	}
	return nil // of a kind that no agent puts any more
}

// The choices of a plan's approval, as a question: the contract has no other form.
const (
	planYes      = "Approve the plan"
	planNo       = "Keep planning"
	planQuestion = "plan"
)

func questions(a event.Ask) []app.Question {
	if a.Kind == event.AskPlan {
		return []app.Question{{
			ID: planQuestion, Header: "Plan", Question: cmp.Or(a.Title, "Is this plan good?"), IsOther: true,
			Options: []app.QuestionOption{{Label: planYes, Description: "Start working on it"}, {Label: planNo, Description: "Stay in plan mode"}},
		}}
	}
	out := make([]app.Question, 0, len(a.Questions))
	for _, q := range a.Questions {
		w := app.Question{ID: q.ID, Header: cmp.Or(q.Header, "Question"), Question: q.Text, IsOther: q.Free, IsSecret: q.Secret, Multi: q.Multi}
		for _, o := range q.Options {
			w.Options = append(w.Options, app.QuestionOption{Label: o.Label, Description: o.Description})
		}
		out = append(out, w)
	}
	return out
}

// oneChoice is questions for clients that know Codex's alone, which have one answer each.
func oneChoice(list []app.Question) []app.Question {
	for i := range list {
		if q := &list[i]; q.Multi {
			q.Multi = false
			q.Question += " (several may apply)"
		}
	}
	return list
}

func decisions(a event.Ask) []json.RawMessage {
	var out []json.RawMessage
	for _, d := range a.Decisions {
		switch d {
		case event.DecisionAllow:
			out = append(out, json.RawMessage(`"accept"`))
		case event.DecisionAlways:
			if rule := execRule(a); rule != nil {
				raw, _ := json.Marshal(map[string]any{"acceptWithExecpolicyAmendment": map[string]any{"execpolicy_amendment": rule}})
				out = append(out, raw)
			} else {
				out = append(out, json.RawMessage(`"acceptForSession"`))
			}
		case event.DecisionDeny:
			out = append(out, json.RawMessage(`"decline"`))
		case event.DecisionCancel:
			out = append(out, json.RawMessage(`"cancel"`))
		}
	}
	return out
}

// answered takes a client's answer to a server request. It runs on the reader and
// only hands it on. An error is no answer: an observer that does not know a
// request must not settle it for everybody.
func (c *conn) answered(m jsonrpc.Message) jsonrpc.Reaction {
	id, askID, ok := parseRequestID(m.ID)
	if !ok || m.Kind != jsonrpc.KindResponse || c.peer() == nil {
		return jsonrpc.Ignore()
	}
	raw := bytes.Clone(m.Result)
	err := c.srv.lanes.Submit(lane{laneThread, string(id)}, serial.Exclusive, func() { c.answer(id, askID, raw) })
	if err != nil {
		return jsonrpc.CloseWith("overloaded: an answer could not be taken")
	}
	return jsonrpc.Ignore()
}

func (c *conn) answer(id thole.ThreadID, askID thole.AskID, raw json.RawMessage) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	pending, err := c.srv.cfg.Threads.Asks(ctx, c.actor, id, true)
	if err != nil {
		return
	}
	for _, r := range pending {
		if r.Ask.ID != askID {
			continue
		}
		a, err := parseAnswer(r.Ask, raw)
		if err == nil {
			_, err = c.srv.cfg.Threads.Answer(ctx, c.who(), id, askID, a)
		}
		if err != nil && thole.CodeOf(err) != thole.CodeConflict {
			c.warn(id, "the answer was not taken: "+err.Error())
		}
	}
}

// warn sends a warning to this connection alone.
func (c *conn) warn(id thole.ThreadID, text string) {
	t := string(id)
	if f := note("warning", thole.Millis(c.srv.cfg.Now()), app.Warning{ThreadID: &t, Message: text}); f != nil {
		_ = c.rpc.TrySend(f.plain)
	}
}

// parseAnswer reads a client's answer to an ask, in the form in which it went out. What
// cannot be read is no answer.
func parseAnswer(a event.Ask, raw json.RawMessage) (event.Answer, error) {
	bad := func(err error) (event.Answer, error) {
		return event.Answer{}, thole.Errorf(thole.CodeInvalid, "answer to a %s ask: %w", a.Kind, err)
	}
	switch formOf(a) {
	case event.AskCommand, event.AskFileChange:
		var w app.ApprovalAnswer
		if err := strictjson.Unmarshal(raw, &w); err != nil {
			return bad(err)
		}
		out, err := decision(a, w.Decision)
		if err != nil {
			return bad(err)
		}
		return out, nil
	case event.AskPermissions:
		var w app.PermissionsAnswer
		if err := strictjson.Unmarshal(raw, &w); err != nil {
			return bad(err)
		}
		if none := strings.TrimSpace(string(w.Permissions)); none == "" || none == "{}" || none == "null" {
			return event.Answer{Decision: event.DecisionDeny}, nil
		}
		d := event.DecisionAllow
		if w.Scope == "session" {
			d = event.DecisionAlways
		}
		return event.Answer{Decision: d, Amendment: w.Permissions}, nil
	case event.AskInput:
		var w app.UserInputAnswer
		if err := strictjson.Unmarshal(raw, &w); err != nil {
			return bad(err)
		}
		if w.Answers == nil {
			return bad(thole.Errorf(thole.CodeInvalid, "no answers"))
		}
		if a.Kind == event.AskPlan {
			return planAnswer(w), nil
		}
		if len(w.Answers) == 0 { // the agent goes on without, it does not wait for a better one
			return event.Answer{Decision: event.DecisionDeny}, nil
		}
		out := event.Answer{Answers: map[string][]string{}}
		for q, list := range w.Answers {
			out.Answers[q] = list.Answers
		}
		return out, nil
	case event.AskElicitation:
		var w app.ElicitationAnswer
		if err := strictjson.Unmarshal(raw, &w); err != nil {
			return bad(err)
		}
		switch w.Action {
		case "accept":
			return event.Answer{Decision: event.DecisionAllow, Result: w.Content}, nil
		case "decline":
			return event.Answer{Decision: event.DecisionDeny}, nil
		case "cancel":
			return event.Answer{Decision: event.DecisionCancel}, nil
		}
		return bad(thole.Errorf(thole.CodeInvalid, "unknown action %q", w.Action))
	case event.AskTool:
		return toolAnswer(raw), nil
	}
	return bad(thole.Errorf(thole.CodeInvalid, "no client was asked"))
}

// planAnswer reads the question that a plan's approval went out as.
func planAnswer(w app.UserInputAnswer) event.Answer {
	said := strings.Join(w.Answers[planQuestion].Answers, "\n")
	switch said {
	case planYes:
		return event.Answer{Decision: event.DecisionAllow}
	case planNo, "":
		return event.Answer{Decision: event.DecisionDeny}
	}
	return event.Answer{Decision: event.DecisionDeny, Message: said}
}

// decision reads a verdict: a word, or an object that accepts the rule that the ask offered.
// Any other rule would allow what nobody was shown.
func decision(a event.Ask, raw json.RawMessage) (event.Answer, error) {
	var word string
	if strictjson.Unmarshal(raw, &word) == nil {
		switch word {
		case "accept", "approved":
			return event.Answer{Decision: event.DecisionAllow}, nil
		case "acceptForSession", "approved_for_session":
			return event.Answer{Decision: event.DecisionAlways}, nil
		case "decline", "denied":
			return event.Answer{Decision: event.DecisionDeny}, nil
		case "cancel", "abort":
			return event.Answer{Decision: event.DecisionCancel}, nil
		}
		return event.Answer{}, thole.Errorf(thole.CodeInvalid, "unknown decision %q", word)
	}
	var rule struct {
		Exec *struct {
			Amendment []string `json:"execpolicy_amendment"`
		} `json:"acceptWithExecpolicyAmendment"`
		Network json.RawMessage `json:"applyNetworkPolicyAmendment"`
	}
	if err := strictjson.Unmarshal(raw, &rule); err != nil {
		return event.Answer{}, thole.Errorf(thole.CodeInvalid, "unreadable decision: %w", err)
	}
	offered := execRule(a)
	switch {
	case len(rule.Network) > 0:
		return event.Answer{}, thole.Errorf(thole.CodeInvalid, "the ask offered no network rule to remember").WithHint("answer with accept or decline")
	case rule.Exec == nil:
		return event.Answer{}, thole.Errorf(thole.CodeInvalid, "unknown decision")
	case offered == nil:
		return event.Answer{}, thole.Errorf(thole.CodeInvalid, "the ask offered no rule to remember").WithHint("answer with acceptForSession")
	case !slices.Equal(rule.Exec.Amendment, offered):
		return event.Answer{}, thole.Errorf(thole.CodeInvalid, "the ask offered the rule %q, not %q", offered, rule.Exec.Amendment).WithHint("answer with the rule of proposedExecpolicyAmendment")
	}
	return event.Answer{Decision: event.DecisionAlways, Amendment: a.Amendment}, nil
}

func fromAnswer(w app.Answer) event.Answer {
	return event.Answer{
		Decision: event.Decision(w.Decision), Message: w.Message, Answers: w.Answers, Input: w.Input, Amendment: w.Amendment, Result: w.Result,
	}
}
