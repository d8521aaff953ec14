package opencode

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/strictjson"
)

// call is a tool call.
type call struct {
	item  event.Item
	known bool // the input was emitted
	sent  int  // bytes of output emitted
	done  bool

	client bool // it is the thread's client's own
}

// clientPrefix begins the server's names of the tools of the thread's client.
const clientPrefix = provider.ClientToolsName + "_"

// outputTool is how the model gives an answer of the form that was asked for. The message
// repeats it, so the call is not shown.
const outputTool = "StructuredOutput"

func isEdit(tool string) bool {
	return tool == "edit" || tool == "write" || tool == "multiedit" || tool == "patch" || tool == "apply_patch"
}

// tool takes in a call's state: pending, running with input and growing output,
// then completed or error.
func (d *decoder) tool(p *part) {
	if d.structured && p.Tool == outputTool {
		return
	}
	key := callKey(p.MessageID, p.CallID)
	c := d.calls[key]
	if c == nil {
		c = d.startCall(key, p)
	}
	if c.done {
		return
	}
	if child := p.State.Metadata.SessionID; child != "" && p.Tool == "task" {
		d.children[child] = key
	}
	if p.State.Status != "pending" && !c.known {
		c.known = true
		d.input(key, c, p)
	}
	if p.State.Status == "running" {
		d.output(c, p.State.Metadata.Output)
	}
	if p.State.Status == "completed" || p.State.Status == "error" {
		c.done = true
		d.result(key, c, p)
	}
}

// maxDiffInput bounds the new files whose content is shown; larger ones are shown by path only.
const maxDiffInput = 1 << 20

func (d *decoder) startCall(key string, p *part) *call {
	c := &call{item: event.Item{ID: d.em.ItemID(key), Kind: event.ItemTool, Tool: &event.ToolCall{Name: p.Tool}}}
	switch {
	case strings.HasPrefix(p.Tool, clientPrefix):
		called := strings.TrimPrefix(p.Tool, clientPrefix)
		own := d.client[called]
		c.item.Tool, c.client = &event.ToolCall{Name: cmp.Or(own.Name, called), Namespace: own.Namespace}, true
	case p.Tool == "bash":
		c.item.Kind, c.item.Command = event.ItemCommand, &event.Command{Dir: d.dir}
	case isEdit(p.Tool):
		c.item.Kind = event.ItemFileChange
	}
	if p.SessionID != d.session {
		if parent := d.children[p.SessionID]; parent != "" {
			c.item.Parent = d.em.ItemID(parent)
		} else if parent := d.openTask(); parent != "" {
			c.item.Parent = d.em.ItemID(parent)
		}
	}
	d.calls[key] = c
	d.em.Start(c.snapshot())
	return c
}

// openTask is the call that most likely started a sub-agent which did not say so
// yet.
func (d *decoder) openTask() string {
	for key, c := range d.calls {
		if !c.done && c.item.Tool.Name == "task" {
			return key
		}
	}
	return ""
}

// snapshot copies the item, so that an emitted event never changes.
func (c *call) snapshot() event.Item {
	item := c.item
	item.Changes = slices.Clone(item.Changes)
	if item.Command != nil {
		cmd := *item.Command
		item.Command = &cmd
	}
	tool := *item.Tool
	item.Tool = &tool
	return item
}

type toolInput struct {
	Command  string  `json:"command"`
	FilePath string  `json:"filePath"`
	Content  *string `json:"content"`
}

func (d *decoder) input(key string, c *call, p *part) {
	var in toolInput
	_ = strictjson.Unmarshal(p.State.Input, &in)
	switch c.item.Kind {
	case event.ItemCommand:
		c.item.Command.Line = in.Command
	case event.ItemFileChange:
		c.item.Changes = d.changes[key]
		if len(c.item.Changes) == 0 && in.FilePath != "" {
			c.item.Changes = []event.FileChange{{Path: provider.Relative(d.dir, in.FilePath), Kind: "update"}}
		}
	default:
		c.item.Tool.Input = slices.Clone(p.State.Input)
	}
	d.em.Update(c.snapshot())
}

// output emits what a command has printed since. The server repeats the output
// from its beginning, cut at some length.
func (d *decoder) output(c *call, out string) {
	if c.item.Command != nil && len(out) > c.sent {
		d.em.Delta(c.item.ID, event.StreamOutput, out[c.sent:])
		c.sent = len(out)
	}
}

// change notes the edit that a call asks permission for; it may come before the
// call's own input.
func (d *decoder) change(a nativeAsk) {
	key := callKey(a.Tool.MessageID, a.Tool.CallID)
	d.changes[key] = append(d.changes[key], changeOf(d.dir, a))
	if c := d.calls[key]; c != nil && !c.done && c.item.Kind == event.ItemFileChange {
		c.item.Changes = d.changes[key]
		d.em.Update(c.snapshot())
	}
}

func (d *decoder) result(key string, c *call, p *part) {
	st := p.State
	c.item.State = event.StateCompleted
	switch {
	case d.declined[key]:
		c.item.State = event.StateDeclined
	case st.Status == "error":
		c.item.State = event.StateFailed
	}
	if cmd := c.item.Command; cmd != nil {
		cmd.Output, cmd.ExitCode = st.Metadata.Output, st.Metadata.Exit
		if cmd.Output == "" {
			cmd.Output = st.Output
		}
		if st.Time.End > 0 {
			cmd.DurationMS = st.Time.End - st.Time.Start
		}
		if cmd.ExitCode != nil && *cmd.ExitCode != 0 && c.item.State == event.StateCompleted {
			c.item.State = event.StateFailed
		}
	}
	if c.item.Kind == event.ItemFileChange && len(c.item.Changes) == 1 {
		c.item.Changes[0] = done(c.item.Changes[0], st)
	}
	if c.client {
		text, _ := provider.Bound(cmp.Or(st.Error, st.Output))
		c.item.Tool.Content = []event.ToolContent{{Type: "text", Text: text}}
	} else if st.Status == "error" {
		c.item.Tool.Error, _ = provider.Bound(st.Error)
	} else if c.item.Kind == event.ItemTool {
		out, _ := provider.Bound(st.Output)
		c.item.Tool.Output, _ = json.Marshal(out)
	}
	d.em.Complete(c.snapshot())
}

// done is a change as its call reports it. A call that needed no permission says of a file that
// it wrote only whether it was there before: what a new one holds is in the input.
func done(c event.FileChange, st *toolState) event.FileChange {
	var in toolInput
	switch {
	case st.Metadata.Diff != "":
		c.Diff = plainDiff(st.Metadata.Diff)
		if strings.Contains(st.Metadata.Diff, "\n@@ -0,0 ") {
			c.Kind = "add"
		}
	case c.Diff == "" && st.Status == "completed" && st.Metadata.Exists != nil && !*st.Metadata.Exists:
		c.Kind = "add"
		if strictjson.Unmarshal(st.Input, &in) == nil && in.Content != nil && len(*in.Content) <= maxDiffInput {
			c.Diff = provider.Marked("+", *in.Content)
		}
	}
	return c
}

// busyTools reports whether a call is running, so that silence means nothing.
func (d *decoder) busyTools() bool {
	for _, c := range d.calls {
		if !c.done {
			return true
		}
	}
	return false
}
