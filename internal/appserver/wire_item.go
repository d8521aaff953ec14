package appserver

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/app"
)

// item is an item in the shape of the contract.
func item(i event.Item) app.Item {
	out := app.Item{ID: string(i.ID), StartedAtMs: millis(i.Stamp.Started), CompletedAtMs: millis(i.Stamp.Ended)}
	var extra app.ItemExtra
	extra.Parent = string(i.Parent)
	switch i.Kind {
	case event.ItemUserMessage:
		out.Type = app.ItemUserMessage
		out.ClientID = ptr(i.ClientID)
		out.Content, _ = json.Marshal(userInputs(i.Content))
	case event.ItemReasoning:
		out.Type = app.ItemReasoning
		out.Summary = parts(i.Summary)
		out.Content, _ = json.Marshal(parts(i.Text))
	case event.ItemPlan:
		out.Type, out.Text = app.ItemPlan, &i.Text
	case event.ItemCommand:
		command(&out, i, &extra)
	case event.ItemFileChange:
		out.Type, out.Status, out.Changes = app.ItemFileChange, itemStatus(i.State), changes(i.Changes)
	case event.ItemTool:
		tool(&out, i)
	case event.ItemCompaction:
		out.Type = app.ItemCompaction
	case event.ItemSystem:
		out.Type, out.Text, extra.System = app.ItemAgentMessage, &i.Text, true
	default:
		out.Type, out.Text = app.ItemAgentMessage, &i.Text
	}
	if extra != (app.ItemExtra{}) {
		out.Thole = &extra
	}
	return out
}

func parts(text string) []string {
	if text == "" {
		return []string{}
	}
	return []string{text}
}

func itemStatus(st event.ItemState) string {
	switch st {
	case event.StateCompleted:
		return app.ItemCompleted
	case event.StateFailed:
		return app.ItemFailed
	case event.StateDeclined:
		return app.ItemDeclined
	}
	return app.ItemInProgress
}

func command(out *app.Item, i event.Item, extra *app.ItemExtra) {
	c := i.Command
	if c == nil {
		c = &event.Command{}
	}
	out.Type, out.Status, out.Source = app.ItemCommandExecution, itemStatus(i.State), "agent"
	if c.User {
		out.Source = "userShell"
	}
	out.Command, out.Cwd = &c.Line, new(cmp.Or(c.Dir, "/"))
	out.CommandActions = []app.CommandAction{{Type: "unknown", Command: c.Line}}
	out.AggregatedOutput, out.ExitCode = ptr(c.Output), c.ExitCode
	if c.DurationMS > 0 {
		out.DurationMs = &c.DurationMS
	}
	extra.OutputDropped = c.OutputDropped
}

func changes(list []event.FileChange) []app.FileChange {
	out := make([]app.FileChange, 0, len(list))
	for _, c := range list {
		kind := app.ChangeKind{Type: c.Kind}
		if c.Kind == "update" {
			kind.Move = ptr(c.Move)
		}
		out = append(out, app.FileChange{Path: c.Path, Kind: kind, Diff: c.Diff})
	}
	return out
}

// tool is a call of an MCP server's tool or of any other; the latter are sent as
// dynamicToolCall, which clients show by name.
func tool(out *app.Item, i event.Item) {
	t := i.Tool
	if t == nil {
		t = &event.ToolCall{}
	}
	out.Tool, out.Status, out.Arguments = t.Name, itemStatus(i.State), t.Input
	if out.Status == app.ItemDeclined {
		out.Status = app.ItemFailed
	}
	if len(out.Arguments) == 0 {
		out.Arguments = json.RawMessage("{}")
	}
	text := plainText(t.Output)
	if t.Server != "" {
		out.Type, out.Server = app.ItemMCPToolCall, t.Server
		if t.Error != "" {
			out.Error = &app.MCPError{Message: t.Error}
		} else if len(t.Output) > 0 {
			part, _ := json.Marshal(map[string]string{"type": "text", "text": text})
			out.Result = &app.MCPResult{Content: []json.RawMessage{part}}
		}
		return
	}
	out.Type = app.ItemDynamicToolCall
	if out.Status != app.ItemInProgress {
		out.Success = new(out.Status == app.ItemCompleted)
		out.ContentItems = []app.ToolContent{{Type: "inputText", Text: cmp.Or(t.Error, text)}}
	}
}

// plainText is a JSON string's text, or other JSON as it is.
func plainText(raw json.RawMessage) string {
	var s string
	if strictjson.Unmarshal(raw, &s) == nil {
		return s
	}
	return strings.TrimSpace(string(raw))
}

func entry(r fold.ItemRecord) app.ItemEntry {
	it := item(r.Item)
	return app.ItemEntry{TurnID: string(r.Turn), Item: it, StartedAtMs: it.StartedAtMs, CompletedAtMs: it.CompletedAtMs}
}
