package event

import (
	"encoding/json"
	"time"

	thole "github.com/tholehq/thole"
)

// AskKind is the closed set of questions a server puts to a client while a turn
// waits.
type AskKind string

const (
	AskCommand     AskKind = "command"     // may this command run?
	AskFileChange  AskKind = "file_change" // may these edits be made?
	AskPermissions AskKind = "permissions" // may the agent have more rights?
	AskInput       AskKind = "input"       // questions with options or free text
	AskPlan        AskKind = "plan"        // is this plan good? allow leaves plan mode
	AskElicitation AskKind = "elicitation" // an MCP server asks for structured data
	AskTool        AskKind = "tool"        // a client-owned tool is called
)

// Approval reports whether an ask wants a verdict rather than information.
func (k AskKind) Approval() bool {
	switch k {
	case AskCommand, AskFileChange, AskPermissions, AskPlan:
		return true
	}
	return false
}

// Parks reports whether an ask of this kind can wait without its agent: what an MCP
// server or a client's tool wants is gone with the process that wants it.
func (k AskKind) Parks() bool { return k == AskInput || k.Approval() }

// AskState is durable. pending moves once, to exactly one of the others; only
// self_answered may come after another of them, because the agent's word on what
// it did comes last.
type AskState string

const (
	AskPending  AskState = "pending"
	AskAnswered AskState = "answered"
	AskExpired  AskState = "expired"
	AskCanceled AskState = "canceled"
	// AskSelfAnswered: the agent went on without an answer of thole's. No person said
	// so, whatever was answered here.
	AskSelfAnswered AskState = "self_answered"
)

// MayBecome is the transition table of asks.
func (s AskState) MayBecome(to AskState) bool {
	switch to {
	case AskAnswered, AskExpired, AskCanceled:
		return s == AskPending
	case AskSelfAnswered:
		return s != AskSelfAnswered
	}
	return false
}

// Ask is a question that outlives the client, the server and the executor.
type Ask struct {
	ID   thole.AskID `json:"id"`
	Kind AskKind     `json:"kind"`
	// Item is the command, file change or tool call that waits on the answer.
	Item      thole.ItemID `json:"item,omitempty"`
	Title     string       `json:"title,omitempty"`
	Reason    string       `json:"reason,omitempty"`
	Command   string       `json:"command,omitempty"`
	Argv      string       `json:"argv,omitempty"` // as of Command.Argv
	Dir       string       `json:"dir,omitempty"`
	Changes   []FileChange `json:"changes,omitempty"`
	Questions []Question   `json:"questions,omitempty"`
	Tool      *ToolCall    `json:"tool,omitempty"`
	// Input is what the agent gives the call, where Answer.Input may replace it.
	Input  json.RawMessage `json:"input,omitempty"`
	Schema json.RawMessage `json:"schema,omitempty"`
	// Decisions are the verdicts this ask accepts, best first.
	Decisions []Decision `json:"decisions,omitempty"`
	// Amendment is a rule the provider offers to remember with "always".
	Amendment json.RawMessage `json:"amendment,omitempty"`
	Deadline  time.Time       `json:"deadline,omitzero"`
}

// Question is one thing that a human is asked for.
type Question struct {
	ID      string   `json:"id"`
	Header  string   `json:"header,omitempty"`
	Text    string   `json:"text"`
	Options []Option `json:"options,omitempty"`
	Multi   bool     `json:"multi,omitempty"`
	// Free allows an answer outside the options.
	Free   bool `json:"free,omitempty"`
	Secret bool `json:"secret,omitempty"`
}

// Option is one offered answer.
type Option struct {
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
}

// Decision is a verdict on an approval.
type Decision string

const (
	DecisionAllow  Decision = "allow"
	DecisionAlways Decision = "always" // allow, and do not ask again this session
	DecisionDeny   Decision = "deny"   // the turn goes on without it
	DecisionCancel Decision = "cancel" // deny and interrupt the turn
)

// Answer settles an ask. Exactly one is ever recorded per ask.
type Answer struct {
	Decision Decision `json:"decision,omitempty"`
	// Message goes to the agent with a denial.
	Message string `json:"message,omitempty"`
	// Answers are keyed by question id; several choices are several strings.
	Answers map[string][]string `json:"answers,omitempty"`
	// Input rewrites the tool's input where the provider can.
	Input json.RawMessage `json:"input,omitempty"`
	// Amendment accepts the offered rule, possibly edited.
	Amendment json.RawMessage `json:"amendment,omitempty"`
	// Result is a client-owned tool's output or an elicitation's content.
	Result json.RawMessage `json:"result,omitempty"`
}
