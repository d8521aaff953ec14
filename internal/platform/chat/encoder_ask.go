package chat

import (
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/platform/view"
)

// ask is one question on the stream.
type ask struct {
	record fold.AskRecord
	call   string // the tool part that waits on it, "" for a question in words
	own    bool   // the part was made for it
}

func (e *Encoder) asked(r fold.AskRecord) {
	r.Thread = e.turn.Thread
	a := &ask{record: r}
	e.asks[r.Ask.ID] = a
	e.start()
	if r.Ask.Kind.Approval() { // the others need words, which the protocol's approvals do not carry
		e.request(a)
	} else {
		e.visible()
	}
	e.showAsk(a)
}

// request puts the approval on the tool it is about, without a step between the two,
// or on one of its own.
func (e *Encoder) request(a *ask) {
	q := a.record.Ask
	p := e.parts[q.Item]
	if p != nil && !p.done && tooled(p.item) && (!e.posts || p.step == e.steps && !e.working(p.item.ID)) {
		if input := toolInput(p.item); input != nil {
			e.announce(p, input)
		} else {
			e.announce(p, raw(struct{}{}))
		}
		a.call = string(p.item.ID)
	} else {
		if e.posts && e.working("") {
			e.closeStep()
			e.openStep()
		}
		e.visible()
		a.call, a.own = string(q.ID), true
		input := raw(struct {
			Title   string             `json:"title,omitempty"`
			Reason  string             `json:"reason,omitempty"`
			Command string             `json:"command,omitempty"`
			Dir     string             `json:"dir,omitempty"`
			Changes []event.FileChange `json:"changes,omitempty"`
			Tool    *event.ToolCall    `json:"tool,omitempty"`
		}{q.Title, q.Reason, q.Command, q.Dir, q.Changes, q.Tool})
		e.emit(Chunk{Type: "tool-input-start", ToolCallID: a.call, ToolName: string(q.Kind), ProviderExecuted: true, Dynamic: true})
		e.emit(Chunk{Type: "tool-input-available", ToolCallID: a.call, ToolName: string(q.Kind), Input: input, ProviderExecuted: true, Dynamic: true})
	}
	e.pending++
	e.emit(Chunk{Type: "tool-approval-request", ApprovalID: string(q.ID), ToolCallID: a.call})
}

// working reports whether a tool of the last step, besides one, has neither ended nor
// waits for an approval.
func (e *Encoder) working(besides thole.ItemID) bool {
	for _, id := range e.order {
		if p := e.parts[id]; id != besides && p.begun && p.step == e.steps && !e.waits(string(id)) {
			return true
		}
	}
	return false
}

// waits reports whether a call waits for an approval.
func (e *Encoder) waits(call string) bool {
	for _, a := range e.asks {
		if a.call == call && a.record.State == event.AskPending {
			return true
		}
	}
	return false
}

func tooled(i event.Item) bool {
	return i.Kind == event.ItemCommand || i.Kind == event.ItemFileChange || i.Kind == event.ItemTool
}

func (e *Encoder) showAsk(a *ask) {
	e.emit(Chunk{Type: "data-ask", ID: string(a.record.Ask.ID), Data: raw(view.OfAsk(a.record))})
}

func (e *Encoder) resolved(r fold.AskRecord) {
	a := e.asks[r.Ask.ID]
	if a == nil {
		return
	}
	waited := a.record.State == event.AskPending
	r.Thread = e.turn.Thread
	if r.State != event.AskAnswered && r.State != event.AskSelfAnswered {
		r.Actor = thole.Actor{}
	}
	a.record = r
	if a.call != "" && waited {
		e.pending--
		e.respond(a)
	}
	e.showAsk(a)
}

func (e *Encoder) respond(a *ask) {
	r := a.record
	approved := r.State == event.AskAnswered && (r.Answer.Decision == event.DecisionAllow || r.Answer.Decision == event.DecisionAlways)
	reason := ""
	switch {
	case r.State == event.AskExpired:
		reason = "nobody answered in time"
	case r.State == event.AskCanceled:
		reason = "canceled"
	case r.State == event.AskSelfAnswered:
		reason = "the agent answered this itself"
	case !approved && r.Answer != nil:
		reason = r.Answer.Message
	}
	e.emit(Chunk{Type: "tool-approval-response", ApprovalID: string(r.Ask.ID), Approved: &approved, Reason: reason, ProviderExecuted: true})
	switch {
	case !a.own: // the tool itself shows how it went on
	case approved:
		e.emit(Chunk{Type: "tool-output-available", ToolCallID: a.call, Output: raw(map[string]event.Decision{"decision": r.Answer.Decision}), ProviderExecuted: true, Dynamic: true})
	default:
		e.emit(Chunk{Type: "tool-output-denied", ToolCallID: a.call})
	}
}
