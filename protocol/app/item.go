package app

import "encoding/json"

// UserInput is one part of what a user says.
type UserInput struct {
	// Type file is ours: a Name and a data URL. Clients see it as text.
	Type string `json:"type" ts:"\"text\" | \"image\" | \"localImage\" | \"audio\" | \"localAudio\" | \"skill\" | \"mention\""`
	Text string `json:"text,omitempty"`
	// TextElements mark spans of Text; they are accepted and not kept.
	TextElements []json.RawMessage `json:"text_elements,omitzero"`
	URL          string            `json:"url,omitempty"`
	// ImageURL is what some clients call URL.
	ImageURL string `json:"imageUrl,omitempty"`
	FileID   string `json:"fileId,omitempty"`
	Path     string `json:"path,omitempty"`
	Name     string `json:"name,omitempty"`
}

// Item kinds.
const (
	ItemUserMessage      = "userMessage"
	ItemAgentMessage     = "agentMessage"
	ItemReasoning        = "reasoning"
	ItemPlan             = "plan"
	ItemCommandExecution = "commandExecution"
	ItemFileChange       = "fileChange"
	ItemMCPToolCall      = "mcpToolCall"
	ItemDynamicToolCall  = "dynamicToolCall"
	ItemCompaction       = "contextCompaction"
	ItemEnteredReview    = "enteredReviewMode"
	ItemExitedReview     = "exitedReviewMode"
)

// Item states.
const (
	ItemInProgress = "inProgress"
	ItemCompleted  = "completed"
	ItemFailed     = "failed"
	ItemDeclined   = "declined"
)

// Item is a unit inside a turn. Type says which of the members below are there.
type Item struct {
	Type          string `json:"type"`
	ID            string `json:"id"`
	StartedAtMs   *int64 `json:"startedAtMs"`
	CompletedAtMs *int64 `json:"completedAtMs"`

	// userMessage; Content of reasoning is a list of strings.
	ClientID *string         `json:"clientId,omitempty"`
	Content  json.RawMessage `json:"content,omitempty" ts:"UserInput[] | string[]"`
	// agentMessage and plan
	Text *string `json:"text,omitempty"`
	// enteredReviewMode: what is reviewed; exitedReviewMode: what was found
	Review *string `json:"review,omitempty"`
	// reasoning
	Summary []string `json:"summary,omitzero"`

	// commandExecution; Command is an argv line, as in /bin/bash -lc 'ls -l'
	Command          *string         `json:"command,omitempty"`
	Cwd              *string         `json:"cwd,omitempty"`
	Source           string          `json:"source,omitempty"`
	CommandActions   []CommandAction `json:"commandActions,omitzero"`
	AggregatedOutput *string         `json:"aggregatedOutput,omitempty"`
	ExitCode         *int            `json:"exitCode,omitempty"`
	DurationMs       *int64          `json:"durationMs,omitempty"`

	// commandExecution, fileChange and tool calls
	Status string `json:"status,omitempty"`
	// fileChange
	Changes []FileChange `json:"changes,omitzero"`

	// mcpToolCall and dynamicToolCall
	Server       string          `json:"server,omitempty"`
	Namespace    *string         `json:"namespace,omitempty"`
	Tool         string          `json:"tool,omitempty"`
	Arguments    json.RawMessage `json:"arguments,omitempty"`
	Result       *MCPResult      `json:"result,omitempty"`
	Error        *MCPError       `json:"error,omitempty"`
	ContentItems []ToolContent   `json:"contentItems,omitzero"`
	Success      *bool           `json:"success,omitempty"`

	// Thole carries what the rest cannot, for clients that declared the extension.
	Thole *ItemExtra `json:"thole,omitempty"`
}

// ItemExtra is what only a thole server knows of an item.
type ItemExtra struct {
	// Parent is the item of a sub-agent's caller.
	Parent string `json:"parent,omitempty"`
	// Line is a command as the agent wrote it; the item's own is an argv line.
	Line string `json:"line,omitempty"`
	// OutputDropped counts bytes cut from the middle of a command's output.
	OutputDropped int64 `json:"outputDropped,omitempty"`
	// System marks a note of thole's own, sent as an agentMessage.
	System bool `json:"system,omitempty"`
}

// UserContent reads the content of a userMessage.
func (i *Item) UserContent() []UserInput {
	var in []UserInput
	if i.Type == ItemUserMessage {
		_ = json.Unmarshal(i.Content, &in)
	}
	return in
}

// CommandLine is a command as the agent wrote it, or as an argv line where the server
// does not say.
func (i *Item) CommandLine() string {
	switch {
	case i.Thole != nil && i.Thole.Line != "":
		return i.Thole.Line
	case i.Command != nil:
		return *i.Command
	}
	return ""
}

// CommandAction is what a command does, as far as its words show: read has Name and an
// absolute Path, listFiles a Path, search a Query and a Path.
type CommandAction struct {
	Type    string  `json:"type" ts:"\"read\" | \"listFiles\" | \"search\" | \"unknown\""`
	Command string  `json:"command"`
	Name    *string `json:"name,omitempty"`
	Path    *string `json:"path,omitempty"`
	Query   *string `json:"query,omitempty"`
}

// FileChange is one file's edit. Diff is the content of a file that is added or deleted,
// and the hunks of a unified diff of any other; paths are absolute.
type FileChange struct {
	Path string     `json:"path"`
	Kind ChangeKind `json:"kind"`
	Diff string     `json:"diff"`
}

// ChangeKind is add, delete or update.
type ChangeKind struct {
	Type string  `json:"type" ts:"\"add\" | \"delete\" | \"update\""`
	Move *string `json:"move_path,omitempty"`
}

// MCPResult is the output of a tool of an MCP server.
type MCPResult struct {
	Content           []json.RawMessage `json:"content"`
	StructuredContent json.RawMessage   `json:"structuredContent"`
}

// MCPError is the failure of a tool of an MCP server.
type MCPError struct {
	Message string `json:"message"`
}

// ItemEntry is an item with its turn.
type ItemEntry struct {
	TurnID        string `json:"turnId"`
	Item          Item   `json:"item"`
	StartedAtMs   *int64 `json:"startedAtMs"`
	CompletedAtMs *int64 `json:"completedAtMs"`
}
