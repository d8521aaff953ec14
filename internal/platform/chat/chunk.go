package chat

import (
	"encoding/json"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/view"
)

// Chunk is one event of the stream. Which fields a type has is fixed by the
// protocol; several published clients refuse extra keys.
type Chunk struct {
	Type             string          `json:"type"`
	ID               string          `json:"id,omitempty"`
	Delta            string          `json:"delta,omitempty"`
	MessageID        string          `json:"messageId,omitempty"`
	MessageMetadata  *Metadata       `json:"messageMetadata,omitempty"`
	ToolCallID       string          `json:"toolCallId,omitempty"`
	ToolName         string          `json:"toolName,omitempty"`
	InputTextDelta   string          `json:"inputTextDelta,omitempty"`
	Input            json.RawMessage `json:"input,omitempty"`
	Output           json.RawMessage `json:"output,omitempty"`
	ErrorText        string          `json:"errorText,omitempty"`
	Preliminary      bool            `json:"preliminary,omitempty"`
	ProviderExecuted bool            `json:"providerExecuted,omitempty"`
	Dynamic          bool            `json:"dynamic,omitempty"`
	ApprovalID       string          `json:"approvalId,omitempty"`
	Approved         *bool           `json:"approved,omitempty"`
	Reason           string          `json:"reason,omitempty"`
	SourceID         string          `json:"sourceId,omitempty"`
	URL              string          `json:"url,omitempty"`
	MediaType        string          `json:"mediaType,omitempty"`
	Title            string          `json:"title,omitempty"`
	Filename         string          `json:"filename,omitempty"`
	Data             json.RawMessage `json:"data,omitempty"`
	Transient        bool            `json:"transient,omitempty"`
	FinishReason     string          `json:"finishReason,omitempty"`
	ProviderMetadata *ProviderData   `json:"providerMetadata,omitempty"`
}

// ProviderData is our own corner of a part.
type ProviderData struct {
	Thole PartInfo `json:"thole"`
}

// PartInfo says what the protocol has no word for.
type PartInfo struct {
	Kind   string `json:"kind,omitempty"`   // "plan" for a proposed plan
	Parent string `json:"parent,omitempty"` // the item of a sub-agent's caller
}

// Metadata goes with a message. The client merges what comes later over what
// came before.
type Metadata struct {
	SessionID        string        `json:"session_id,omitempty"`
	RunID            string        `json:"run_id,omitempty"`
	TraceID          string        `json:"trace_id,omitempty"`
	ExecutorID       string        `json:"executor_id,omitempty"`
	Provider         string        `json:"provider,omitempty"`
	Model            string        `json:"model,omitempty"`
	ExecutionProfile string        `json:"execution_profile,omitempty"`
	ClientID         string        `json:"client_id,omitempty"`
	CreatedAt        time.Time     `json:"created_at,omitzero"`
	EndedAt          time.Time     `json:"ended_at,omitzero"`
	Outcome          thole.Outcome `json:"outcome,omitempty" enum:"completed,failed,interrupted"`
	Usage            *view.Usage   `json:"usage,omitempty"`
	// Time is known a moment after the end, so only messages that are read have it.
	Time *view.RunTime `json:"time,omitempty"`
	// Seq is how far in the log the message is, Sent how many bytes of each text in
	// flight it has beyond that. A client that posts the message back says with
	// them where to go on.
	Seq  uint64           `json:"seq,omitempty"`
	Sent map[string]int64 `json:"sent,omitempty"`
}

// raw encodes what always encodes.
func raw(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic("chat: encode: " + err.Error())
	}
	return b
}

func (i PartInfo) meta() *ProviderData {
	if i == (PartInfo{}) {
		return nil
	}
	return &ProviderData{Thole: i}
}
