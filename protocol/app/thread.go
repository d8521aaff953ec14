package app

import "encoding/json"

// Thread states.
const (
	StatusNotLoaded   = "notLoaded"
	StatusIdle        = "idle"
	StatusSystemError = "systemError"
	StatusActive      = "active"

	FlagWaitingOnApproval = "waitingOnApproval"
	FlagWaitingOnInput    = "waitingOnUserInput"
)

// ThreadStatus is derived by the server and never stored.
type ThreadStatus struct {
	Type        string   `json:"type"`
	ActiveFlags []string `json:"activeFlags,omitzero"`
}

// Environment is a place where a thread's commands run.
type Environment struct {
	EnvironmentID         string   `json:"environmentId"`
	Cwd                   string   `json:"cwd"`
	RuntimeWorkspaceRoots []string `json:"runtimeWorkspaceRoots"`
}

// Thread is a conversation. Times are Unix seconds.
type Thread struct {
	ID              string         `json:"id"`
	Environments    []Environment  `json:"environments"`
	SessionID       string         `json:"sessionId"`
	ForkedFromID    *string        `json:"forkedFromId"`
	ParentThreadID  *string        `json:"parentThreadId"`
	Preview         string         `json:"preview"`
	Ephemeral       bool           `json:"ephemeral"`
	Section         *ThreadSection `json:"section"`
	ProjectID       *string        `json:"projectId"`
	HistoryMode     string         `json:"historyMode"`
	ModelProvider   string         `json:"modelProvider"`
	Model           *string        `json:"model"`
	ReasoningEffort *string        `json:"reasoningEffort"`
	CreatedAt       int64          `json:"createdAt"`
	UpdatedAt       int64          `json:"updatedAt"`
	RecencyAt       *int64         `json:"recencyAt"`
	Status          ThreadStatus   `json:"status"`
	Path            *string        `json:"path"`
	Cwd             string         `json:"cwd"`
	CLIVersion      string         `json:"cliVersion"`
	Originator      *string        `json:"originator"`
	Source          string         `json:"source"`
	ThreadSource    *string        `json:"threadSource"`
	DirectInput     *bool          `json:"canAcceptDirectInput"`
	GitInfo         *GitInfo       `json:"gitInfo"`
	Name            *string        `json:"name"`
	Turns           []Turn         `json:"turns"`
}

// Settings are the overrides that thread/start, thread/resume, thread/fork,
// turn/start and thread/settings/update share. All of them stay with the thread.
type Settings struct {
	// Cwd is the directory in which the agent works. A thread gets it when it starts; later
	// it may only be repeated. So with RuntimeWorkspaceRoots: cwd is the only one there is.
	Cwd                   *string         `json:"cwd,omitempty"`
	RuntimeWorkspaceRoots []string        `json:"runtimeWorkspaceRoots,omitempty"`
	Model                 *string         `json:"model,omitempty"`
	ModelProvider         *string         `json:"modelProvider,omitempty"`
	ApprovalPolicy        json.RawMessage `json:"approvalPolicy,omitempty" ts:"ApprovalPolicy"`
	ApprovalsReviewer     *string         `json:"approvalsReviewer,omitempty"`
	// Permissions is the id of a permission profile; experimental.
	Permissions *string `json:"permissions,omitempty"`
	// ServiceTier is a tier of the model's service, for agents that have some.
	ServiceTier *string `json:"serviceTier,omitempty"`
}

// SandboxPolicy says what commands of an agent may touch.
type SandboxPolicy struct {
	Type          string          `json:"type" ts:"\"dangerFullAccess\" | \"readOnly\" | \"workspaceWrite\" | \"externalSandbox\""`
	WritableRoots []string        `json:"writableRoots,omitzero"`
	NetworkAccess json.RawMessage `json:"networkAccess,omitempty" ts:"boolean | \"restricted\" | \"enabled\""`
	ExcludeTmpdir *bool           `json:"excludeTmpdirEnvVar,omitempty"`
	ExcludeTmp    *bool           `json:"excludeSlashTmp,omitempty"`
}

