package codex

import (
	"encoding/json"
	"strings"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/commandline"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/app"
)

// item converts one of the CLI's items; ok is false for kinds that say nothing a
// client could show.
func (d *decoder) item(w *wireItem) (item event.Item, ok bool) {
	item = event.Item{ID: d.em.ItemID(w.ID), State: itemState(w.Status)}
	switch w.Type {
	case "agentMessage":
		item.Kind, item.Text = event.ItemMessage, val(w.Text)
	case "reasoning":
		item.Kind = event.ItemReasoning
		item.Summary, item.Text = joined(w.Summary), joined(w.Content)
	case "plan":
		item.Kind, item.Text = event.ItemPlan, val(w.Text)
	case "commandExecution":
		item.Kind = event.ItemCommand
		item.Command = &event.Command{Dir: val(w.Cwd), Output: val(w.AggregatedOutput), ExitCode: w.ExitCode, DurationMS: val(w.DurationMs)}
		item.Command.Line, item.Command.Argv = line(val(w.Command))
		if w.ExitCode != nil && *w.ExitCode != 0 && item.State == event.StateCompleted {
			item.State = event.StateFailed
		}
	case "fileChange":
		item.Kind = event.ItemFileChange
		for _, c := range w.Changes {
			item.Changes = append(item.Changes, d.change(c))
		}
	case "mcpToolCall":
		item.Kind = event.ItemTool
		item.Tool = &event.ToolCall{Name: w.Tool, Server: w.Server, Input: value(w.Arguments), Output: value(w.Result), Error: errorText(w.Error)}
	case "dynamicToolCall":
		item.Kind = event.ItemTool
		item.Tool = &event.ToolCall{Name: w.Tool, Namespace: val(w.Namespace), Input: value(w.Arguments), Content: content(w.ContentItems)}
	case "functionCallOutput", "collabAgentToolCall":
		item.Kind = event.ItemTool
		item.Tool = &event.ToolCall{Name: first(w.Tool, w.Name, w.Type), Input: value(w.Arguments), Output: value(first(string(w.Output), string(w.Result))), Error: errorText(w.Error)}
	case "webSearch":
		item.Kind = event.ItemTool
		input, _ := json.Marshal(map[string]string{"query": w.Query})
		item.Tool = &event.ToolCall{Name: "web_search", Input: input}
	case "imageView":
		item.Kind = event.ItemTool
		input, _ := json.Marshal(map[string]string{"path": w.Path})
		item.Tool = &event.ToolCall{Name: "view_image", Input: input}
	case "contextCompaction":
		item.Kind = event.ItemCompaction
	case "enteredReviewMode", "exitedReviewMode":
		item.Kind, item.Text = event.ItemSystem, w.Review
	default:
		return item, false
	}
	return item, true
}

func itemState(status string) event.ItemState {
	switch status {
	case "inProgress":
		return event.StateRunning
	case "failed":
		return event.StateFailed
	case "declined":
		return event.StateDeclined
	}
	return event.StateCompleted
}

func (d *decoder) change(c app.FileChange) event.FileChange {
	out := event.FileChange{Path: d.relative(c.Path), Kind: c.Kind.Type, Diff: c.Diff}
	if move := val(c.Kind.Move); move != "" {
		out.Move = d.relative(move)
		out.Diff = strings.TrimSuffix(out.Diff, "\n\nMoved to: "+move)
	}
	switch out.Kind { // sent as the bare content, not as a diff
	case "add":
		out.Diff = provider.Marked("+", c.Diff)
	case "delete":
		out.Diff = provider.Marked("-", c.Diff)
	}
	return out
}

func (d *decoder) relative(path string) string { return provider.Relative(d.dir, path) }

// line takes the shell away that codex puts around a command line. argv is what codex
// said where it cannot be made of the line again.
func line(said string) (line, argv string) {
	script, ok := commandline.Script(said)
	switch {
	case said == "":
		return "", ""
	case !ok:
		return said, said
	case commandline.Shell(script) != said:
		return script, said
	}
	return script, ""
}

// joined reads a list of strings or of {text} objects.
func joined(raw json.RawMessage) string {
	var texts []string
	if strictjson.Unmarshal(raw, &texts) == nil {
		return strings.Join(texts, "\n\n")
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if strictjson.Unmarshal(raw, &parts) != nil {
		return ""
	}
	for _, p := range parts {
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, "\n\n")
}

// value drops JSON null and anything that is no JSON.
func value[T ~string | ~[]byte](raw T) json.RawMessage {
	if s := string(raw); s != "" && s != "null" && json.Valid([]byte(s)) {
		return json.RawMessage(s)
	}
	return nil
}

func errorText(raw json.RawMessage) string {
	var e struct {
		Message string `json:"message"`
	}
	if strictjson.Unmarshal(raw, &e) == nil && e.Message != "" {
		return e.Message
	}
	var s string
	_ = strictjson.Unmarshal(raw, &s)
	return s
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" && v != "null" {
			return v
		}
	}
	return ""
}
