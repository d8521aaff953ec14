package view

import (
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
)

// Event is one fact on an event stream.
type Event struct {
	Type       string    `json:"type"`
	ID         string    `json:"id,omitempty"`
	Seq        uint64    `json:"seq,omitempty"`
	SessionID  string    `json:"session_id,omitempty"`
	RunID      string    `json:"run_id,omitempty"`
	ExecutorID string    `json:"executor_id,omitempty"`
	TraceID    string    `json:"trace_id,omitempty"`
	TS         time.Time `json:"ts"`
	Data       EventData `json:"data"`
}

// EventData has the fields its type needs.
type EventData struct {
	Name       *string         `json:"name,omitempty"`
	Archived   *bool           `json:"archived,omitempty"`
	Pinned     *bool           `json:"pinned,omitempty"`
	Settings   *Settings       `json:"settings,omitempty"`
	NativeID   string          `json:"native_id,omitempty"`
	Status     *Status         `json:"status,omitempty"`
	Input      []Input         `json:"input,omitempty"`
	ClientID   string          `json:"client_id,omitempty"`
	Phase      thole.Phase     `json:"phase,omitempty" enum:"queued,claimed,restoring,linking,preparing,running,waiting_human,syncing,exported,succeeded,failed,canceled"`
	Outcome    thole.Outcome   `json:"outcome,omitempty" enum:"completed,failed,interrupted"`
	Error      *RunError       `json:"error,omitempty"`
	LastError  string          `json:"last_error,omitempty"`
	Item       *ItemBody       `json:"item,omitempty"`
	ItemID     string          `json:"item_id,omitempty"`
	Stream     string          `json:"stream,omitempty"`
	Delta      string          `json:"delta,omitempty"`
	Offset     *int64          `json:"offset,omitempty"`
	Todos      []Todo          `json:"todos,omitempty"`
	Question   *Question       `json:"question,omitempty"`
	QuestionID string          `json:"question_id,omitempty"`
	State      event.AskState  `json:"state,omitempty" enum:"pending,answered,expired,canceled,self_answered"`
	Answer     *Answer         `json:"answer,omitempty"`
	AnsweredBy string          `json:"answered_by,omitempty"`
	Usage      *Usage          `json:"usage,omitempty"`
	Network    []event.Traffic `json:"network,omitempty"`
	Text       string          `json:"text,omitempty"`
	Limits     []Limit         `json:"limits,omitempty"`
	Message    *QueuedMessage  `json:"message,omitempty"`
	MessageID  string          `json:"message_id,omitempty"`
	Front      bool            `json:"front,omitempty"`
	Order      []string        `json:"order,omitempty"`
}

// Limit is how much of an allowance of the agent's account is used: percent of a
// window of minutes.
type Limit struct {
	Name   string    `json:"name"`
	Used   int       `json:"used_percent"`
	Window int       `json:"window_minutes,omitempty"`
	Resets time.Time `json:"resets_at,omitzero"`
}

// Settings are a session's execution settings.
type Settings struct {
	Provider         string            `json:"provider,omitempty"`
	Model            string            `json:"model,omitempty"`
	Effort           string            `json:"effort,omitempty"`
	ExecutionProfile string            `json:"execution_profile,omitempty"`
	Instructions     string            `json:"instructions,omitempty"`
	ProviderOptions  map[string]string `json:"provider_options,omitempty"`
	// Network is absent where the configuration decides alone.
	Network *event.NetworkPolicy `json:"network,omitempty"`
}

// OfSettings is settings in the words of HTTP.
func OfSettings(s event.Settings) Settings {
	return Settings{s.Provider, s.Model, s.Effort, string(s.Profile), s.Instructions, s.Options, s.Network}
}

// TypeOf is an event kind's public name.
func TypeOf(k event.Kind) string {
	switch k {
	case event.TurnPhase:
		return "run.status"
	case event.ErrorReported:
		return "run.error"
	}
	noun, verb, _ := strings.Cut(string(k), ".")
	switch noun {
	case "thread":
		noun = "session"
	case "turn":
		noun = "run"
	case "ask":
		noun = "human_loop"
	}
	return noun + "." + verb
}

// OfEvent converts. Answers are left out: an event does not know which of its
// questions are secret, and the question itself shows the rest.
func OfEvent(e event.Event) Event {
	d := e.Data
	v := Event{
		Type: TypeOf(e.Kind), ID: string(e.ID), Seq: e.Seq, SessionID: string(e.Thread), RunID: string(e.Turn), ExecutorID: string(e.Executor),
		TraceID: e.Trace, TS: e.Time,
		Data: EventData{
			Name: d.Name, Archived: d.Archived, Pinned: d.Pinned, NativeID: d.NativeID, Input: OfInput(d.Input), ClientID: d.ClientID, Phase: d.Phase, Outcome: d.Outcome,
			Error: OfError(d.Error), ItemID: string(d.ItemID), Stream: string(d.Stream), Delta: d.Delta, Todos: OfTodos(d.Todos),
			QuestionID: string(d.AskID), State: d.AskState, Usage: (*Usage)(d.Usage), Network: d.Network, Text: d.Text, Limits: each(d.Limits, func(l event.Limit) Limit { return Limit(l) }), MessageID: string(d.MessageID), Front: d.Front,
		},
	}
	if d.Item != nil {
		i := OfBody(*d.Item)
		v.Data.Item = &i
	}
	if d.Settings != nil {
		s := OfSettings(*d.Settings)
		v.Data.Settings = &s
	}
	if d.Status != nil {
		s := OfStatus(*d.Status)
		v.Data.Status = &s
	}
	if d.Message != nil {
		m := OfMessage(*d.Message)
		v.Data.Message = &m
	}
	for _, id := range d.Order {
		v.Data.Order = append(v.Data.Order, string(id))
	}
	switch e.Kind {
	case event.ThreadReverted:
		v.RunID = string(d.Cut.Turn)
	case event.ItemDelta:
		v.Data.Offset = &d.Offset
	case event.AskRequested:
		q := OfAsk(fold.AskRecord{Ask: *d.Ask, Thread: e.Thread, Turn: e.Turn, State: event.AskPending, Asked: e.Time})
		v.Data.Question = &q
	case event.AskResolved:
		v.Data.AnsweredBy = e.Actor.Who()
		if d.Answer != nil { // only the verdict: texts may be secret
			v.Data.Answer = &Answer{Decision: d.Answer.Decision, Message: d.Answer.Message}
		}
	case event.TurnPhase:
		v.Data.LastError, v.Data.Text = d.Text, ""
	}
	return v
}