// CollaborationMode is plan or default with what goes with it.
type CollaborationMode struct {
	Mode     string       `json:"mode" ts:"\"plan\" | \"default\""`
	Settings ModeSettings `json:"settings"`
}

// ModeSettings are a collaboration mode's own overrides.
type ModeSettings struct {
	Model        string  `json:"model"`
	Effort       *string `json:"reasoning_effort"`
	Instructions *string `json:"developer_instructions"`
}

// PermissionProfile is the id of a named set of permissions.
type PermissionProfile struct {
	ID      string  `json:"id"`
	Extends *string `json:"extends"`
}

// ThreadStartParams makes a thread and subscribes the caller to it.
type ThreadStartParams struct {
	Settings
	// ThreadID is the caller's choice of id, a UUID not in use. It needs the
	// extension.
	ThreadID *string `json:"threadId,omitempty"`
	// Source is where the thread's files come from, instead of a cwd; Name its name for
	// humans. Both need the extension.
	Source                *SourceChoice   `json:"source,omitempty"`
	Name                  *string         `json:"name,omitempty"`
	Sandbox               *string         `json:"sandbox,omitempty"`
	Config                json.RawMessage `json:"config,omitempty"`
	BaseInstructions      *string         `json:"baseInstructions,omitempty"`
	DeveloperInstructions *string         `json:"developerInstructions,omitempty"`
	Ephemeral             *bool           `json:"ephemeral,omitempty"`
	ThreadSource          *string         `json:"threadSource,omitempty"`
	// DynamicTools are the caller's own, for the thread's life; experimental.
	DynamicTools []DynamicTool `json:"dynamicTools,omitempty"`
}

// ThreadView is a thread with its settings, as start, resume and fork return it.
type ThreadView struct {
	Thread                  Thread             `json:"thread"`
	Model                   string             `json:"model"`
	ModelProvider           string             `json:"modelProvider"`
	ServiceTier             *string            `json:"serviceTier"`
	DisabledPluginIDs       []string           `json:"disabledPluginIds"`
	Cwd                     string             `json:"cwd"`
	RuntimeWorkspaceRoots   []string           `json:"runtimeWorkspaceRoots"`
	InstructionSources      []string           `json:"instructionSources"`
	ApprovalPolicy          string             `json:"approvalPolicy" ts:"ApprovalPolicy"`
	ApprovalsReviewer       string             `json:"approvalsReviewer"`
	Sandbox                 SandboxPolicy      `json:"sandbox"`
	ActivePermissionProfile *PermissionProfile `json:"activePermissionProfile"`
	ReasoningEffort         *string            `json:"reasoningEffort"`
	MultiAgentMode          string             `json:"multiAgentMode"`
	// Files is where the thread's files come from, for clients with the extension.
	Files *Source `json:"tholeSource,omitempty"`
}

// SourceChoice is where a new thread's files are to come from.
type SourceChoice struct {
	Kind string `json:"kind" ts:"\"branch\" | \"here\" | \"template\" | \"upload\" | \"empty\""`
	// Repo is a directory of the server's machine or a URL, Ref where a branch begins, HEAD
	// when absent.
	Repo string `json:"repo,omitempty"`
	Ref  string `json:"ref,omitempty"`
	// Dir is where the agent works: below the top of a branch, or the directory of here.
	Dir string `json:"dir,omitempty"`
	// Dirty takes uncommitted and untracked files along.
	Dirty bool `json:"dirty,omitempty"`
	// Upload is the id of an upload.
	Upload string `json:"upload,omitempty"`
	// Name is what a branch is named after, such as the first message.
	Name string `json:"name,omitempty"`
}

