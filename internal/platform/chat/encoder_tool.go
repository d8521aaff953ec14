package chat

import (
	"cmp"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/strictjson"
)

// maxFile bounds an image that travels inside the stream.
const maxFile = 2 << 20

type commandInput struct {
	Command string `json:"command"`
	Dir     string `json:"dir,omitempty"`
}

type commandOutput struct {
	Output     string `json:"output"`
	Dropped    int64  `json:"output_dropped,omitempty"`
	ExitCode   *int   `json:"exit_code,omitempty"`
	DurationMS int64  `json:"duration_ms,omitempty"`
}

type changesInput struct {
	Changes []event.FileChange `json:"changes"`
}

// dynamic: commands and file changes have names and shapes of thole's, any other
// tool keeps its own.
func dynamic(i event.Item) bool { return i.Kind == event.ItemTool }

func toolName(i event.Item) string {
	if i.Kind != event.ItemTool || i.Tool == nil {
		return string(i.Kind)
	}
	if i.Tool.Server != "" {
		return i.Tool.Server + "/" + i.Tool.Name
	}
	return i.Tool.Name
}

// toolInput is the call's input, nil while it is not known.
func toolInput(i event.Item) json.RawMessage {
	switch {
	case i.Kind == event.ItemCommand && i.Command != nil && i.Command.Line != "":
		return raw(commandInput{i.Command.Line, i.Command.Dir})
	case i.Kind == event.ItemFileChange && len(i.Changes) > 0:
		return raw(changesInput{i.Changes})
	case i.Kind == event.ItemTool && i.Tool != nil && len(i.Tool.Input) > 0:
		return i.Tool.Input
	}
	return nil
}

func (e *Encoder) begin(p *part) {
	if !p.begun {
		p.begun = true
		e.emit(Chunk{Type: "tool-input-start", ToolCallID: string(p.item.ID), ToolName: toolName(p.item), ProviderExecuted: true, Dynamic: dynamic(p.item)})
	}
}

// announce sends the input once. A later, better one (an edit whose diff became
// known) would make a second part when the step has moved on, so it waits for
// the output.
func (e *Encoder) announce(p *part, input json.RawMessage) {
	if p.ready {
		return
	}
	e.begin(p)
	p.ready = true
	e.emit(Chunk{Type: "tool-input-available", ToolCallID: string(p.item.ID), ToolName: toolName(p.item), Input: input,
		ProviderExecuted: true, Dynamic: dynamic(p.item), ProviderMetadata: p.info().meta()})
}

func (e *Encoder) tool(p *part, completed bool) {
	e.begin(p)
	input := toolInput(p.item)
	if input != nil {
		e.announce(p, input)
	}
	if !completed {
		return
	}
	if !p.ready {
		e.announce(p, raw(struct{}{}))
	}
	id := string(p.item.ID)
	switch {
	case p.item.State == event.StateDeclined:
		e.emit(Chunk{Type: "tool-output-denied", ToolCallID: id})
	case failure(p.item) != "":
		e.emit(Chunk{Type: "tool-output-error", ToolCallID: id, ErrorText: failure(p.item), ProviderExecuted: true, Dynamic: dynamic(p.item)})
	default:
		e.emit(Chunk{Type: "tool-output-available", ToolCallID: id, Output: toolOutput(p.item), ProviderExecuted: true, Dynamic: dynamic(p.item)})
		e.found(p.item)
	}
}

// failure is why a call has no output. A command that ran has one, whatever its
// exit code.
func failure(i event.Item) string {
	switch {
	case i.Kind == event.ItemTool && i.Tool != nil && i.Tool.Error != "":
		return i.Tool.Error
	case i.State != event.StateFailed:
		return ""
	case i.Kind == event.ItemCommand && i.Command != nil:
		if i.Command.ExitCode != nil || i.Command.Output != "" {
			return ""
		}
		return "the command did not run"
	case i.Kind == event.ItemFileChange:
		return "the change was not made"
	}
	return "the tool failed"
}

func toolOutput(i event.Item) json.RawMessage {
	switch {
	case i.Kind == event.ItemCommand && i.Command != nil:
		c := i.Command
		return raw(commandOutput{c.Output, c.OutputDropped, c.ExitCode, c.DurationMS})
	case i.Kind == event.ItemFileChange:
		return raw(struct {
			State event.ItemState `json:"state"`
			changesInput
		}{i.State, changesInput{i.Changes}})
	case i.Tool != nil && len(i.Tool.Output) > 0:
		return i.Tool.Output
	}
	return json.RawMessage(`null`)
}

// found shows what a tool brought: the page it read, the images and documents
// in its output.
func (e *Encoder) found(i event.Item) {
	if i.Kind != event.ItemTool || i.Tool == nil {
		return
	}
	var in struct {
		URL string `json:"url"`
	}
	if strictjson.Unmarshal(i.Tool.Input, &in) == nil && webPage(in.URL) {
		e.emit(Chunk{Type: "source-url", SourceID: string(i.ID), URL: in.URL})
	}
	for n, c := range contents(i.Tool.Output) {
		switch {
		case c.Type == "image" && c.Data != "" && strings.HasPrefix(c.MimeType, "image/") && len(c.Data) <= maxFile:
			e.emit(Chunk{Type: "file", URL: "data:" + c.MimeType + ";base64," + c.Data, MediaType: c.MimeType})
		case c.Type == "resource_link" && c.URI != "":
			id := string(i.ID) + "/" + strconv.Itoa(n)
			if webPage(c.URI) {
				e.emit(Chunk{Type: "source-url", SourceID: id, URL: c.URI, Title: c.Name})
			} else {
				e.emit(Chunk{Type: "source-document", SourceID: id, MediaType: cmp.Or(c.MimeType, "application/octet-stream"), Title: cmp.Or(c.Name, c.URI)})
			}
		}
	}
}

func webPage(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// content is one part of what an MCP tool returns.
type content struct {
	Type     string `json:"type"`
	Data     string `json:"data"`
	MimeType string `json:"mimeType"`
	URI      string `json:"uri"`
	Name     string `json:"name"`
}

// contents reads an MCP result, or its bare content list.
func contents(output json.RawMessage) []content {
	var list []content
	if strictjson.Unmarshal(output, &list) == nil {
		return list
	}
	var result struct {
		Content []content `json:"content"`
	}
	if strictjson.Unmarshal(output, &result) == nil {
		return result.Content
	}
	return nil
}
