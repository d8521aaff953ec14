package appserver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/unguarded"
	"github.com/tholehq/thole/protocol/app"
)

// tuiTools is the namespace of the Codex TUI's own tools. They read and write to any
// thread of the server, for agents that are not confined to their own: through them an
// agent would leave its sandbox. They are not offered to agents; thread_start and
// thread_send of the tool server do the same within a thread's rights.
const tuiTools = "codex_tui"

// clientTools reads the tools of a new thread's client.
func clientTools(specs []app.DynamicTool) ([]event.ClientTool, error) {
	var out []event.ClientTool
	for _, w := range specs {
		t, err := clientTool(w)
		if err != nil {
			return nil, err
		}
		if w.Type == app.DynamicToolNamespace {
			t.Schema, t.Tools = nil, []event.ClientTool{}
			for _, one := range w.Tools {
				if one.Type == app.DynamicToolNamespace {
					return nil, invalid("unknown variant `%s`, expected `function`", one.Type)
				}
				in, err := clientTool(one)
				if err != nil {
					return nil, err
				}
				t.Tools = append(t.Tools, in)
			}
			if t.Name == tuiTools && !unguarded.Build {
				continue
			}
		}
		out = append(out, t)
	}
	return out, nil
}

func clientTool(w app.DynamicTool) (event.ClientTool, error) {
	switch {
	case w.Type == "":
		return event.ClientTool{}, invalid("missing field `type`")
	case w.Type != app.DynamicToolFunction && w.Type != app.DynamicToolNamespace:
		return event.ClientTool{}, invalid("unknown variant `%s`, expected `function` or `namespace`", w.Type)
	case w.Type == app.DynamicToolFunction && len(w.InputSchema) == 0:
		return event.ClientTool{}, invalid("missing field `inputSchema`")
	case w.Type == app.DynamicToolNamespace && w.Tools == nil:
		return event.ClientTool{}, invalid("missing field `tools`")
	}
	return event.ClientTool{Name: w.Name, Description: w.Description, Schema: compact(w.InputSchema), Deferred: w.DeferLoading}, nil
}

// compact is JSON without white space, as it is kept; nil for none.
func compact(raw json.RawMessage) json.RawMessage {
	var out bytes.Buffer
	if len(raw) == 0 || string(raw) == "null" || json.Compact(&out, raw) != nil {
		return nil
	}
	return out.Bytes()
}

// toolOwner is the client that an ask goes to alone: a tool is run by the program that
// brought it, and another that is attached to the thread would answer that it has none.
// "" is every client, nobody one that no client is.
func (s *Server) toolOwner(a event.Ask, t fold.Thread) string {
	switch {
	case a.Kind != event.AskTool:
		return ""
	case s.bridgeOf(t.ID).answers(a):
		return nobody
	}
	return t.Client
}

// nobody is a name that no client has: the call is answered by a bridge.
const nobody = "\x00"

// toolCall encodes the call of a client's tool.
func toolCall(id, turn, item string, a event.Ask) app.ToolCall {
	call := app.ToolCall{ThreadID: id, TurnID: turn, CallID: item, Arguments: json.RawMessage("{}")}
	if a.Tool != nil {
		call.Tool, call.Namespace = a.Tool.Name, ptr(a.Tool.Namespace)
		if len(a.Tool.Input) > 0 {
			call.Arguments = a.Tool.Input
		}
	}
	return call
}

// toolContent is what a client's tool returned, in the shape of the contract.
func toolContent(t *event.ToolCall) []app.ToolContent {
	if t.Content == nil {
		return []app.ToolContent{{Type: app.ToolText, Text: cmp.Or(t.Error, plainText(t.Output))}}
	}
	out := make([]app.ToolContent, 0, len(t.Content))
	for _, c := range t.Content {
		switch c.Type {
		case "image":
			out = append(out, app.ToolContent{Type: app.ToolImage, ImageURL: c.URL})
		case "audio":
			out = append(out, app.ToolContent{Type: app.ToolAudio, AudioURL: c.URL})
		default:
			out = append(out, app.ToolContent{Type: app.ToolText, Text: c.Text})
		}
	}
	return out
}

// toolAnswer reads what a client's tool returned. What cannot be given to a model is a
// failure that the model reads.
func toolAnswer(raw json.RawMessage) event.Answer {
	var w struct {
		Items   []app.ToolContent `json:"contentItems"`
		Success *bool             `json:"success"`
	}
	why := ""
	if strictjson.Unmarshal(raw, &w) != nil || w.Items == nil || w.Success == nil {
		why = "dynamic tool response was invalid"
	}
	for _, c := range w.Items {
		switch {
		case c.Type == app.ToolImage && remote(c.ImageURL):
			why = remoteImage
		case c.Type == app.ToolAudio && !strings.HasPrefix(strings.ToLower(c.AudioURL), "data:"):
			why = "audio URLs must use an inline data URL"
		case c.Type != app.ToolText && c.Type != app.ToolImage && c.Type != app.ToolAudio:
			why = "dynamic tool response was invalid"
		}
	}
	if why != "" {
		return event.Answer{Decision: event.DecisionDeny, Message: why}
	}
	return event.Answer{Result: raw}
}

// errOtherSchema refuses a schema for a turn that runs already.
func errOtherSchema(running thole.TurnID) error {
	return thole.Errorf(thole.CodeBusy, "outputSchema: turn %s is running and keeps its own", running).
		WithHint("wait for its end, interrupt it, or leave outputSchema out to steer it")
}
