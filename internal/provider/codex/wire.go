package codex

import (
	"encoding/json"
	"reflect"
	"time"

	"github.com/tholehq/thole/event"
)

// The part of the app-server's wire that the driver reads and writes. Unknown
// members are ignored: newer servers add some.

type clientInfo struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
}

type initializeParams struct {
	ClientInfo   clientInfo     `json:"clientInfo"`
	Capabilities map[string]any `json:"capabilities"`
}

type initializeResult struct {
	UserAgent string `json:"userAgent"`
}

// threadParams serves thread/start, thread/resume and thread/fork.
type threadParams struct {
	ThreadID              string `json:"threadId,omitempty"`
	ExcludeTurns          bool   `json:"excludeTurns,omitempty"`
	Cwd                   string `json:"cwd,omitempty"`
	Model                 string `json:"model,omitempty"`
	ApprovalPolicy        string `json:"approvalPolicy,omitempty"`
	Sandbox               string `json:"sandbox,omitempty"`
	DeveloperInstructions string `json:"developerInstructions,omitempty"`
}

type threadResult struct {
	Thread struct {
		ID string `json:"id"`
	} `json:"thread"`
	Model           string `json:"model"`
	ReasoningEffort string `json:"reasoningEffort"`
}

type userInput struct {
	Type string `json:"type"`
	Text string `json:"text,omitempty"`
	URL  string `json:"url,omitempty"`
	Path string `json:"path,omitempty"`
}

type turnStartParams struct {
	ThreadID            string             `json:"threadId"`
	Input               []userInput        `json:"input"`
	ClientUserMessageID string             `json:"clientUserMessageId,omitempty"`
	ApprovalPolicy      string             `json:"approvalPolicy"`
	SandboxPolicy       sandboxPolicy      `json:"sandboxPolicy"`
	Model               string             `json:"model,omitempty"`
	Effort              string             `json:"effort,omitempty"`
	Summary             string             `json:"summary,omitempty"`
	CollaborationMode   *collaborationMode `json:"collaborationMode,omitempty"`
}

type sandboxPolicy struct {
	Type          string   `json:"type"`
	WritableRoots []string `json:"writableRoots,omitempty"`
	NetworkAccess *bool    `json:"networkAccess,omitempty"`
}

type collaborationMode struct {
	Mode     string                `json:"mode"`
	Settings collaborationSettings `json:"settings"`
}

func (m *collaborationMode) same(o *collaborationMode) bool {
	return m != nil && reflect.DeepEqual(m, o)
}

type collaborationSettings struct {
	Model                 string  `json:"model"`
	ReasoningEffort       *string `json:"reasoning_effort"`
	DeveloperInstructions *string `json:"developer_instructions"`
}

type turnResult struct {
	Turn wireTurn `json:"turn"`
}

type wireTurn struct {
	ID     string     `json:"id"`
	Status string     `json:"status"`
	Error  *wireError `json:"error"`
}

type wireError struct {
	Message           string          `json:"message"`
	Info              json.RawMessage `json:"codexErrorInfo"`
	AdditionalDetails string          `json:"additionalDetails"`
}

// note is any notification's params: the union of the members that are read.
type note struct {
	ThreadID  string          `json:"threadId"`
	TurnID    string          `json:"turnId"`
	Turn      *wireTurn       `json:"turn"`
	Item      *wireItem       `json:"item"`
	ItemID    string          `json:"itemId"`
	Delta     string          `json:"delta"`
	Index     int             `json:"summaryIndex"`
	Error     *wireError      `json:"error"`
	WillRetry bool            `json:"willRetry"`
	Usage     *wireTokenUsage `json:"tokenUsage"`
	Plan      []wirePlanStep  `json:"plan"`
	Message   string          `json:"message"`
	Summary   string          `json:"summary"`
	RequestID json.RawMessage `json:"requestId"`
	Limits    wireLimits      `json:"rateLimits"`
}

type wireLimits struct {
	Primary   *wireLimit `json:"primary"`
	Secondary *wireLimit `json:"secondary"`
}

type wireLimit struct {
	Used   int   `json:"usedPercent"`
	Window int   `json:"windowDurationMins"`
	Resets int64 `json:"resetsAt"`
}

func (w wireLimits) list() (out []event.Limit) {
	add := func(name string, l *wireLimit) {
		if l == nil {
			return
		}
		e := event.Limit{Name: name, Used: l.Used, Window: l.Window}
		if l.Resets > 0 {
			e.Resets = time.Unix(l.Resets, 0).UTC()
		}
		out = append(out, e)
	}
	add("primary", w.Primary)
	add("secondary", w.Secondary)
	return out
}

type wirePlanStep struct {
	Step   string `json:"step"`
	Status string `json:"status"`
}

type wireTokenUsage struct {
	Total  wireTokens `json:"total"`
	Last   wireTokens `json:"last"`
	Window int64      `json:"modelContextWindow"`
}

type wireTokens struct {
	Input      int64 `json:"inputTokens"`
	Cached     int64 `json:"cachedInputTokens"`
	CacheWrite int64 `json:"cacheWriteInputTokens"`
	Output     int64 `json:"outputTokens"`
	Reasoning  int64 `json:"reasoningOutputTokens"`
}

type wireItem struct {
	Type     string          `json:"type"`
	ID       string          `json:"id"`
	Text     string          `json:"text"`
	ClientID string          `json:"clientId"`
	Summary  json.RawMessage `json:"summary"`
	Content  json.RawMessage `json:"content"`
	Status   string          `json:"status"`

	Command          string `json:"command"`
	Cwd              string `json:"cwd"`
	AggregatedOutput string `json:"aggregatedOutput"`
	ExitCode         *int   `json:"exitCode"`
	DurationMS       int64  `json:"durationMs"`

	Changes []wireChange `json:"changes"`

	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Result    json.RawMessage `json:"result"`
	Output    json.RawMessage `json:"output"`
	Error     json.RawMessage `json:"error"`
	Query     string          `json:"query"`
	Path      string          `json:"path"`
	Review    string          `json:"review"`
}

type wireChange struct {
	Path string `json:"path"`
	Kind struct {
		Type     string `json:"type"`
		MovePath string `json:"move_path"`
	} `json:"kind"`
	Diff string `json:"diff"`
}

// askParams is any server request's params.
type askParams struct {
	ThreadID    string          `json:"threadId"`
	TurnID      string          `json:"turnId"`
	ItemID      string          `json:"itemId"`
	Reason      string          `json:"reason"`
	Command     string          `json:"command"`
	Cwd         string          `json:"cwd"`
	Amendment   json.RawMessage `json:"proposedExecpolicyAmendment"`
	Questions   []wireQuestion  `json:"questions"`
	Permissions json.RawMessage `json:"permissions"`
	ServerName  string          `json:"serverName"`
	Message     string          `json:"message"`
	Schema      json.RawMessage `json:"requestedSchema"`
	URL         string          `json:"url"`
}

type wireQuestion struct {
	ID      string `json:"id"`
	Header  string `json:"header"`
	Text    string `json:"question"`
	Other   bool   `json:"isOther"`
	Secret  bool   `json:"isSecret"`
	Options []struct {
		Label       string `json:"label"`
		Description string `json:"description"`
	} `json:"options"`
}
