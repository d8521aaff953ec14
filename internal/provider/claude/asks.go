package claude

import (
	"encoding/json"
	"strconv"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/strictjson"
)

const askTool = "AskUserQuestion"

// pending is a control request of the CLI that waits for a human.
type pending struct {
	ask       event.Ask
	requestID string
	toolUse   string
	hook      bool // a question held in its hook: it can be deferred
	tool      string
	input     json.RawMessage
}

// askID is derived from the call, so that a question asked again by another
// process after a deferral is the same ask.
func askID(toolUse string) thole.AskID { return provider.StableID[thole.AskID](name, "ask", toolUse) }

type questionInput struct {
	Questions []struct {
		Question    string `json:"question"`
		Header      string `json:"header"`
		MultiSelect bool   `json:"multiSelect"`
		Options     []struct {
			Label       string `json:"label"`
			Description string `json:"description"`
		} `json:"options"`
	} `json:"questions"`
}

func questionID(i int) string { return "q" + strconv.Itoa(i+1) }

// question is the ask for a call of AskUserQuestion.
func question(item thole.ItemID, toolUse string, input json.RawMessage) event.Ask {
	var in questionInput
	_ = strictjson.Unmarshal(input, &in) // what cannot be read is not asked
	a := event.Ask{ID: askID(toolUse), Kind: event.AskInput, Item: item, Decisions: []event.Decision{event.DecisionAllow, event.DecisionDeny, event.DecisionCancel}}
	for i, q := range in.Questions {
		tq := event.Question{ID: questionID(i), Header: q.Header, Text: q.Question, Multi: q.MultiSelect, Free: true}
		for _, o := range q.Options {
			tq.Options = append(tq.Options, event.Option{Label: o.Label, Description: o.Description})
		}
		a.Questions = append(a.Questions, tq)
	}
	return a
}

// approval is the ask for a can_use_tool request.
func approval(item thole.ItemID, dir string, r *request) event.Ask {
	a := event.Ask{
		ID: askID(r.ToolUseID), Item: item, Title: r.Description, Reason: r.Reason,
		Decisions: []event.Decision{event.DecisionAllow, event.DecisionAlways, event.DecisionDeny, event.DecisionCancel},
		Amendment: forSession(r.Suggestions, r.ToolName),
	}
	switch {
	case r.ToolName == "Bash":
		a.Kind, a.Command, a.Dir = event.AskCommand, stringField(r.Input, "command"), dir
		a.Input = r.Input
	case isEdit(r.ToolName):
		a.Kind, a.Changes = event.AskFileChange, preview(dir, r.Input)
	case r.ToolName == "ExitPlanMode":
		a.Kind, a.Title, a.Amendment = event.AskPlan, stringField(r.Input, "plan"), nil
	default:
		call := toolCall(r.ToolName)
		call.Input = r.Input
		a.Kind, a.Tool = event.AskPermissions, &call
	}
	return a
}

// forSession are the rules an "always" accepts, kept in this session's memory:
// the CLI would write some of them into the project's settings. Where it offers
// none the whole tool is the rule.
func forSession(suggestions json.RawMessage, tool string) json.RawMessage {
	var rules []map[string]any
	if strictjson.Unmarshal(suggestions, &rules) != nil || len(rules) == 0 {
		rules = []map[string]any{{"type": "addRules", "behavior": "allow", "rules": []map[string]string{{"toolName": tool}}}}
	}
	for _, r := range rules {
		r["destination"] = "session"
	}
	raw, _ := json.Marshal(rules)
	return raw
}

// isRules reports whether an amendment is of the CLI's own kind. Of any other the rules
// that were offered hold: it must not become one that allows more.
func isRules(amendment json.RawMessage) bool {
	var rules []map[string]any
	return strictjson.Unmarshal(amendment, &rules) == nil && len(rules) > 0
}

// verdictOn is the answer to a can_use_tool request.
func (p *pending) verdictOn(a event.Answer) map[string]any {
	input := p.input
	if len(a.Input) > 0 {
		input = a.Input
	}
	switch a.Decision {
	case event.DecisionDeny, event.DecisionCancel:
		msg := a.Message
		if msg == "" {
			msg = "The user denied this."
		}
		out := map[string]any{"behavior": "deny", "message": msg}
		if a.Decision == event.DecisionCancel {
			out["interrupt"] = true
		}
		return out
	}
	out := map[string]any{"behavior": "allow", "updatedInput": input}
	switch {
	case p.ask.Kind == event.AskPlan:
		out["updatedPermissions"] = []map[string]string{{"type": "setMode", "mode": afterPlan(a), "destination": "session"}}
	case a.Decision == event.DecisionAlways && isRules(a.Amendment):
		out["updatedPermissions"] = forSession(a.Amendment, p.tool)
	case a.Decision == event.DecisionAlways:
		out["updatedPermissions"] = p.ask.Amendment
	}
	return out
}

// afterPlan is the mode an accepted plan goes on in: "always" stops asking for
// edits.
func afterPlan(a event.Answer) string {
	if a.Decision == event.DecisionAlways {
		return modeEdits
	}
	return modeDefault
}

// hookVerdict is the answer to a question held in its hook.
func (p *pending) hookVerdict(a event.Answer) map[string]any {
	if a.Decision == event.DecisionDeny || a.Decision == event.DecisionCancel {
		msg := a.Message
		if msg == "" {
			msg = "The user did not answer the question."
		}
		return hookOutput("deny", "permissionDecisionReason", msg)
	}
	return hookOutput("allow", "updatedInput", answered(p.input, a))
}

// hookOutput is the body of a PreToolUse hook's answer.
func hookOutput(decision, key string, value any) map[string]any {
	out := map[string]any{"hookEventName": "PreToolUse", "permissionDecision": decision}
	if key != "" {
		out[key] = value
	}
	return map[string]any{"hookSpecificOutput": out}
}

// answered is the question's input with the answers added, keyed by the text of
// each question; several choices are one string.
func answered(input json.RawMessage, a event.Answer) map[string]any {
	out := map[string]any{}
	_ = strictjson.Unmarshal(input, &out)
	var in questionInput
	_ = strictjson.Unmarshal(input, &in)
	answers := map[string]string{}
	for i, q := range in.Questions {
		if got := a.Answers[questionID(i)]; len(got) > 0 {
			answers[q.Question] = strings.Join(got, ", ")
		}
	}
	out["answers"] = answers
	return out
}
