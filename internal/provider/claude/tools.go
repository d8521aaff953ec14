package claude

import (
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
	t := &toolItem{name: name, began: time.Now(), item: event.Item{
		ID:   d.em.ItemID(id),
		Kind: event.ItemTool,
		Tool: &event.ToolCall{Name: name},
	}}
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
	case strings.HasPrefix(name, "mcp__"):
		if server, tool, ok := strings.Cut(name[len("mcp__"):], "__"); ok {
			t.item.Tool = &event.ToolCall{Name: tool, Server: server}
		}
	}
	d.tools[id] = t
	d.em.Start(t.snapshot())
	return t
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

// commandResult fills in what a shell command gave. The CLI reports the exit code
// only in the text of an error.
func commandResult(c *event.Command, isError, declined bool, content string, structured json.RawMessage) {
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
	if code >= 0 && !declined && r.Background == "" {
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
