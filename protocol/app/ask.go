package app

import "encoding/json"

// CommandApproval asks whether a command may run.
type CommandApproval struct {
	Kind                        string            `json:"kind"`
	ThreadID                    string            `json:"threadId"`
	TurnID                      string            `json:"turnId"`
	ItemID                      string            `json:"itemId"`
	StartedAtMs                 int64             `json:"startedAtMs"`
	EnvironmentID               *string           `json:"environmentId"`
	Reason                      *string           `json:"reason,omitempty"`
	Command                     *string           `json:"command,omitempty"`
	Cwd                         *string           `json:"cwd,omitempty"`
	CommandActions              []CommandAction   `json:"commandActions,omitzero"`
	ProposedExecpolicyAmendment []string          `json:"proposedExecpolicyAmendment,omitempty"`
	AvailableDecisions          []json.RawMessage `json:"availableDecisions,omitzero"`
	NetworkApprovalContext      *NetworkContext   `json:"networkApprovalContext,omitempty"`
	Thole                       *AskExtra         `json:"thole,omitempty"`
}

// NetworkContext is the host that a command wants to reach, where the approval is of that
// and not of the command. Only Codex sends one, and only where its network is managed.
type NetworkContext struct {
	Host     string `json:"host"`
	Protocol string `json:"protocol"`
}

// AskExtra is what only a thole server knows of an ask, for clients that declared the
// extension.
type AskExtra struct {
	// Kind is the ask's own: some go out in another form that more clients know.
	Kind string `json:"kind"`
	// DeadlineAtMs is when the ask ends by itself, absent when it waits for ever.
	DeadlineAtMs *int64 `json:"deadlineAtMs,omitempty"`
	// Line is the command as the agent wrote it.
	Line string `json:"line,omitempty"`
}

// FileApproval asks whether edits may be made.
type FileApproval struct {
	ThreadID    string    `json:"threadId"`
	TurnID      string    `json:"turnId"`
	ItemID      string    `json:"itemId"`
	StartedAtMs int64     `json:"startedAtMs"`
	Reason      *string   `json:"reason,omitempty"`
	GrantRoot   *string   `json:"grantRoot,omitempty"`
	Thole       *AskExtra `json:"thole,omitempty"`
}

// ApprovalAnswer is a decision: accept, acceptForSession, decline, cancel, or an
// object that accepts an offered rule.
type ApprovalAnswer struct {
	Decision json.RawMessage `json:"decision"`
}

// PermissionsApproval asks for more rights.
type PermissionsApproval struct {
	ThreadID      string          `json:"threadId"`
	TurnID        string          `json:"turnId"`
	ItemID        string          `json:"itemId"`
	EnvironmentID *string         `json:"environmentId"`
	StartedAtMs   int64           `json:"startedAtMs"`
	Cwd           string          `json:"cwd"`
	Reason        *string         `json:"reason"`
	Permissions   json.RawMessage `json:"permissions"`
	Thole         *AskExtra       `json:"thole,omitempty"`
}

// PermissionsAnswer grants some of the rights, for the turn or the session.
type PermissionsAnswer struct {
	Permissions json.RawMessage `json:"permissions"`
	Scope       string          `json:"scope,omitempty"`
}

// UserInputRequest puts questions to a human.
type UserInputRequest struct {
	ThreadID         string     `json:"threadId"`
	TurnID           string     `json:"turnId"`
	ItemID           string     `json:"itemId"`
	Questions        []Question `json:"questions"`
	IsBlocking       bool       `json:"isBlocking"`
	AutoResolutionMs *int64     `json:"autoResolutionMs"`
	Thole            *AskExtra  `json:"thole,omitempty"`
}

// Question is one thing that the user is asked for.
type Question struct {
	ID       string           `json:"id"`
	Header   string           `json:"header"`
	Question string           `json:"question"`
	IsOther  bool             `json:"isOther"`
	IsSecret bool             `json:"isSecret"`
	Options  []QuestionOption `json:"options"`
	// Multi: several options may be chosen. Codex's questions take one, so clients that did not
	// declare the extension read it in the question instead.
	Multi bool `json:"multi,omitempty"`
}

// QuestionOption is one offered answer.
type QuestionOption struct {
	Label       string `json:"label"`
	Description string `json:"description"`
}

// UserInputAnswer is keyed by question id.
type UserInputAnswer struct {
	Answers map[string]AnswerList `json:"answers"`
}

// AnswerList is the choices for one question.
type AnswerList struct {
	Answers []string `json:"answers"`
}

// Elicitation is an MCP server's wish for data.
type Elicitation struct {
	ThreadID        string          `json:"threadId"`
	TurnID          *string         `json:"turnId"`
	ServerName      string          `json:"serverName"`
	Mode            string          `json:"mode"`
	Message         string          `json:"message"`
	RequestedSchema json.RawMessage `json:"requestedSchema"`
	URL             string          `json:"url,omitempty"`
	Thole           *AskExtra       `json:"thole,omitempty"`
}

// ElicitationAnswer accepts with content, declines or cancels.
type ElicitationAnswer struct {
	Action  string          `json:"action" ts:"\"accept\" | \"decline\" | \"cancel\""`
	Content json.RawMessage `json:"content"`
}
