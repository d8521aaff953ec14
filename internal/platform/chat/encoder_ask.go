package chat

import (
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/view"
	"github.com/tholehq/thole/internal/thread"
)

// ask is one question on the stream.
type ask struct {
	record thread.AskRecord
	call   string // the tool part that waits on it, "" for a question in words
	own    bool   // the part was made for it
}

// approval reports whether yes or no settles an ask. The others need words, which
// the protocol's approvals do not carry.
func approval(k thole.AskKind) bool {
	return k == thole.AskCommand || k == thole.AskFileChange || k == thole.AskPermissions || k == thole.AskPlan || k == thole.AskTool
}

func (e *Encoder) asked(ev thread.Event) {
	a := &ask{record: thread.AskRecord{Ask: *ev.Data.Ask, Thread: e.turn.Thread, Turn: ev.Turn, State: thole.AskPending, Asked: ev.Time}}
	if e.asks[a.record.Ask.ID] != nil {
		return
	}
	e.asks[a.record.Ask.ID] = a
	e.visible()
	if approval(a.record.Ask.Kind) {
		e.request(a)
	}
	e.showAsk(a)
}

// request puts the approval on the tool it is about, or on one of its own.
func (e *Encoder) request(a *ask) {
	q := a.record.Ask
	p := e.parts[q.Item]
	if p != nil && !p.done && tooled(p.item) {
		if input := toolInput(p.item); input != nil {
			e.announce(p, input)
		} else {
			e.announce(p, raw(struct{}{}))
		}
		a.call = string(p.item.ID)
	} else {
		a.call, a.own = string(q.ID), true
		input := raw(struct {
			Title   string             `json:"title,omitempty"`
			Reason  string             `json:"reason,omitempty"`
			Command string             `json:"command,omitempty"`
			Dir     string             `json:"dir,omitempty"`
			Changes []thole.FileChange `json:"changes,omitempty"`
			Tool    *thole.ToolCall    `json:"tool,omitempty"`
		}{q.Title, q.Reason, q.Command, q.Dir, q.Changes, q.Tool})
		e.emit(Chunk{Type: "tool-input-start", ToolCallID: a.call, ToolName: string(q.Kind), ProviderExecuted: true, Dynamic: true})
		e.emit(Chunk{Type: "tool-input-available", ToolCallID: a.call, ToolName: string(q.Kind), Input: input, ProviderExecuted: true, Dynamic: true})
	}
	e.pending++
	e.emit(Chunk{Type: "tool-approval-request", ApprovalID: string(q.ID), ToolCallID: a.call})
}

func tooled(i thole.Item) bool {
	return i.Kind == thole.ItemCommand || i.Kind == thole.ItemFileChange || i.Kind == thole.ItemTool
}

func (e *Encoder) showAsk(a *ask) {
	e.emit(Chunk{Type: "data-ask", ID: string(a.record.Ask.ID), Data: raw(view.OfAsk(a.record))})
}

func (e *Encoder) resolved(ev thread.Event) {
	a := e.asks[ev.Data.AskID]
	if a == nil || a.record.State != thole.AskPending && ev.Data.AskState != thole.AskSelfAnswered {
		return
	}
	r := &a.record
	waited := r.State == thole.AskPending
	r.State, r.Answer, r.Resolved = ev.Data.AskState, ev.Data.Answer, ev.Time
	if r.State == "" {
		r.State = thole.AskCanceled
	}
	if r.State == thole.AskAnswered || r.State == thole.AskSelfAnswered {
		r.Actor = ev.Actor
	}
	if a.call != "" && waited {
		e.pending--
		e.respond(a)
	}
	e.showAsk(a)
}

func (e *Encoder) respond(a *ask) {
	r := a.record
	approved := r.State == thole.AskAnswered && (r.Answer.Decision == thole.DecisionAllow || r.Answer.Decision == thole.DecisionAlways)
	reason := ""
	switch {
	case r.State == thole.AskExpired:
		reason = "nobody answered in time"
	case r.State == thole.AskCanceled:
		reason = "canceled"
	case r.State == thole.AskSelfAnswered:
		reason = "the agent answered this itself"
	case !approved && r.Answer != nil:
		reason = r.Answer.Message
	}
	e.emit(Chunk{Type: "tool-approval-response", ApprovalID: string(r.Ask.ID), Approved: &approved, Reason: reason, ProviderExecuted: true})
	switch {
	case !a.own: // the tool itself tells how it went on
	case approved:
		e.emit(Chunk{Type: "tool-output-available", ToolCallID: a.call, Output: raw(map[string]thole.Decision{"decision": r.Answer.Decision}), ProviderExecuted: true, Dynamic: true})
	default:
		e.emit(Chunk{Type: "tool-output-denied", ToolCallID: a.call})
	}
}
