package chat

import (
	"encoding/json"
	"strings"

	"github.com/tholehq/thole/internal/strictjson"
)

// Part is one part of a message, with the keys the client gives it.
type Part map[string]any

// Message is a UIMessage. Fold makes one of chunks in the way the official
// client does, so that a message read from history is the message that was
// streamed.
type Message struct {
	ID       string    `json:"id"`
	Role     string    `json:"role"`
	Metadata *Metadata `json:"metadata,omitempty"`
	Parts    []Part    `json:"parts"`

	texts  map[string]Part // open text and reasoning parts, by family and id
	inputs map[string]*strings.Builder
}

// NewMessage makes an empty message of the assistant.
func NewMessage() *Message {
	return &Message{Role: "assistant", Parts: []Part{}, texts: map[string]Part{}, inputs: map[string]*strings.Builder{}}
}

// Fold adds chunks.
func (m *Message) Fold(chunks []Chunk) {
	for i := range chunks {
		m.fold(&chunks[i])
	}
}

func (m *Message) add(p Part) Part {
	m.Parts = append(m.Parts, p)
	return p
}

func set(p Part, key, value string) {
	if value != "" {
		p[key] = value
	}
}

func (m *Message) fold(c *Chunk) {
	switch c.Type {
	case "start":
		m.ID = c.MessageID
		m.merge(c.MessageMetadata)
	case "finish", "message-metadata":
		m.merge(c.MessageMetadata)
	case "start-step":
		m.add(Part{"type": "step-start"})
	case "reset-step":
		m.Parts = m.Parts[:m.stepStart()]
		clear(m.texts)
		clear(m.inputs)
	case "text-start", "reasoning-start":
		family := strings.TrimSuffix(c.Type, "-start")
		p := m.add(Part{"type": family, "text": "", "state": "streaming"})
		if family == "reasoning" {
			p["id"] = c.ID
		}
		if c.ProviderMetadata != nil {
			p["providerMetadata"] = c.ProviderMetadata
		}
		m.texts[family+c.ID] = p
	case "text-delta", "reasoning-delta":
		if p := m.texts[strings.TrimSuffix(c.Type, "-delta")+c.ID]; p != nil {
			p["text"] = p["text"].(string) + c.Delta
		}
	case "text-end", "reasoning-end":
		key := strings.TrimSuffix(c.Type, "-end") + c.ID
		if p := m.texts[key]; p != nil {
			p["state"] = "done"
			delete(m.texts, key)
		}
	case "file":
		m.add(Part{"type": "file", "mediaType": c.MediaType, "url": c.URL})
	case "source-url", "source-document":
		p := m.add(Part{"type": c.Type, "sourceId": c.SourceID})
		set(p, "url", c.URL)
		set(p, "title", c.Title)
		set(p, "mediaType", c.MediaType)
		set(p, "filename", c.Filename)
	default:
		switch {
		case strings.HasPrefix(c.Type, "tool-"):
			m.foldTool(c)
		case strings.HasPrefix(c.Type, "data-") && !c.Transient:
			m.foldData(c)
		}
	}
}

// stepStart is where the parts of the current step begin.
func (m *Message) stepStart() int {
	i := len(m.Parts)
	for i > 0 && m.Parts[i-1]["type"] != "step-start" {
		i--
	}
	return i
}

func (m *Message) foldData(c *Chunk) {
	for _, p := range m.Parts {
		if p["type"] == c.Type && p["id"] == c.ID {
			p["data"] = c.Data
			return
		}
	}
	m.add(Part{"type": c.Type, "id": c.ID, "data": c.Data})
}

func (m *Message) merge(with *Metadata) {
	if with == nil {
		return
	}
	if m.Metadata == nil {
		m.Metadata = &Metadata{}
	}
	// Keys that are not there leave what is, as in the client's merge.
	_ = strictjson.Unmarshal(raw(with), m.Metadata)
}

// find returns a tool part, of this step or an earlier one.
func (m *Message) find(call string) Part {
	for i := len(m.Parts) - 1; i >= 0; i-- {
		if m.Parts[i]["toolCallId"] == call {
			return m.Parts[i]
		}
	}
	return nil
}

func (m *Message) foldTool(c *Chunk) {
	switch c.Type {
	case "tool-input-start":
		p := m.tool(c)
		p["state"] = "input-streaming"
		m.inputs[c.ToolCallID] = &strings.Builder{}
		return
	case "tool-input-available":
		p := m.tool(c)
		p["state"], p["input"] = "input-available", c.Input
		delete(p, "rawInput")
		if c.ProviderMetadata != nil {
			p["callProviderMetadata"] = c.ProviderMetadata
		}
		return
	case "tool-approval-response":
		for _, p := range m.Parts {
			if a, ok := p["approval"].(Part); ok && a["id"] == c.ApprovalID {
				p["state"], a["approved"] = "approval-responded", *c.Approved
				set(a, "reason", c.Reason)
			}
		}
		return
	}
	p := m.find(c.ToolCallID)
	if p == nil {
		return
	}
	switch c.Type {
	case "tool-input-delta":
		if b := m.inputs[c.ToolCallID]; b != nil {
			b.WriteString(c.InputTextDelta)
			p["rawInput"] = b.String()
			if json.Valid([]byte(b.String())) { // the client repairs what is not complete; it is replaced soon
				p["input"] = json.RawMessage(b.String())
			}
		}
	case "tool-approval-request":
		p["state"], p["approval"] = "approval-requested", Part{"id": c.ApprovalID}
	case "tool-output-denied":
		p["state"] = "output-denied"
	case "tool-output-available":
		p["state"], p["output"] = "output-available", c.Output
		delete(p, "preliminary")
		delete(p, "rawInput")
		if c.Preliminary {
			p["preliminary"] = true
		}
	case "tool-output-error":
		p["state"], p["errorText"] = "output-error", c.ErrorText
		delete(p, "preliminary")
		delete(p, "output")
		if c.Dynamic {
			delete(p, "rawInput")
		}
	}
}

// tool finds the call's part in this step or adds it.
func (m *Message) tool(c *Chunk) Part {
	for _, p := range m.Parts[m.stepStart():] {
		if p["toolCallId"] == c.ToolCallID {
			return p
		}
	}
	p := m.add(Part{"type": "tool-" + c.ToolName, "toolCallId": c.ToolCallID, "providerExecuted": true})
	if c.Dynamic {
		p["type"], p["toolName"] = "dynamic-tool", c.ToolName
	}
	return p
}
