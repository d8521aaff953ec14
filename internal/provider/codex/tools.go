package codex

import (
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/protocol/app"
)

// dynamicTools are the tools of the thread's client as codex takes them with a new
// thread. It keeps them with the thread's own record.
func dynamicTools(tools []event.ClientTool) []app.DynamicTool {
	var out []app.DynamicTool
	for _, t := range tools {
		w := app.DynamicTool{Type: app.DynamicToolFunction, Name: t.Name, Description: t.Description, InputSchema: t.Schema, DeferLoading: t.Deferred}
		if t.Tools != nil {
			w.Type, w.Tools = app.DynamicToolNamespace, dynamicTools(t.Tools)
		}
		out = append(out, w)
	}
	return out
}

// content is what a client's tool returned.
func content(items []app.ToolContent) (out []event.ToolContent) {
	for _, c := range items {
		switch c.Type {
		case app.ToolImage:
			out = append(out, event.ToolContent{Type: "image", URL: c.ImageURL})
		case app.ToolAudio:
			out = append(out, event.ToolContent{Type: "audio", URL: c.AudioURL})
		default:
			text, _ := provider.Bound(c.Text)
			out = append(out, event.ToolContent{Type: "text", Text: text})
		}
	}
	return out
}

// toolReply is the answer to a call of a client's tool on the wire.
func toolReply(a event.Answer) app.ToolCallAnswer {
	said := provider.ReadToolAnswer(a)
	out := app.ToolCallAnswer{ContentItems: []app.ToolContent{}, Success: said.OK}
	for _, c := range said.Content {
		switch c.Type {
		case "image":
			out.ContentItems = append(out.ContentItems, app.ToolContent{Type: app.ToolImage, ImageURL: c.URL})
		case "audio":
			out.ContentItems = append(out.ContentItems, app.ToolContent{Type: app.ToolAudio, AudioURL: c.URL})
		default:
			out.ContentItems = append(out.ContentItems, app.ToolContent{Type: app.ToolText, Text: c.Text})
		}
	}
	return out
}

// toolAsk reads a call of a client's tool.
func toolAsk(a *event.Ask, q app.ToolCall) {
	a.Kind, a.Decisions, a.Title = event.AskTool, nil, "Call "+q.Tool
	a.Tool = &event.ToolCall{Name: q.Tool, Namespace: val(q.Namespace), Input: value(q.Arguments)}
}
