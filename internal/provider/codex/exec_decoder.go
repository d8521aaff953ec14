package codex

import (
	"encoding/json"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/app"
)

// execDecoder turns the lines of `codex exec --json` into events.
type execDecoder struct {
	*decoder
	before app.TokenUsage // the conversation's totals before this turn
	total  *app.TokenUsage
	done   *provider.Ended
}

type execLine struct {
	Type     string    `json:"type"`
	ThreadID string    `json:"thread_id"`
	Message  string    `json:"message"`
	Item     *execItem `json:"item"`
	Usage    *struct {
		Input      int64 `json:"input_tokens"`
		Cached     int64 `json:"cached_input_tokens"`
		CacheWrite int64 `json:"cache_write_input_tokens"`
		Output     int64 `json:"output_tokens"`
		Reasoning  int64 `json:"reasoning_output_tokens"`
	} `json:"usage"`
	Error *app.TurnError `json:"error"`
}

type execItem struct {
	ID       string          `json:"id"`
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Message  string          `json:"message"`
	Status   string          `json:"status"`
	Command  string          `json:"command"`
	Output   string          `json:"aggregated_output"`
	ExitCode *int            `json:"exit_code"`
	Query    string          `json:"query"`
	Server   string          `json:"server"`
	Tool     string          `json:"tool"`
	Args     json.RawMessage `json:"arguments"`
	Result   json.RawMessage `json:"result"`
	Changes  []struct {
		Path string `json:"path"`
		Kind string `json:"kind"`
	} `json:"changes"`
	Items []struct {
		Text      string `json:"text"`
		Completed bool   `json:"completed"`
	} `json:"items"`
}

func (d *execDecoder) line(raw []byte) {
	var l execLine
	if strictjson.Unmarshal(raw, &l) != nil {
		return
	}
	switch l.Type {
	case "thread.started":
		if d.thread == "" {
			d.thread = l.ThreadID
			d.em.Session(l.ThreadID)
		}
	case "turn.started":
		d.em.StepStarted()
	case "item.started", "item.updated", "item.completed":
		if l.Item != nil {
			d.execItem(l.Type, l.Item)
		}
	case "error":
		te := failure(&app.TurnError{Message: l.Message})
		te.Retrying = strings.HasPrefix(l.Message, "Reconnecting")
		d.em.Error(*te)
	case "turn.failed":
		if l.Error == nil {
			l.Error = &app.TurnError{Message: "codex reported a failure without a reason"}
		}
		d.done = &provider.Ended{Outcome: thole.OutcomeFailed, Error: failure(l.Error)}
	case "turn.completed":
		if u := l.Usage; u != nil {
			d.total = &app.TokenUsage{InputTokens: u.Input, CachedInputTokens: u.Cached, CacheWriteInputTokens: u.CacheWrite, OutputTokens: u.Output, ReasoningOutputTokens: u.Reasoning}
			d.baseline = &d.before
			d.usage(&app.ThreadUsage{Total: *d.total})
		}
		d.done = &provider.Ended{Outcome: thole.OutcomeCompleted}
	}
}

func (d *execDecoder) execItem(what string, w *execItem) {
	item := event.Item{ID: d.em.ItemID(w.ID), State: itemState(strings.Replace(w.Status, "in_progress", "inProgress", 1))}
	switch w.Type {
	case "agent_message":
		item.Kind, item.Text = event.ItemMessage, w.Text
	case "reasoning":
		item.Kind, item.Text = event.ItemReasoning, w.Text
	case "command_execution":
		item.Kind = event.ItemCommand
		item.Command = &event.Command{Dir: d.dir, Output: w.Output, ExitCode: w.ExitCode}
		item.Command.Line, item.Command.Argv = line(w.Command)
	case "file_change":
		item.Kind = event.ItemFileChange
		for _, c := range w.Changes {
			item.Changes = append(item.Changes, event.FileChange{Path: d.relative(c.Path), Kind: c.Kind})
		}
	case "mcp_tool_call":
		item.Kind = event.ItemTool
		item.Tool = &event.ToolCall{Name: w.Tool, Server: w.Server, Input: value(w.Args), Output: value(w.Result)}
	case "web_search":
		item.Kind = event.ItemTool
		input, _ := json.Marshal(map[string]string{"query": w.Query})
		item.Tool = &event.ToolCall{Name: "web_search", Input: input}
	case "todo_list":
		var plan []app.PlanStep
		for _, i := range w.Items {
			plan = append(plan, app.PlanStep{Step: i.Text, Status: map[bool]string{true: "completed"}[i.Completed]})
		}
		d.em.Todos(todos(plan))
		return
	case "error": // a warning, not an end
		d.em.Note(w.Message)
		return
	default:
		return
	}
	if what == "item.completed" {
		d.em.Complete(item)
		return
	}
	item.State = event.StateRunning
	d.em.Update(item)
}
