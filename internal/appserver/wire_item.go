package appserver

import (
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/commandline"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/app"
)

// item is an item in the shape of the contract. dir is where the thread's agent works:
// paths below it are stored relative to it, and sent absolute.
func item(i event.Item, dir string) app.Item {
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
		command(&out, i, dir, &extra)
	case event.ItemFileChange:
		out.Type, out.Status, out.Changes = app.ItemFileChange, itemStatus(i.State), changes(i.Changes, dir)
	case event.ItemTool:
		tool(&out, i)
	case event.ItemCompaction:
		out.Type = app.ItemCompaction
	case event.ItemSystem:
		switch i.Review {
		case event.ReviewEntered:
			out.Type, out.Review = app.ItemEnteredReview, &i.Text
		case event.ReviewExited:
			out.Type, out.Review = app.ItemExitedReview, &i.Text
		default:
			out.Type, out.Text, extra.System = app.ItemAgentMessage, &i.Text, true
		}
	default:
		out.Type, out.Text = app.ItemAgentMessage, &i.Text
	}
	if extra != (app.ItemExtra{}) {
		out.Thole = &extra
	}
	return out
}

// itemNote encodes a notification about an item: with the extension's members for
// connections that declared it, without them for all others.
func itemNote(method string, at int64, w app.Item, params func(app.Item) any) *frame {
	bare := w
	bare.Thole = nil
	f := note(method, at, params(bare))
	if f != nil && w.Thole != nil {
		f.extra = params(w)
	}
	return f
}

// forPeer takes the extension's members away from items of a peer without it.
func forPeer(p *peer, items []app.Item) []app.Item {
	if p.extended {
		return items
	}
	for i := range items {
		items[i].Thole = nil
	}
	return items
}

// bareTurn is a turn without what only extended connections get.
func bareTurn(w app.Turn) app.Turn {
	w.Items = slices.Clone(w.Items)
	for i := range w.Items {
		w.Items[i].Thole = nil
	}
	w.Error = bareError(w.Error)
	return w
}

func bareError(e *app.TurnError) *app.TurnError {
	if e == nil || e.Thole == nil {
		return e
	}
	bare := *e
	bare.Thole = nil
	return &bare
}

// errorNote encodes an error of a turn.
func errorNote(at int64, w app.ErrorNotification) *frame {
	full := w
	w.Error = *bareError(&w.Error)
	f := note("error", at, w)
	if f != nil {
		f.extra = full
	}
	return f
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

func command(out *app.Item, i event.Item, dir string, extra *app.ItemExtra) {
	c := i.Command
	if c == nil {
		c = &event.Command{}
	}
	out.Type, out.Status, out.Source = app.ItemCommandExecution, itemStatus(i.State), "agent"
	if c.User {
		out.Source = "userShell"
	}
	out.Command, out.Cwd = new(argv(c.Line, c.Argv)), new(absolute(dir, c.Dir))
	out.CommandActions = actions(c.Line, *out.Cwd)
	out.AggregatedOutput, out.ExitCode = ptr(c.Output), c.ExitCode
	if c.DurationMS > 0 {
		out.DurationMs = &c.DurationMS
	}
	extra.Line, extra.OutputDropped = c.Line, c.OutputDropped
}

// argv is a command as Codex names it: what a client splits into the words of a program
// call. Agents give a line for a shell, so the program is a shell.
func argv(line, given string) string {
	if given != "" {
		return given
	}
	return commandline.Shell(line)
}

func actions(line, dir string) []app.CommandAction {
	list := commandline.Actions(line, dir)
	out := make([]app.CommandAction, 0, len(list))
	for _, a := range list {
		out = append(out, app.CommandAction{Type: string(a.Kind), Command: a.Command, Name: ptr(a.Name), Path: ptr(a.Path), Query: ptr(a.Query)})
	}
	return out
}

// absolute is a path as the agent sees it, "" for the directory itself.
func absolute(dir, name string) string {
	if path.IsAbs(name) {
		return name
	}
	return path.Join(cmp.Or(dir, "/"), name)
}

func changes(list []event.FileChange, dir string) []app.FileChange {
	out := make([]app.FileChange, 0, len(list))
	for _, c := range list {
		w := app.FileChange{Path: absolute(dir, c.Path), Kind: app.ChangeKind{Type: c.Kind}, Diff: fileDiff(c)}
		if c.Kind == "update" && c.Move != "" {
			w.Kind.Move = new(absolute(dir, c.Move))
			w.Diff += "\n\nMoved to: " + *w.Kind.Move
		}
		out = append(out, w)
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
	out.Type, out.Namespace = app.ItemDynamicToolCall, ptr(t.Namespace)
	if out.Status != app.ItemInProgress {
		out.Success = new(out.Status == app.ItemCompleted)
		out.ContentItems = toolContent(t)
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

func entry(r fold.ItemRecord, dir string) app.ItemEntry {
	it := item(r.Item, dir)
	return app.ItemEntry{TurnID: string(r.Turn), Item: it, StartedAtMs: it.StartedAtMs, CompletedAtMs: it.CompletedAtMs}
}
