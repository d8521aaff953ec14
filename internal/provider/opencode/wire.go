package opencode

import "encoding/json"

// serverEvent is one line of the server's event stream.
type serverEvent struct {
	ID         string          `json:"id"`
	Type       string          `json:"type"`
	Properties json.RawMessage `json:"properties"`
}

// props are the properties of the events we use, in one struct: which fields
// count depends on the type.
type props struct {
	SessionID string       `json:"sessionID"`
	Info      info         `json:"info"`
	Part      *part        `json:"part"`
	MessageID string       `json:"messageID"`
	PartID    string       `json:"partID"`
	Field     string       `json:"field"`
	Delta     string       `json:"delta"`
	Status    *status      `json:"status"`
	Error     *nativeError `json:"error"`
	Todos     []nativeTodo `json:"todos"`
	RequestID string       `json:"requestID"`
	Reply     string       `json:"reply"`
}

// info is a session or a message, as its type says.
type info struct {
	ID         string          `json:"id"`
	ParentID   string          `json:"parentID"`
	SessionID  string          `json:"sessionID"`
	Role       string          `json:"role"`
	Agent      string          `json:"agent"`
	Summary    any             `json:"summary"` // true on the message that a compaction writes
	ModelID    string          `json:"modelID"`
	ProviderID string          `json:"providerID"`
	Error      *nativeError    `json:"error"`
	Finish     string          `json:"finish"`
	Structured json.RawMessage `json:"structured"`
	Directory  string          `json:"directory"`
	Time       struct {
		Completed int64 `json:"completed"`
	} `json:"time"`
}

// part is a piece of a message.
type part struct {
	ID        string `json:"id"`
	MessageID string `json:"messageID"`
	SessionID string `json:"sessionID"`
	Type      string `json:"type"`
	Text      string `json:"text"`
	Synthetic bool   `json:"synthetic"`
	Time      struct {
		End int64 `json:"end"`
	} `json:"time"`
	Tool   string     `json:"tool"`
	CallID string     `json:"callID"`
	State  *toolState `json:"state"`
	Tokens *tokens    `json:"tokens"`
	Cost   float64    `json:"cost"`
}

type toolState struct {
	Status   string          `json:"status"` // pending, running, completed, error
	Input    json.RawMessage `json:"input"`
	Output   string          `json:"output"`
	Error    string          `json:"error"`
	Metadata struct {
		Output    string `json:"output"`
		Exit      *int   `json:"exit"`
		Diff      string `json:"diff"`
		Exists    *bool  `json:"exists"`
		SessionID string `json:"sessionId"`
	} `json:"metadata"`
	Time struct {
		Start int64 `json:"start"`
		End   int64 `json:"end"`
	} `json:"time"`
}

type tokens struct {
	Input     int64 `json:"input"`
	Output    int64 `json:"output"`
	Reasoning int64 `json:"reasoning"`
	Cache     struct {
		Read  int64 `json:"read"`
		Write int64 `json:"write"`
	} `json:"cache"`
}

type status struct {
	Type    string `json:"type"` // busy, idle, retry
	Attempt int    `json:"attempt"`
	Message string `json:"message"`
	Next    int64  `json:"next"` // Unix milliseconds
	Action  *struct {
		Reason string `json:"reason"` // free_tier_limit, account_rate_limit
	} `json:"action"`
}

type nativeError struct {
	Name string `json:"name"`
	Data struct {
		Message      string `json:"message"`
		StatusCode   int    `json:"statusCode"`
		ResponseBody string `json:"responseBody"`
	} `json:"data"`
}

type nativeTodo struct {
	Content string `json:"content"`
	Status  string `json:"status"`
}

// nativeAsk is a permission or a question that waits.
type nativeAsk struct {
	ID         string   `json:"id"`
	SessionID  string   `json:"sessionID"`
	Permission string   `json:"permission"`
	Patterns   []string `json:"patterns"`
	Always     []string `json:"always"`
	Metadata   struct {
		Command  string `json:"command"`
		Filepath string `json:"filepath"`
		Diff     string `json:"diff"`
		URL      string `json:"url"`
	} `json:"metadata"`
	Questions []struct {
		Question string `json:"question"`
		Header   string `json:"header"`
		Multiple bool   `json:"multiple"`
		Custom   *bool  `json:"custom"`
		Options  []struct {
			Label       string `json:"label"`
			Description string `json:"description"`
		} `json:"options"`
	} `json:"questions"`
	Tool struct {
		MessageID string `json:"messageID"`
		CallID    string `json:"callID"`
	} `json:"tool"`
}

// stored is a message with its parts, as the server keeps it.
type stored struct {
	Info  info   `json:"info"`
	Parts []part `json:"parts"`
}
