// Package view is the public shape of our nouns over HTTP, in the words of that
// surface: a session is a thread, a run a turn, a question an ask. It holds data
// and converters from the domain; it decides nothing, reads nothing and hides
// nothing by itself.
package view

import (
	"encoding/json"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
)

// Session is a thread.
type Session struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Preview string `json:"preview"`
	Title   string `json:"title" doc:"the name, else a short form of the first message"`
	Settings
	Source      Source    `json:"source"`
	Dir         string    `json:"dir" doc:"where the agent works, as it sees it"`
	MadeBy      string    `json:"made_by,omitempty"`
	Archived    bool      `json:"archived"`
	Pinned      bool      `json:"pinned" doc:"listed before the others"`
	ForkedFrom  string    `json:"forked_from,omitempty"`
	ParentID    string    `json:"parent_id,omitempty"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
	Seq         uint64    `json:"seq"`
	Floor       uint64    `json:"floor"`
	Runs        int       `json:"runs"`
	ActiveRunID string    `json:"active_run_id,omitempty"`
	Status      Status    `json:"status"`
	Usage       Usage     `json:"usage"`
}

// Status is derived, never stored.
type Status struct {
	Loaded            bool `json:"loaded"`
	Active            bool `json:"active"`
	WaitingOnApproval bool `json:"waiting_on_approval"`
	WaitingOnInput    bool `json:"waiting_on_input"`
	SystemError       bool `json:"system_error"`
}

func OfStatus(s event.Status) Status { return Status(s) }

func OfThread(t fold.Thread) Session {
	return Session{
		ID: string(t.ID), Name: t.Name, Preview: t.Preview, Title: t.Title(), Settings: OfSettings(t.Settings),
		Source: OfSource(t.Files), Dir: t.WorkDir(), MadeBy: t.Source, Archived: t.Archived, Pinned: t.Pinned, ForkedFrom: string(t.ForkedFrom), ParentID: string(t.Parent), CreatedAt: t.Created, UpdatedAt: t.Updated,
		Seq: t.Seq, Floor: t.Floor, Runs: t.Turns, ActiveRunID: string(t.Open), Status: OfStatus(t.Status), Usage: OfUsage(t.Usage),
	}
}

// Run is a turn.
type Run struct {
	ID        string        `json:"id"`
	SessionID string        `json:"session_id"`
	Number    int           `json:"number"`
	Seq       uint64        `json:"seq"`
	Phase     thole.Phase   `json:"phase" enum:"queued,claimed,restoring,linking,preparing,running,waiting_human,syncing,exported,succeeded,failed,canceled"`
	Outcome   thole.Outcome `json:"outcome,omitempty" enum:"completed,failed,interrupted"`
	Error     *RunError     `json:"error,omitempty"`
	Input     []Input       `json:"input"`
	ClientID  string        `json:"client_id,omitempty"`
	Settings
	RuntimeVersion     string     `json:"runtime_version,omitempty"`
	Unsaved            string     `json:"unsaved,omitempty"` // why the files it ended with are not saved
	Usage              Usage      `json:"usage"`
	Time               *RunTime   `json:"time,omitempty" doc:"what its time was spent on; the parts add up to the time from its start until its files were saved"`
	ExecutorID         string     `json:"executor_id,omitempty"`
	TraceID            string     `json:"trace_id,omitempty"`
	CreatedAt          time.Time  `json:"created_at"`
	StartedAt          time.Time  `json:"started_at,omitzero"`
	EndedAt            time.Time  `json:"ended_at,omitzero"`
	InterruptRequested bool       `json:"interrupt_requested"`
	WaitingOn          string     `json:"waiting_on,omitempty"`
	Items              []ItemBody `json:"items,omitempty"`
}

func OfTurn(t fold.Turn) Run {
	return Run{
		ID: string(t.ID), SessionID: string(t.Thread), Number: t.Number, Seq: t.Seq, Phase: t.Phase, Outcome: t.Outcome, Error: OfError(t.Error),
		Input: nonNil(OfInput(t.Input)), ClientID: t.ClientID, Settings: OfSettings(t.Settings), RuntimeVersion: t.Runtime, Unsaved: t.Unsaved,
		Usage: OfUsage(t.Usage), Time: OfTime(t.Spent), ExecutorID: string(t.Executor), TraceID: t.Trace, CreatedAt: t.Created, StartedAt: t.Stamp.Started, EndedAt: t.Stamp.Ended,
		InterruptRequested: t.Interrupted, WaitingOn: string(t.Deferred), Items: each(t.Items, OfBody),
	}
}

// RunTime is what a run waited for, in milliseconds.
type RunTime struct {
	Model    int64 `json:"model_ms" minimum:"0" doc:"answers of the model"`
	Tools    int64 `json:"tools_ms" minimum:"0" doc:"commands, edits and tools of the agent"`
	Human    int64 `json:"human_ms" minimum:"0" doc:"answers of a person"`
	Overhead int64 `json:"overhead_ms" minimum:"0" doc:"everything else: queue, restore, start of the agent, sync"`
}

// OfTime returns nil for nil.
func OfTime(t *thole.TurnTime) *RunTime {
	if t == nil {
		return nil
	}
	return &RunTime{t.Model.Milliseconds(), t.Tools.Milliseconds(), t.Human.Milliseconds(), t.Overhead.Milliseconds()}
}

// nonNil returns an empty slice for nil, so that JSON has [] and never null.
func nonNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// Question is an ask with its state.
type Question struct {
	QuestionID string           `json:"question_id"`
	SessionID  string           `json:"session_id"`
	RunID      string           `json:"run_id"`
	Kind       event.AskKind    `json:"kind" enum:"command,file_change,permissions,plan,elicitation,tool,input"`
	State      event.AskState   `json:"state" enum:"pending,answered,expired,canceled,self_answered"`
	ItemID     string           `json:"item_id,omitempty"`
	Title      string           `json:"title,omitempty"`
	Reason     string           `json:"reason,omitempty"`
	Command    string           `json:"command,omitempty"`
	Dir        string           `json:"dir,omitempty"`
	Changes    []FileChange     `json:"changes,omitempty"`
	Questions  []AskQuestion    `json:"questions,omitempty"`
	Tool       *ToolCall        `json:"tool,omitempty"`
	Schema     json.RawMessage  `json:"schema,omitempty"`
	Decisions  []event.Decision `json:"decisions,omitempty" enum:"allow,always,deny,cancel"`
	Wants      []string         `json:"wants,omitempty" doc:"the rights that are asked for, in words"`
	WantsRules []Rule           `json:"wants_rules,omitempty" doc:"the same for clients that have words of their own"`
	Always     []string         `json:"always,omitempty" doc:"what the decision always would allow, in words; the agent's own rule stays on the server"`
	AllowRules []Rule           `json:"always_rules,omitempty" doc:"the same for clients that have words of their own"`
	Deadline   time.Time        `json:"deadline,omitzero"`
	AskedAt    time.Time        `json:"asked_at,omitzero"`
	ResolvedAt time.Time        `json:"resolved_at,omitzero"`
	Answer     *Answer          `json:"answer,omitempty"`
	AnsweredBy string           `json:"answered_by,omitempty"`
}

func OfAsk(r fold.AskRecord) Question {
	a := r.Ask
	q := Question{
		QuestionID: string(a.ID), SessionID: string(r.Thread), RunID: string(r.Turn), Kind: a.Kind, State: r.State, ItemID: string(a.Item),
		Title: a.Title, Reason: a.Reason, Command: a.Command, Dir: a.Dir, Changes: OfChanges(a.Changes), Questions: each(a.Questions, ofQuestion), Tool: ofTool(a.Tool), Schema: a.Schema,
		Decisions: a.Decisions, Wants: Wants(a), WantsRules: wantedRules(a), Always: Always(a), AllowRules: alwaysRules(a), Deadline: a.Deadline, AskedAt: r.Asked, ResolvedAt: r.Resolved, AnsweredBy: r.Actor.Who(),
	}
	q.Answer = OfAnswer(Shown(a, r.Answer))
	return q
}

// Shown is an answer as it may be shown again: what was typed into a secret
// question went to the agent and to nobody else.
func Shown(a event.Ask, answer *event.Answer) *event.Answer {
	if answer == nil {
		return nil
	}
	shown := *answer
	for _, q := range a.Questions {
		if _, given := shown.Answers[q.ID]; !q.Secret || !given {
			continue
		}
		answers := make(map[string][]string, len(shown.Answers))
		for k, v := range shown.Answers {
			answers[k] = v
		}
		answers[q.ID] = []string{}
		shown.Answers = answers
	}
	return &shown
}

// AskQuestion is one thing that a human is asked for.
type AskQuestion struct {
	ID      string      `json:"id"`
	Header  string      `json:"header,omitempty"`
	Text    string      `json:"text"`
	Options []AskOption `json:"options,omitempty"`
	Multi   bool        `json:"multi,omitempty"`
	Free    bool        `json:"free,omitempty"`
	Secret  bool        `json:"secret,omitempty"`
}

// AskOption is one offered answer.
type AskOption struct {
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
}

func ofQuestion(q event.Question) AskQuestion {
	return AskQuestion{q.ID, q.Header, q.Text, each(q.Options, func(o event.Option) AskOption { return AskOption(o) }), q.Multi, q.Free, q.Secret}
}

// Answer settles a question.
type Answer struct {
	Decision event.Decision      `json:"decision,omitempty" enum:"allow,always,deny,cancel"`
	Message  string              `json:"message,omitempty"`
	Answers  map[string][]string `json:"answers,omitempty"`
	Input    json.RawMessage     `json:"input,omitempty"`
	Result   json.RawMessage     `json:"result,omitempty"`
}

// OfAnswer returns nil for nil. The agent's own rule stays on the server.
func OfAnswer(a *event.Answer) *Answer {
	if a == nil {
		return nil
	}
	return &Answer{Decision: a.Decision, Message: a.Message, Answers: a.Answers, Input: a.Input, Result: a.Result}
}

// RunError is why a run failed, or what the agent tries again.
type RunError struct {
	Code     thole.ErrorCode `json:"code"`
	Message  string          `json:"message"`
	Hint     string          `json:"hint,omitempty"`
	Status   int             `json:"status,omitempty"`
	Retrying bool            `json:"retrying,omitempty"`
}

// OfError returns nil for nil.
func OfError(e *thole.TurnError) *RunError { return (*RunError)(e) }

// QueuedMessage is a queued message.
type QueuedMessage struct {
	ID        string    `json:"id"`
	SessionID string    `json:"session_id"`
	Input     []Input   `json:"input"`
	ClientID  string    `json:"client_id,omitempty"`
	CreatedAt time.Time `json:"created_at"`
}

func OfMessage(m event.Message) QueuedMessage {
	return QueuedMessage{ID: string(m.ID), SessionID: string(m.Thread), Input: nonNil(OfInput(m.Input)), ClientID: m.ClientID, CreatedAt: m.Created}
}

// Each converts a list.
func Each[A, B any](list []A, f func(A) B) []B {
	out := make([]B, len(list))
	for i, v := range list {
		out[i] = f(v)
	}
	return out
}
