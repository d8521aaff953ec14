package app

import "encoding/json"

// Kinds of a DynamicTool.
const (
	DynamicToolFunction  = "function"
	DynamicToolNamespace = "namespace"
)

// DynamicTool is a tool that the client runs itself, or a namespace of such tools. It is
// called by item/tool/call; experimental.
type DynamicTool struct {
	Type        string          `json:"type" ts:"\"function\" | \"namespace\""`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema,omitempty"`
	// DeferLoading shows the tool to a model only when it looks for it.
	DeferLoading bool `json:"deferLoading,omitempty"`
	// Tools are those of a namespace.
	Tools []DynamicTool `json:"tools,omitzero"`
}

// ToolCall runs a tool that the client owns.
type ToolCall struct {
	ThreadID  string          `json:"threadId"`
	TurnID    string          `json:"turnId"`
	CallID    string          `json:"callId"`
	Namespace *string         `json:"namespace"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Thole     *AskExtra       `json:"thole,omitempty"`
}

// ToolCallAnswer is what the tool gave.
type ToolCallAnswer struct {
	ContentItems []ToolContent `json:"contentItems"`
	Success      bool          `json:"success"`
}

// Kinds of a ToolContent.
const (
	ToolText  = "inputText"
	ToolImage = "inputImage"
	ToolAudio = "inputAudio"
)

// ToolContent is one part of the output of a client's own tool.
type ToolContent struct {
	Type     string `json:"type" ts:"\"inputText\" | \"inputImage\" | \"inputAudio\""`
	Text     string `json:"text,omitempty"`
	ImageURL string `json:"imageUrl,omitempty"`
	AudioURL string `json:"audioUrl,omitempty"`
}

// MarshalJSON writes the member of the part's kind, also when it is empty.
func (t ToolContent) MarshalJSON() ([]byte, error) {
	name, value := "text", t.Text
	switch t.Type {
	case ToolImage:
		name, value = "imageUrl", t.ImageURL
	case ToolAudio:
		name, value = "audioUrl", t.AudioURL
	}
	return json.Marshal(map[string]string{"type": t.Type, name: value})
}