// Source is where a thread's files come from.
type Source struct {
	Kind   string `json:"kind" ts:"\"branch\" | \"here\" | \"template\" | \"upload\" | \"empty\""`
	Repo   string `json:"repo,omitempty"`
	Ref    string `json:"ref,omitempty"`
	Commit string `json:"commit,omitempty"`
	Branch string `json:"branch,omitempty"`
	// Dirty says that uncommitted files were taken along.
	Dirty  bool   `json:"dirty,omitempty"`
	Upload string `json:"upload,omitempty"`
	// Submodules are paths of a branch that are empty, and LFS patterns of files that are
	// pointers there.
	Submodules []string `json:"submodules,omitempty"`
	LFS        []string `json:"lfs,omitempty"`
	// LeftOut are uncommitted files that could not be taken along, and why.
	LeftOut []string `json:"omitted,omitempty"`
}

// ThreadResumeParams subscribes to a thread and returns it as it is.
type ThreadResumeParams struct {
	ThreadID string `json:"threadId"`
	Settings
	Sandbox               *string          `json:"sandbox,omitempty"`
	Config                json.RawMessage  `json:"config,omitempty"`
	BaseInstructions      *string          `json:"baseInstructions,omitempty"`
	DeveloperInstructions *string          `json:"developerInstructions,omitempty"`
	ExcludeTurns          bool             `json:"excludeTurns,omitempty"`
	InitialTurnsPage      *TurnsPageParams `json:"initialTurnsPage,omitempty"`
}

// TurnsPageParams is the first page of turns that a resume returns.
type TurnsPageParams struct {
	Limit         *int    `json:"limit,omitempty"`
	SortDirection *string `json:"sortDirection,omitempty"`
	ItemsView     *string `json:"itemsView,omitempty"`
}

// ThreadResumeResult is the thread at one place in its order; what is notified
// afterwards happened afterwards.
type ThreadResumeResult struct {
	ThreadView
	CollaborationMode    *CollaborationMode `json:"collaborationMode"`
	InitialTurnsPage     *TurnsPage         `json:"initialTurnsPage"`
	TurnsBackwardsCursor *string            `json:"turnsBackwardsCursor"`
	ItemsBackwardsCursor *string            `json:"itemsBackwardsCursor"`
	// Seq is the cursor of this place, for clients with the extension.
	Seq *uint64 `json:"seq,omitempty"`
}

// ThreadForkParams copies a thread up to and including LastTurnID, or up to the turn
// before BeforeTurnID.
type ThreadForkParams struct {
	ThreadID string `json:"threadId"`
	Settings
	Sandbox               *string         `json:"sandbox,omitempty"`
	Config                json.RawMessage `json:"config,omitempty"`
	BaseInstructions      *string         `json:"baseInstructions,omitempty"`
	DeveloperInstructions *string         `json:"developerInstructions,omitempty"`
	LastTurnID            *string         `json:"lastTurnId,omitempty"`
	BeforeTurnID          *string         `json:"beforeTurnId,omitempty"`
	ExcludeTurns          bool            `json:"excludeTurns,omitempty"`
	Ephemeral             bool            `json:"ephemeral,omitempty"`
	ThreadSource          *string         `json:"threadSource,omitempty"`
}

// InjectItemsParams adds to what the agent knows, without a turn: messages in the
// form of OpenAI's Responses API.
type InjectItemsParams struct {
	ThreadID string            `json:"threadId"`
	Items    []json.RawMessage `json:"items"`
}

// ThreadParams names a thread.
type ThreadParams struct {
	ThreadID string `json:"threadId"`
}

// ThreadResult carries a thread.
type ThreadResult struct {
	Thread Thread `json:"thread"`
}

// ThreadReadResult is a thread as it is read. What a client has read is not kept here.
type ThreadReadResult struct {
	ThreadResult
	ReadState *struct{} `json:"readState"`
}

// ThreadReadParams reads a thread without subscribing.
type ThreadReadParams struct {
	ThreadID     string `json:"threadId"`
	IncludeTurns bool   `json:"includeTurns,omitempty"`
}

