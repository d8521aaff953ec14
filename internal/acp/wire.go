package acp

import "encoding/json"

// The messages of the protocol as far as they are used here. A test checks what is sent
// against the protocol's own schema.

const protocolVersion = 1

// Errors of the protocol.
const (
	codeAuth      = -32000
	codeNotFound  = -32002
	codeCancelled = -32800
)

type object = map[string]any

type initializeParams struct {
	ProtocolVersion int `json:"protocolVersion"`
	Capabilities    struct {
		Session struct {
			Compaction json.RawMessage `json:"compaction"`
			Notices    json.RawMessage `json:"notices"`
		} `json:"session"`
		Auth struct {
			Terminal bool `json:"terminal"`
		} `json:"auth"`
		Elicitation struct {
			Form json.RawMessage `json:"form"`
		} `json:"elicitation"`
		Meta struct {
			// TerminalOutput: the editor shows terminals whose output comes with updates of
			// their tool call. Zed began it; the protocol has no name for it.
			TerminalOutput bool `json:"terminal_output"`
		} `json:"_meta"`
	} `json:"clientCapabilities"`
	Client *struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"clientInfo"`
}

// sessionParams are those of session/new, load, resume, prompt, set_mode,
// set_config_option, close and delete, which share their names.
type sessionParams struct {
	SessionID   string            `json:"sessionId"`
	Cwd         string            `json:"cwd"`
	Directories []string          `json:"additionalDirectories"`
	Servers     []json.RawMessage `json:"mcpServers"`
	Prompt      []block           `json:"prompt"`
	ModeID      string            `json:"modeId"`
	ConfigID    string            `json:"configId"`
	Value       json.RawMessage   `json:"value"`
}

type listParams struct {
	Cwd    *string `json:"cwd"`
	Cursor *string `json:"cursor"`
}

// block is a piece of content.
type block struct {
	Type     string    `json:"type"`
	Text     string    `json:"text,omitempty"`
	Data     string    `json:"data,omitempty"`
	MimeType string    `json:"mimeType,omitempty"`
	URI      string    `json:"uri,omitempty"`
	Name     string    `json:"name,omitempty"`
	Resource *resource `json:"resource,omitempty"`
}

// MarshalJSON keeps the text of a text block, which may be empty.
func (b block) MarshalJSON() ([]byte, error) {
	if b.Type == "text" {
		return json.Marshal(object{"type": "text", "text": b.Text})
	}
	type plain block
	return json.Marshal(plain(b))
}

type resource struct {
	URI      string  `json:"uri"`
	MimeType string  `json:"mimeType,omitempty"`
	Text     *string `json:"text,omitempty"`
	Blob     *string `json:"blob,omitempty"`
}

func textBlock(s string) block { return block{Type: "text", Text: s} }

// chunk is a piece of a message of the user or of the agent, or of its thoughts.
type chunk struct {
	Update    string `json:"sessionUpdate"`
	Content   block  `json:"content"`
	MessageID string `json:"messageId,omitempty"`
}

// toolCall announces a call, or changes one: Update says which.
type toolCall struct {
	Update    string        `json:"sessionUpdate,omitempty"`
	ID        string        `json:"toolCallId"`
	Title     string        `json:"title,omitempty"`
	Name      string        `json:"name,omitempty"`
	Kind      string        `json:"kind,omitempty"`
	Status    string        `json:"status,omitempty"`
	Content   []toolContent `json:"content,omitzero"`
	Locations []location    `json:"locations,omitzero"`
	RawInput  any           `json:"rawInput,omitempty"`
	RawOutput any           `json:"rawOutput,omitempty"`
	Meta      object        `json:"_meta,omitempty"`
}

// toolContent is text, a difference or a terminal.
type toolContent struct {
	Type       string  `json:"type"`
	Content    *block  `json:"content,omitempty"`
	Path       string  `json:"path,omitempty"`
	OldText    *string `json:"oldText,omitempty"`
	NewText    *string `json:"newText,omitempty"`
	TerminalID string  `json:"terminalId,omitempty"`
}

func toolText(s string) toolContent {
	b := textBlock(s)
	return toolContent{Type: "content", Content: &b}
}

type location struct {
	Path string `json:"path"`
	Line *int   `json:"line,omitempty"`
}

// States of a tool call.
const (
	statusPending   = "pending"
	statusRunning   = "in_progress"
	statusCompleted = "completed"
	statusFailed    = "failed"
)

// Kinds of tool calls.
const (
	kindRead    = "read"
	kindEdit    = "edit"
	kindDelete  = "delete"
	kindMove    = "move"
	kindSearch  = "search"
	kindExecute = "execute"
	kindThink   = "think"
	kindFetch   = "fetch"
	kindMode    = "switch_mode"
	kindOther   = "other"
)

type permissionOption struct {
	ID   string `json:"optionId"`
	Name string `json:"name"`
	Kind string `json:"kind"`
}

type permissionAnswer struct {
	Outcome struct {
		Outcome  string `json:"outcome"`
		OptionID string `json:"optionId"`
	} `json:"outcome"`
}

type elicitationAnswer struct {
	Action  string          `json:"action"`
	Content json.RawMessage `json:"content"`
}

type mode struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

type modes struct {
	Current   string `json:"currentModeId"`
	Available []mode `json:"availableModes"`
}

// configOption is a choice among values: a list, or a list of groups.
type configOption struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Category string `json:"category"`
	Type     string `json:"type"`
	Current  string `json:"currentValue"`
	Options  any    `json:"options"`
}

type configValue struct {
	Value       string `json:"value"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

type configGroup struct {
	Group   string        `json:"group"`
	Name    string        `json:"name"`
	Options []configValue `json:"options"`
}

type sessionInfo struct {
	SessionID string `json:"sessionId"`
	Cwd       string `json:"cwd"`
	Title     string `json:"title,omitempty"`
	UpdatedAt string `json:"updatedAt"`
}

type command struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Input       any    `json:"input,omitempty"`
}
