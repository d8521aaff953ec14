package view

import (
	"encoding/json"
	"time"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
)

// ToolExecution is a command, file change or tool call as one kind of thing.
type ToolExecution struct {
	ID        string          `json:"id"`
	RunID     string          `json:"run_id"`
	Seq       uint64          `json:"seq"`
	Kind      event.ItemKind  `json:"kind"`
	Name      string          `json:"name"`
	State     event.ItemState `json:"state,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	Output    json.RawMessage `json:"output,omitempty"`
	Error     string          `json:"error,omitempty"`
	ExitCode  *int            `json:"exit_code,omitempty"`
	StartedAt time.Time       `json:"started_at,omitzero"`
	EndedAt   time.Time       `json:"ended_at,omitzero"`
}

// OfToolItem converts; false for an item that is something else.
func OfToolItem(r fold.ItemRecord) (ToolExecution, bool) {
	i := r.Item
	v := ToolExecution{
		ID: string(i.ID), RunID: string(r.Turn), Seq: r.Seq, Kind: i.Kind, Name: string(i.Kind), State: i.State,
		StartedAt: i.Stamp.Started, EndedAt: i.Stamp.Ended,
	}
	switch {
	case i.Kind == event.ItemCommand && i.Command != nil:
		v.Input, v.Output, v.ExitCode = text(i.Command.Line), text(i.Command.Output), i.Command.ExitCode
	case i.Kind == event.ItemFileChange:
		v.Input, _ = json.Marshal(i.Changes)
	case i.Kind == event.ItemTool && i.Tool != nil:
		v.Name, v.Input, v.Output, v.Error = i.Tool.Name, i.Tool.Input, i.Tool.Output, i.Tool.Error
	default:
		return v, false
	}
	return v, true
}

func text(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	b, _ := json.Marshal(s) // a string always encodes
	return b
}
