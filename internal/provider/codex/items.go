package codex

import (
	"encoding/json"
	"strings"

	"github.com/tholehq/thole/event"
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
		item.Command = &event.Command{Line: unwrap(val(w.Command)), Dir: val(w.Cwd), Output: val(w.AggregatedOutput), ExitCode: w.ExitCode, DurationMS: val(w.DurationMs)}
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
	case "dynamicToolCall", "functionCallOutput", "collabAgentToolCall":
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
	}
	if out.Kind == "add" || out.Kind == "delete" { // sent as the bare content, not as a diff
		mark := "+"
		if out.Kind == "delete" {
			mark = "-"
		}
		out.Diff = marked(mark, c.Diff)
	}
	return out
}

// marked makes a one-sided diff of a whole file.
func marked(mark, content string) string {
	if content == "" || strings.HasPrefix(content, "@@") {
		return content
	}
	var b strings.Builder
	for line := range strings.Lines(content) {
		b.WriteString(mark + line)
	}
	if !strings.HasSuffix(content, "\n") {
		b.WriteByte('\n')
	}
	return b.String()
}

func (d *decoder) relative(path string) string { return provider.Relative(d.dir, path) }

// unwrap takes the shell away that codex puts around a command line.
func unwrap(line string) string {
	for _, shell := range []string{"/bin/bash -lc ", "/usr/bin/bash -lc ", "/bin/sh -lc ", "/usr/bin/sh -lc ", "bash -lc ", "/bin/bash -c ", "/usr/bin/bash -c ", "/bin/sh -c ", "/usr/bin/sh -c ", "bash -c ", "sh -c "} {
		rest, ok := strings.CutPrefix(line, shell)
		if !ok {
			continue
		}
		if text, ok := unquote(rest); ok {
			return text
		}
		return rest
	}
	return line
}

// unquote undoes POSIX quoting of a single word; ok is false for several words.
func unquote(s string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\'':
			end := strings.IndexByte(s[i+1:], '\'')
			if end < 0 {
				return "", false
			}
			b.WriteString(s[i+1 : i+1+end])
			i += end + 1
		case '"':
			for i++; i < len(s) && s[i] != '"'; i++ {
				if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("$`\"\\\n", s[i+1]) >= 0 {
					i++
				}
				b.WriteByte(s[i])
			}
			if i >= len(s) {
				return "", false
			}
		case '\\':
			if i++; i >= len(s) {
				return "", false
			}
			b.WriteByte(s[i])
		case ' ', '\t', '\n':
			return "", false
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), true
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
