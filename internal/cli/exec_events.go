package cli

import (
	"fmt"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/app"
)

// show prints one notification in the words of codex exec and reports whether the turn is
// over.
func (x *execution) show(n appclient.Notification, turn string) (over bool, err error) {
	var p struct {
		notice
		TokenUsage struct {
			Total app.TokenUsage `json:"total"`
		} `json:"tokenUsage"`
	}
	_ = strictjson.Unmarshal(n.Params, &p)
	if p.ThreadID != x.thread {
		return false, nil
	}
	switch n.Method {
	case "item/started":
		x.item("item.started", p.Item)
	case "item/completed":
		x.item("item.completed", p.Item)
	case "turn/plan/updated":
		x.plan(p.Plan)
	case "thread/tokenUsage/updated":
		x.usage = p.TokenUsage.Total
	case "warning":
		x.problem(p.Message)
	case "error":
		if p.WillRetry {
			x.say(map[string]any{"type": "error", "message": p.Error.Message})
			x.note("thole: the agent tries again:", p.Error.Message)
		}
	case "turn/completed":
		if p.Turn.ID == turn {
			return true, x.end(p.Turn)
		}
	}
	return false, nil
}

// end prints how the turn ended.
func (x *execution) end(t app.Turn) error {
	if x.todos != "" {
		x.say(map[string]any{"type": "item.completed", "item": x.list()})
	}
	switch t.Status {
	case app.TurnCompleted:
		u := x.usage
		x.say(map[string]any{"type": "turn.completed", "usage": map[string]any{
			"input_tokens": u.InputTokens, "cached_input_tokens": u.CachedInputTokens, "cache_write_input_tokens": u.CacheWriteInputTokens,
			"output_tokens": u.OutputTokens, "reasoning_output_tokens": u.ReasoningOutputTokens,
		}})
		return nil
	case app.TurnInterrupted:
		x.say(map[string]any{"type": "turn.failed", "error": map[string]any{"message": "the turn was interrupted"}})
		return thole.Errorf(thole.CodeConflict, "the turn was interrupted")
	}
	message := "the turn failed"
	if t.Error != nil {
		message = t.Error.Message
	}
	x.say(map[string]any{"type": "error", "message": message})
	x.say(map[string]any{"type": "turn.failed", "error": map[string]any{"message": message}})
	return thole.Errorf(codeFailed, "the turn failed: %s", message)
}

// id names an item as codex exec does, by its place in this run.
func (x *execution) id(item string) string {
	if x.items[item] == "" {
		x.items[item] = fmt.Sprintf("item_%d", len(x.items))
	}
	return x.items[item]
}

// problem is a warning, which is an item there.
func (x *execution) problem(text string) {
	x.say(map[string]any{"type": "item.completed", "item": map[string]any{"id": x.id("warning " + text), "type": "error", "message": text}})
	x.note("thole:", text)
}

// plan prints the agent's list: started once, updated when it changes.
func (x *execution) plan(steps []app.PlanStep) {
	x.steps = steps
	event := "item.updated"
	if x.todos == "" {
		x.todos, event = x.id("todos"), "item.started"
	}
	x.say(map[string]any{"type": event, "item": x.list()})
}

func (x *execution) list() map[string]any {
	items := make([]map[string]any, 0, len(x.steps))
	for _, s := range x.steps {
		items = append(items, map[string]any{"text": s.Step, "completed": s.Status == "completed"})
	}
	return map[string]any{"id": x.todos, "type": "todo_list", "items": items}
}

// item prints an item. Messages and reasoning come whole, when they are complete, and so
// do changes of files.
func (x *execution) item(event string, it app.Item) {
	out := map[string]any{}
	started := event == "item.started"
	switch it.Type {
	case app.ItemAgentMessage, app.ItemPlan:
		if started || it.Text == nil {
			return
		}
		out["type"], out["text"] = "agent_message", *it.Text
		x.last = *it.Text
	case app.ItemReasoning:
		text := joined(it)
		if started || text == "" {
			return
		}
		out["type"], out["text"] = "reasoning", text
	case app.ItemCommandExecution:
		out["type"], out["command"], out["aggregated_output"], out["exit_code"], out["status"] = "command_execution", str(it.Command), str(it.AggregatedOutput), it.ExitCode, execStatus(it.Status)
		if started {
			x.note("$", hang(str(it.Command)))
		}
	case app.ItemFileChange:
		changes := make([]map[string]any, 0, len(it.Changes))
		for _, c := range it.Changes {
			changes = append(changes, map[string]any{"path": c.Path, "kind": c.Kind.Type})
			if !started {
				x.note("~", c.Kind.Type, c.Path)
			}
		}
		out["type"], out["changes"], out["status"] = "file_change", changes, execStatus(it.Status)
	case app.ItemMCPToolCall, app.ItemDynamicToolCall:
		out = x.tool(it)
	default:
		return
	}
	out["id"] = x.id(it.ID)
	x.say(map[string]any{"type": event, "item": out})
}

// tool is a call of any tool: codex exec has no other kind than those of MCP servers.
func (x *execution) tool(it app.Item) map[string]any {
	out := map[string]any{"type": "mcp_tool_call", "server": it.Server, "tool": it.Tool, "arguments": it.Arguments, "result": nil, "error": nil, "status": execStatus(it.Status)}
	switch {
	case it.Error != nil:
		out["error"] = map[string]any{"message": it.Error.Message}
	case it.Result != nil:
		out["result"] = map[string]any{"content": it.Result.Content, "structured_content": it.Result.StructuredContent}
	case len(it.ContentItems) > 0:
		content := make([]map[string]any, 0, len(it.ContentItems))
		for _, part := range it.ContentItems {
			content = append(content, map[string]any{"type": "text", "text": part.Text})
		}
		out["result"] = map[string]any{"content": content, "structured_content": nil}
	}
	if it.Status == app.ItemInProgress {
		x.note("#", it.Tool)
	}
	return out
}

func execStatus(s string) string {
	if s == app.ItemInProgress {
		return "in_progress"
	}
	return s
}

// joined is the text of reasoning: its summary, or what there is of it.
func joined(it app.Item) string {
	parts := it.Summary
	if len(parts) == 0 {
		_ = strictjson.Unmarshal(it.Content, &parts)
	}
	return strings.Join(parts, "\n\n")
}

func str(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
