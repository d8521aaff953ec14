package event

import (
	"encoding/json"
	"slices"

	thole "github.com/tholehq/thole"
)

// ItemKind is the closed set of client-visible units inside a turn.
type ItemKind string

const (
	ItemUserMessage ItemKind = "user_message"
	ItemMessage     ItemKind = "message"     // what the agent says
	ItemReasoning   ItemKind = "reasoning"   // what the agent thinks, as far as it shows
	ItemPlan        ItemKind = "plan"        // a proposed plan as prose
	ItemCommand     ItemKind = "command"     // a shell command with its output
	ItemFileChange  ItemKind = "file_change" // edits with diffs
	ItemTool        ItemKind = "tool"        // any other tool call
	ItemCompaction  ItemKind = "compaction"  // the provider shortened its context
	ItemSystem      ItemKind = "system"      // a note of thole's, e.g. why a turn was failed
)

// ItemState is how far a command, file change or tool call got.
type ItemState string

const (
	StateRunning   ItemState = "running"
	StateCompleted ItemState = "completed"
	StateFailed    ItemState = "failed"
	StateDeclined  ItemState = "declined"
)

// Item is a client-visible unit inside a turn. Its JSON form is part of the
// durable event log, so fields may be added but never renamed or reused.
type Item struct {
	ID    thole.ItemID `json:"id"`
	Kind  ItemKind     `json:"kind"`
	State ItemState    `json:"state,omitempty"`

	// Text is the prose of messages, reasoning, plans and system notes.
	Text string `json:"text,omitempty"`
	// Summary is the short form of reasoning where the provider gives both.
	Summary string `json:"summary,omitempty"`
	// Content and ClientID belong to user messages; ClientID is the caller's own
	// correlation id, echoed and never interpreted.
	Content  []thole.Input `json:"content,omitempty"`
	ClientID string        `json:"client_id,omitempty"`

	Command *Command     `json:"command,omitempty"`
	Changes []FileChange `json:"changes,omitempty"`
	Tool    *ToolCall    `json:"tool,omitempty"`

	// Review marks the notes that a review begins and ends with: ReviewEntered, whose Text is
	// what is reviewed, and ReviewExited, whose Text is what was found.
	Review string `json:"review,omitempty"`

	// Parent is the item of a sub-agent's caller, empty for the main agent.
	Parent thole.ItemID `json:"parent,omitempty"`
	Stamp  thole.Stamp  `json:"stamp"`
}

// What Item.Review may be.
const (
	ReviewEntered = "entered"
	ReviewExited  = "exited"
)

// Command is a shell command the agent ran. Output is what we kept of it:
// bounded, with OutputDropped bytes cut from the middle.
type Command struct {
	Line string `json:"line"`
	// Argv is the argv line that the agent gave, where it is not Line in a login shell.
	Argv          string `json:"argv,omitempty"`
	Dir           string `json:"dir,omitempty"`
	Output        string `json:"output,omitempty"`
	OutputDropped int64  `json:"output_dropped,omitempty"`
	ExitCode      *int   `json:"exit_code,omitempty"`
	DurationMS    int64  `json:"duration_ms,omitempty"`
	// User: a user ran it by hand, or thole for the user, not the agent.
	User bool `json:"user,omitempty"`
}

// FileChange is one file's edit as a unified diff, with or without a header. Of an added
// or deleted file it may also be the content with a mark before each line.
type FileChange struct {
	Path string `json:"path"`
	Kind string `json:"kind"` // "add", "update", "delete"
	Move string `json:"move,omitempty"`
	Diff string `json:"diff,omitempty"`
}

// ToolCall is a tool that is neither a command nor a file change.
type ToolCall struct {
	Name   string `json:"name"`
	Server string `json:"server,omitempty"` // the MCP server, if any
	// Namespace is that of a client's own tool, if it has one.
	Namespace string          `json:"namespace,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	Output    json.RawMessage `json:"output,omitempty"`
	Error     string          `json:"error,omitempty"`
	// Content is what a client's own tool returned, instead of Output.
	Content []ToolContent `json:"content,omitempty"`
}

// TodoState is the state of one todo.
type TodoState string

const (
	TodoPending  TodoState = "todo"
	TodoDoing    TodoState = "doing"
	TodoDone     TodoState = "done"
	TodoCanceled TodoState = "canceled"
)

// Todo is one entry of the agent's list. ID is stable within its turn's list.
type Todo struct {
	ID      thole.TodoID `json:"id"`
	Content string       `json:"content"`
	State   TodoState    `json:"state"`
	Order   int          `json:"order"`
}

// MergeTodos returns a list with the changed todos, by their ids, and the new ones
// after it.
func MergeTodos(list, changed []Todo) []Todo {
	out := append([]Todo{}, list...)
	for _, c := range changed {
		if i := slices.IndexFunc(out, func(t Todo) bool { return t.ID == c.ID }); i >= 0 {
			out[i] = c
		} else {
			out = append(out, c)
		}
	}
	return out
}
