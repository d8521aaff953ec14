package claude

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/strictjson"
)

// toolItem is a tool call between its start and its result.
type toolItem struct {
	item     event.Item
	name     string
	began    time.Time
	input    json.RawMessage
	declined bool // the host or the user said no
	client   bool // it is the thread's client's own
}

func isEdit(tool string) bool {
	return tool == "Write" || tool == "Edit" || tool == "MultiEdit" || tool == "NotebookEdit"
}

// startTool emits a call once; later calls return what is known. Commands and
// edits name the native tool in Item.Tool without its input, which is emitted by
// their own fields.
func (d *decoder) startTool(id, name, parent string) *toolItem {
	if t := d.tools[id]; t != nil {
		return t
	}
	call := toolCall(name)
	t := &toolItem{name: name, began: time.Now(), item: event.Item{ID: d.em.ItemID(id), Kind: event.ItemTool, Tool: &call}}
	if parent != "" {
		t.item.Parent = d.em.ItemID(parent)
	}
	switch {
	case name == "Bash":
		t.item.Kind = event.ItemCommand
		t.item.Command = &event.Command{Dir: d.dir}
	case isEdit(name):
		t.item.Kind = event.ItemFileChange
	case name == "ExitPlanMode":
		t.item.Kind = event.ItemPlan
	case strings.HasPrefix(name, clientPrefix):
		called := strings.TrimPrefix(name, clientPrefix)
		own := d.client[called]
		t.item.Tool, t.client = &event.ToolCall{Name: cmp.Or(own.Name, called), Namespace: own.Namespace}, true
	}
	d.tools[id] = t
	d.em.Start(t.snapshot())
	return t
}

// toolCall names a tool; one of an MCP server says so in its name.
func toolCall(name string) event.ToolCall {
	if rest, ok := strings.CutPrefix(name, "mcp__"); ok {
		if server, tool, ok := strings.Cut(rest, "__"); ok {
			return event.ToolCall{Name: tool, Server: server}
		}
	}
	return event.ToolCall{Name: name}
}

// snapshot copies the item, so that an emitted event never changes.
func (t *toolItem) snapshot() event.Item {
	item := t.item
	item.Changes = slices.Clone(item.Changes)
	if item.Command != nil {
		c := *item.Command
		item.Command = &c
	}
	if item.Tool != nil {
		c := *item.Tool
		item.Tool = &c
	}
	return item
}

// toolInput emits a call's input when it is complete.
func (d *decoder) toolInput(id string, input json.RawMessage) {
	t := d.tools[id]
	if t == nil || t.input != nil || !json.Valid(input) {
		return
	}
	t.input = slices.Clone(input)
	switch t.item.Kind {
	case event.ItemCommand:
		t.item.Command.Line = stringField(input, "command")
	case event.ItemFileChange:
		t.item.Changes = preview(d.dir, input)
	case event.ItemPlan:
		t.item.Text = stringField(input, "plan")
	default:
		t.item.Tool.Input = t.input
	}
	d.em.Update(t.snapshot())
}

// decline marks a call that will not run.
func (d *decoder) decline(id string) {
	if t := d.tools[id]; t != nil {
		t.declined = true
	}
}

// toolResult completes a call.
func (d *decoder) toolResult(id string, isError bool, content string, structured json.RawMessage) {
	t := d.tools[id]
	if t == nil {
		return
	}
	delete(d.tools, id)
	it := &t.item
	it.State = event.StateCompleted
	switch {
	case t.declined:
		it.State = event.StateDeclined
	case isError:
		it.State = event.StateFailed
	}
	if it.Command != nil {
		it.Command.DurationMS = time.Since(t.began).Milliseconds()
		commandResult(it.Command, isError, t.declined, content, structured)
	} else if it.Kind == event.ItemFileChange {
		if c := applied(d.dir, structured); c != nil && !isError {
			it.Changes = c
		}
	} else if it.Kind == event.ItemPlan {
		if plan := stringField(structured, "plan"); plan != "" {
			it.Text = plan
		}
	}
	switch {
	case t.client:
		it.Tool.Content = clientContent(content, structured)
	case isError:
		it.Tool.Error, _ = provider.Bound(content)
	case it.Kind == event.ItemTool:
		it.Tool.Output = output(content, structured)
	}
	d.em.Complete(t.snapshot())
	if !isError {
		d.todoResult(t, structured)
	}
}

// clientContent is what a client's tool returned: in parts where the CLI repeats them, else
// as the text the model saw.
func clientContent(content string, structured json.RawMessage) []event.ToolContent {
	if parts := provider.ClientContent(structured); len(parts) > 0 {
		return parts
	}
	text, _ := provider.Bound(content)
	return []event.ToolContent{{Type: "text", Text: text}}
}

// commandResult fills in what a shell command gave. The CLI reports the exit code
// only in the text of an error.
func commandResult(c *event.Command, isError, declined bool, content string, structured json.RawMessage) {
	if declined {
		return // it printed nothing: the content is why it did not run
	}
	out := content
	var r struct {
		Stdout     string `json:"stdout"`
		Stderr     string `json:"stderr"`
		Background string `json:"backgroundTaskId"`
	}
	if strictjson.Unmarshal(structured, &r) == nil && (r.Stdout != "" || r.Stderr != "") {
		out = r.Stdout
		if r.Stderr != "" && out != "" && !strings.HasSuffix(out, "\n") {
			out += "\n"
		}
		out += r.Stderr
	}
	code := 0
	if isError {
		code = -1
		if rest, ok := strings.CutPrefix(content, "Exit code "); ok {
			line, body, _ := strings.Cut(rest, "\n")
			if n, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
				code, out = n, body
			}
		}
	}
	if code >= 0 && r.Background == "" {
		c.ExitCode = &code
	}
	c.Output = out // bounded where it is emitted
}

// output is a tool's result as JSON: structured where the CLI gives that and it
// is not huge (images are), else the text the model saw.
func output(content string, structured json.RawMessage) json.RawMessage {
	if len(structured) > 0 && len(structured) <= provider.OutputLimit && structured[0] != '"' {
		return slices.Clone(structured)
	}
	s, _ := provider.Bound(content)
	raw, _ := json.Marshal(s)
	return raw
}

func stringField(raw json.RawMessage, name string) string {
	var m map[string]json.RawMessage
	if strictjson.Unmarshal(raw, &m) != nil {
		return ""
	}
	var s string
	_ = strictjson.Unmarshal(m[name], &s)
	return s
}
