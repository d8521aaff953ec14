package view

import (
	"encoding/json"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
)

// ItemBody is a client-visible unit inside a run.
type ItemBody struct {
	ID       string          `json:"id"`
	Kind     event.ItemKind  `json:"kind"`
	State    event.ItemState `json:"state,omitempty"`
	Text     string          `json:"text,omitempty"`
	Summary  string          `json:"summary,omitempty"`
	Content  []Input         `json:"content,omitempty"`
	ClientID string          `json:"client_id,omitempty"`
	Command  *Command        `json:"command,omitempty"`
	Changes  []FileChange    `json:"changes,omitempty"`
	Tool     *ToolCall       `json:"tool,omitempty"`
	Parent   string          `json:"parent,omitempty"`
	Stamp    Stamp           `json:"stamp"`
}

// Item is an item with its place in the log.
type Item struct {
	ItemBody
	RunID string `json:"run_id"`
	Seq   uint64 `json:"seq"`
	Open  bool   `json:"open"`
}

// Stamp is when something began and ended; a missing time means "not yet".
type Stamp struct {
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
}

// Command is a shell command with its output. OutputDropped bytes were cut from the
// middle.
type Command struct {
	Line          string `json:"line"`
	Dir           string `json:"dir,omitempty"`
	Output        string `json:"output,omitempty"`
	OutputDropped int64  `json:"output_dropped,omitempty"`
	ExitCode      *int   `json:"exit_code,omitempty"`
	DurationMS    int64  `json:"duration_ms,omitempty"`
	User          bool   `json:"user,omitempty"`
}

// FileChange is one file's edit as a unified diff.
type FileChange struct {
	Path string `json:"path"`
	Kind string `json:"kind" enum:"add,update,delete"`
	Move string `json:"move,omitempty"`
	Diff string `json:"diff,omitempty"`
}

// ToolCall is a tool that is neither a command nor a file change.
type ToolCall struct {
	Name   string `json:"name"`
	Server string `json:"server,omitempty"`
	// Namespace is that of a tool of the thread's client.
	Namespace string          `json:"namespace,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	Output    json.RawMessage `json:"output,omitempty"`
	Error     string          `json:"error,omitempty"`
}

// Input is one part of what a user says: a text, or an image's URL.
type Input struct {
	Type string `json:"type"`
	Text string `json:"text,omitempty"`
	URL  string `json:"url,omitempty"`
	Name string `json:"name,omitempty" doc:"of a file"`
}

// Todo is one entry of the agent's list.
type Todo struct {
	ID      string          `json:"id"`
	Content string          `json:"content"`
	State   event.TodoState `json:"state" enum:"todo,doing,done,canceled"`
	Order   int             `json:"order"`
}

// Usage counts tokens. CostMicros is in millionths of a US dollar, missing when
// nobody knows it.
type Usage struct {
	Input         int64  `json:"input"`
	Output        int64  `json:"output"`
	Reasoning     int64  `json:"reasoning,omitempty"`
	CacheRead     int64  `json:"cache_read,omitempty"`
	CacheWrite    int64  `json:"cache_write,omitempty"`
	ContextWindow int64  `json:"context_window,omitempty"`
	CostMicros    *int64 `json:"cost_micros,omitempty"`
	Model         string `json:"model,omitempty"`
	// Last is the newest model call: what the model's context holds.
	Last *thole.Tokens `json:"last,omitempty" doc:"the newest model call"`
}

// OfItem returns an item with its place.
func OfItem(r fold.ItemRecord) Item {
	return Item{ItemBody: OfBody(r.Item), RunID: string(r.Turn), Seq: r.Seq, Open: r.Open}
}

// OfBody returns an item without its place.
func OfBody(i event.Item) ItemBody {
	return ItemBody{
		ID: string(i.ID), Kind: i.Kind, State: i.State, Text: i.Text, Summary: i.Summary, Content: OfInput(i.Content), ClientID: i.ClientID,
		Command: ofCommand(i.Command), Changes: OfChanges(i.Changes), Tool: ofTool(i.Tool), Parent: string(i.Parent), Stamp: Stamp(i.Stamp),
	}
}

// ofTool returns nil for nil. What a client's tool returned is shown as text.
func ofTool(t *event.ToolCall) *ToolCall {
	if t == nil {
		return nil
	}
	out := &ToolCall{Name: t.Name, Server: t.Server, Namespace: t.Namespace, Input: t.Input, Output: t.Output, Error: t.Error}
	if t.Content != nil {
		text := ""
		for _, c := range t.Content {
			if c.Type != "text" {
				c.Text = "[" + c.Type + "]"
			}
			text += c.Text
		}
		out.Output, _ = json.Marshal(text) // a string always encodes
	}
	return out
}

// OfInput returns nil for nil.
func OfInput(in []thole.Input) []Input {
	return each(in, func(i thole.Input) Input { return Input(i) })
}

// OfChanges returns nil for nil.
func OfChanges(cs []event.FileChange) []FileChange {
	return each(cs, func(c event.FileChange) FileChange { return FileChange(c) })
}

// OfTodos returns nil for nil.
func OfTodos(ts []event.Todo) []Todo {
	return each(ts, func(t event.Todo) Todo { return Todo{string(t.ID), t.Content, t.State, t.Order} })
}

// ofCommand leaves out how the agent called its shell.
func ofCommand(c *event.Command) *Command {
	if c == nil {
		return nil
	}
	return &Command{Line: c.Line, Dir: c.Dir, Output: c.Output, OutputDropped: c.OutputDropped, ExitCode: c.ExitCode, DurationMS: c.DurationMS, User: c.User}
}

// OfUsage converts the struct; a field that one side lacks does not compile.
func OfUsage(u thole.Usage) Usage { return Usage(u) }

func each[A, B any](list []A, f func(A) B) []B {
	if list == nil {
		return nil
	}
	return Each(list, f)
}
