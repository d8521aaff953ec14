package app

import "encoding/json"

// SkillsListParams names directories; without any, that of the server.
type SkillsListParams struct {
	Cwds        []string `json:"cwds,omitempty"`
	ForceReload bool     `json:"forceReload,omitempty"`
}

// SkillsListResult has one entry for each directory.
type SkillsListResult struct {
	Data []SkillsEntry `json:"data"`
}

// SkillsEntry is what a directory's agent knows.
type SkillsEntry struct {
	Cwd    string      `json:"cwd"`
	Skills []Skill     `json:"skills"`
	Errors []FileError `json:"errors"`
}

// Skill is a text that an agent reads when a task calls for it.
type Skill struct {
	Name             string  `json:"name"`
	Description      string  `json:"description"`
	ShortDescription *string `json:"shortDescription,omitempty"`
	Path             string  `json:"path"`
	Scope            string  `json:"scope"`
	Enabled          bool    `json:"enabled"`
	PluginID         *string `json:"pluginId"`
}

// FileError is a file that could not be used.
type FileError struct {
	Path    string `json:"path"`
	Message string `json:"message"`
}

// HooksListParams names a thread or directories, never both.
type HooksListParams struct {
	Cwds     []string `json:"cwds,omitempty"`
	ThreadID *string  `json:"threadId,omitempty"`
}

// HooksListResult has one entry for each directory.
type HooksListResult struct {
	Data []HooksEntry `json:"data"`
}

// HooksEntry is what runs at events of a directory's agent.
type HooksEntry struct {
	Cwd      string      `json:"cwd"`
	Hooks    []Hook      `json:"hooks"`
	Warnings []string    `json:"warnings"`
	Errors   []FileError `json:"errors"`
}

// Hook is a program or a prompt that runs at an event. Command and Async are of commands,
// Server and Tool of calls of a tool.
type Hook struct {
	Key           string  `json:"key"`
	EventName     string  `json:"eventName"`
	HandlerType   string  `json:"handlerType"`
	Command       string  `json:"command,omitempty"`
	Async         *bool   `json:"async,omitempty"`
	Server        string  `json:"server,omitempty"`
	Tool          string  `json:"tool,omitempty"`
	Matcher       *string `json:"matcher"`
	TimeoutSec    int64   `json:"timeoutSec"`
	StatusMessage *string `json:"statusMessage"`
	ContextLimit  *int64  `json:"additionalContextLimit"`
	SourcePath    string  `json:"sourcePath"`
	Source        string  `json:"source"`
	PluginID      *string `json:"pluginId"`
	EnvironmentID *string `json:"environmentId"`
	DisplayOrder  int64   `json:"displayOrder"`
	Enabled       bool    `json:"enabled"`
	IsManaged     bool    `json:"isManaged"`
	CurrentHash   string  `json:"currentHash"`
	TrustStatus   string  `json:"trustStatus"`
}

// McpServerStatusListParams pages the MCP servers of a thread. Detail is full or
// toolsAndAuthOnly.
type McpServerStatusListParams struct {
	ListParams
	ThreadID   *string `json:"threadId,omitempty"`
	ServerName *string `json:"serverName,omitempty"`
	Detail     *string `json:"detail,omitempty"`
}

// McpServerToolCallParams calls a tool of an MCP server of a thread's agent.
type McpServerToolCallParams struct {
	ThreadID  string          `json:"threadId"`
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Meta      json.RawMessage `json:"_meta,omitempty"`
}

// McpServerToolCallResult is what the server answered.
type McpServerToolCallResult struct {
	Content           []json.RawMessage `json:"content"`
	StructuredContent json.RawMessage   `json:"structuredContent,omitempty"`
	IsError           *bool             `json:"isError,omitempty"`
	Meta              json.RawMessage   `json:"_meta,omitempty"`
}

// McpResourceReadParams reads a resource of an MCP server of a thread's agent.
type McpResourceReadParams struct {
	ThreadID *string `json:"threadId,omitempty"`
	Server   string  `json:"server"`
	URI      string  `json:"uri"`
}

// McpResourceReadResult is what the server answered.
type McpResourceReadResult struct {
	Contents []json.RawMessage `json:"contents"`
}

// McpServerStatusListResult is one page of them.
type McpServerStatusListResult struct {
	Data       []McpServerStatus `json:"data"`
	NextCursor *string           `json:"nextCursor"`
}

// McpServerStatus is one server of tools.
type McpServerStatus struct {
	Name               string             `json:"name"`
	RuntimeStatus      *string            `json:"runtimeStatus"`
	PluginID           *string            `json:"pluginId"`
	HTTPOrigin         *string            `json:"httpOrigin"`
	ServerInfo         *McpServerInfo     `json:"serverInfo"`
	ServerCapabilities json.RawMessage    `json:"serverCapabilities"`
	ToolListMeta       json.RawMessage    `json:"toolListMeta"`
	Tools              map[string]McpTool `json:"tools"`
	ToolsError         *string            `json:"toolsError"`
	Resources          []McpResource      `json:"resources"`
	ResourceTemplates  []McpResource      `json:"resourceTemplates"`
	AuthStatus         string             `json:"authStatus"`
}

// McpServerInfo is what a server says of itself.
type McpServerInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// McpTool is a tool of a server.
type McpTool struct {
	Name        string          `json:"name"`
	Title       *string         `json:"title,omitempty"`
	Description *string         `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// McpResource is something to read, by its URI, or a pattern of such.
type McpResource struct {
	Name        string  `json:"name"`
	URI         string  `json:"uri,omitempty"`
	URITemplate string  `json:"uriTemplate,omitempty"`
	Title       *string `json:"title,omitempty"`
	Description *string `json:"description,omitempty"`
	MimeType    *string `json:"mimeType,omitempty"`
}
