package event

import "encoding/json"

// ClientTool is a tool that a client of the thread runs itself, or with Tools a namespace
// of such tools.
type ClientTool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// Schema is the JSON schema of the tool's input.
	Schema json.RawMessage `json:"schema,omitempty"`
	// Deferred tools are shown to a model when it looks for them, where its agent can do so.
	Deferred bool         `json:"deferred,omitempty"`
	Tools    []ClientTool `json:"tools,omitempty"`
}

// ToolContent is one part of what a client's tool returned: a text, or the URL of an image
// or of audio.
type ToolContent struct {
	Type string `json:"type"` // "text", "image", "audio"
	Text string `json:"text,omitempty"`
	URL  string `json:"url,omitempty"`
}