// ThreadListParams filters threads.
type ThreadListParams struct {
	PageParams
	SortKey        *string         `json:"sortKey,omitempty" ts:"\"created_at\" | \"updated_at\" | \"recency_at\" | \"section_position\""`
	ModelProviders []string        `json:"modelProviders,omitempty"`
	SourceKinds    []string        `json:"sourceKinds,omitempty"`
	Archived       *bool           `json:"archived,omitempty"`
	Cwd            json.RawMessage `json:"cwd,omitempty" ts:"string | string[]"`
	SearchTerm     *string         `json:"searchTerm,omitempty"`
	Excluded       []string        `json:"excludedThreadIds,omitempty"`
	// SectionID selects the threads of a section, null those in none.
	SectionID json.RawMessage `json:"sectionId,omitempty" ts:"string | null"`
}

// ThreadRevertParams asks for a thread without a turn and all later ones.
type ThreadRevertParams struct {
	ThreadID     string `json:"threadId"`
	BeforeTurnID string `json:"beforeTurnId"`
}

// ThreadRevertResult is a thread as it is then, with the cursors that its history is read
// from, newest first.
type ThreadRevertResult struct {
	ThreadResult
	TurnsBackwardsCursor *string `json:"turnsBackwardsCursor"`
	ItemsBackwardsCursor *string `json:"itemsBackwardsCursor"`
}

// ThreadListResult is a page of threads.
type ThreadListResult struct {
	Data []Thread `json:"data"`
	// ReadStates is empty: what a client has read is its own business here.
	ReadStates map[string]json.RawMessage `json:"readStates"`
	Page
}

// ThreadSearchResult is a page of threads that hold a text.
type ThreadSearchResult struct {
	Data []ThreadMatch `json:"data"`
	Page
}

// ThreadMatch is a thread and the place that matched.
type ThreadMatch struct {
	Thread  Thread `json:"thread"`
	Snippet string `json:"snippet"`
}

// LoadedListResult names the threads in the server's memory.
type LoadedListResult struct {
	Data       []string `json:"data"`
	NextCursor *string  `json:"nextCursor"`
}

// ThreadNameParams names a thread for humans.
type ThreadNameParams struct {
	ThreadID string `json:"threadId"`
	Name     string `json:"name"`
}

// UnsubscribeResult is unsubscribed, notSubscribed or notLoaded.
type UnsubscribeResult struct {
	Status string `json:"status"`
}

// SettingsUpdateParams changes a thread's settings without a turn.
type SettingsUpdateParams struct {
	ThreadID string `json:"threadId"`
	Settings
	SandboxPolicy     *SandboxPolicy     `json:"sandboxPolicy,omitempty"`
	Effort            *string            `json:"effort,omitempty"`
	Summary           *string            `json:"summary,omitempty"`
	CollaborationMode *CollaborationMode `json:"collaborationMode,omitempty"`
}

// ThreadSettings is a thread's settings as clients receive them after a change.
type ThreadSettings struct {
	DisabledPluginIDs       []string           `json:"disabledPluginIds"`
	Cwd                     string             `json:"cwd"`
	ApprovalPolicy          string             `json:"approvalPolicy" ts:"ApprovalPolicy"`
	ApprovalsReviewer       string             `json:"approvalsReviewer"`
	SandboxPolicy           SandboxPolicy      `json:"sandboxPolicy"`
	ActivePermissionProfile *PermissionProfile `json:"activePermissionProfile"`
	Model                   string             `json:"model"`
	ModelProvider           string             `json:"modelProvider"`
	ServiceTier             *string            `json:"serviceTier"`
	Effort                  *string            `json:"effort"`
	Summary                 *string            `json:"summary"`
	CollaborationMode       CollaborationMode  `json:"collaborationMode"`
	MultiAgentMode          string             `json:"multiAgentMode"`
	Personality             *string            `json:"personality"`
}
