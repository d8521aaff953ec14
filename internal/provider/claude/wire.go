package claude

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/tholehq/thole/internal/strictjson"
)

// message is one stdout line. The CLI's message kinds share one struct because a
// line is decoded once, without knowing its kind: key order is not fixed.
type message struct {
	Type      string `json:"type"`
	Subtype   string `json:"subtype"`
	UUID      string `json:"uuid"`
	SessionID string `json:"session_id"`

	// Control envelopes.
	RequestID string           `json:"request_id"`
	Request   *request         `json:"request"`
	Response  *controlResponse `json:"response"`

	// stream_event
	Parent    string          `json:"parent_tool_use_id"`
	Event     *streamEvent    `json:"event"`
	Abandoned json.RawMessage `json:"abandoned_blocks"` // on message_stop: the stream was cut, a repeat follows

	// Conversation.
	Message        *apiMessage     `json:"message"`
	IsReplay       bool            `json:"isReplay"`
	ToolResult     json.RawMessage `json:"tool_use_result"`
	ToolResultBare json.RawMessage `json:"toolUseResult"` // its name when a deferred tool resumes
	Error          string          `json:"error"`

	// result
	IsError        bool                  `json:"is_error"`
	APIStatus      int                   `json:"api_error_status"`
	Result         string                `json:"result"`
	Structured     json.RawMessage       `json:"structured_output"`
	StopReason     string                `json:"stop_reason"`
	TerminalReason string                `json:"terminal_reason"`
	ModelUsage     map[string]modelUsage `json:"modelUsage"`
	Deferred       *struct {
		ID string `json:"id"`
	} `json:"deferred_tool_use"`
	Errors []string `json:"errors"`
	Origin *struct {
		Kind string `json:"kind"`
	} `json:"origin"` // who caused the turn, when it was not a prompt

	// system
	Status         string   `json:"status"`
	Skills         []string `json:"skills"`
	PermissionMode string   `json:"permissionMode"`
	Model          string   `json:"model"`
	TaskID         string   `json:"task_id"`
	TaskType       string   `json:"task_type"`
	ToolUseID      string   `json:"tool_use_id"`
	Attempt        int      `json:"attempt"`
	MaxRetries     int      `json:"max_retries"`
	RetryDelayMS   float64  `json:"retry_delay_ms"`
	ErrorStatus    int      `json:"error_status"`
	Patch          *struct {
		Status string `json:"status"`
	} `json:"patch"`
}

// request is a control request of the CLI to its host.
type request struct {
	Subtype string `json:"subtype"`

	// can_use_tool
	ToolName    string          `json:"tool_name"`
	Input       json.RawMessage `json:"input"`
	Description string          `json:"description"`
	ToolUseID   string          `json:"tool_use_id"`
	Suggestions json.RawMessage `json:"permission_suggestions"`
	Reason      string          `json:"decision_reason"`

	// elicitation
	Server  string          `json:"mcp_server_name"`
	Message string          `json:"message"`
	URL     string          `json:"url"`
	Schema  json.RawMessage `json:"requested_schema"`
}

// hookInput is the input of a hook_callback request.
type hookInput struct {
	ToolName  string          `json:"tool_name"`
	ToolInput json.RawMessage `json:"tool_input"`
	ToolUseID string          `json:"tool_use_id"`
}

type streamEvent struct {
	Type         string      `json:"type"`
	Index        int         `json:"index"`
	Message      *apiMessage `json:"message"`
	ContentBlock *block      `json:"content_block"`
	Delta        *struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		Thinking string `json:"thinking"`
		JSON     string `json:"partial_json"`
	} `json:"delta"`
	Usage *apiUsage `json:"usage"`
}

type apiMessage struct {
	ID      string          `json:"id"`
	Model   string          `json:"model"`
	Content json.RawMessage `json:"content"`
	Usage   *apiUsage       `json:"usage"`
}

// blocks are the content blocks; a plain string is one text block.
func (m *apiMessage) blocks() []block {
	raw := bytes.TrimSpace(m.Content)
	if len(raw) == 0 {
		return nil
	}
	if raw[0] == '"' {
		var s string
		_ = strictjson.Unmarshal(raw, &s)
		return []block{{Type: "text", Text: s}}
	}
	var bs []block
	_ = strictjson.Unmarshal(raw, &bs)
	return bs
}

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	IsError   bool            `json:"is_error"`
	Content   json.RawMessage `json:"content"`
}

type apiUsage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
}

// controlResponse answers a control request of the driver.
type controlResponse struct {
	Subtype   string          `json:"subtype"`
	RequestID string          `json:"request_id"`
	Response  json.RawMessage `json:"response"`
	Error     string          `json:"error"`
}

// parse decodes one line. A field of an unexpected type is skipped, not fatal:
// unknown message kinds reuse field names with other types.
func parse(line []byte) (*message, error) {
	m := &message{}
	var mismatch *json.UnmarshalTypeError
	if err := strictjson.Unmarshal(line, m); err != nil && !errors.As(err, &mismatch) {
		return nil, err
	}
	return m, nil
}

const (
	textDelta     = "text_delta"
	thinkingDelta = "thinking_delta"
	inputDelta    = "input_json_delta"
)

// text is the readable form of a tool result's content: a string or text blocks.
func text(raw json.RawMessage) string {
	m := apiMessage{Content: raw}
	var b bytes.Buffer
	for _, c := range m.blocks() {
		if c.Text == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(c.Text)
	}
	return b.String()
}
