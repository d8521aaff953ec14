package app

// CommandExecParams runs an argv next to a thread's agent. The answer comes when the
// program has ended, after all of its output notifications.
type CommandExecParams struct {
	Command []string `json:"command"`
	// ProcessID is the client's own name for the process on this connection.
	ProcessID          *string            `json:"processId,omitempty"`
	TTY                bool               `json:"tty,omitempty"`
	StreamStdin        bool               `json:"streamStdin,omitempty"`
	StreamStdoutStderr bool               `json:"streamStdoutStderr,omitempty"`
	OutputBytesCap     *uint64            `json:"outputBytesCap,omitempty"`
	DisableOutputCap   bool               `json:"disableOutputCap,omitempty"`
	DisableTimeout     bool               `json:"disableTimeout,omitempty"`
	TimeoutMs          *int64             `json:"timeoutMs,omitempty"`
	Cwd                *string            `json:"cwd,omitempty"`
	Env                map[string]*string `json:"env,omitempty"` // null takes a variable away
	Size               *TerminalSize      `json:"size,omitempty"`
	SandboxPolicy      *SandboxPolicy     `json:"sandboxPolicy,omitempty"`
	PermissionProfile  *string            `json:"permissionProfile,omitempty"`
	InThread
}

// InThread names the thread whose workspace a path is in, where more than one has such
// a path.
type InThread struct {
	ThreadID *string `json:"threadId,omitempty"` // extension
}

// TerminalSize is in character cells.
type TerminalSize struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// CommandExecResult is how a program ended. Streamed output is not repeated in it.
type CommandExecResult struct {
	ExitCode int    `json:"exitCode"`
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr"`
}

// CommandExecWriteParams writes to a program's stdin, closes it, or both.
type CommandExecWriteParams struct {
	ProcessID   string  `json:"processId"`
	DeltaBase64 *string `json:"deltaBase64,omitempty"`
	CloseStdin  bool    `json:"closeStdin,omitempty"`
}

// CommandExecResizeParams sets the size of a program's terminal.
type CommandExecResizeParams struct {
	ProcessID string       `json:"processId"`
	Size      TerminalSize `json:"size"`
}

// CommandExecTerminateParams kills a program.
type CommandExecTerminateParams struct {
	ProcessID string `json:"processId"`
}

// CommandExecOutput is a piece of output; a terminal's is stdout. CapReached marks the
// last piece of a stream that was cut off.
type CommandExecOutput struct {
	ProcessID   string `json:"processId"`
	Stream      string `json:"stream"`
	DeltaBase64 []byte `json:"deltaBase64"`
	CapReached  bool   `json:"capReached"`
}

// FsPathParams names an absolute path.
type FsPathParams struct {
	Path string `json:"path"`
	InThread
}

// FsReadFileResult is a whole file.
type FsReadFileResult struct {
	DataBase64 []byte `json:"dataBase64"`
}

// FsWriteFileParams creates or replaces a file. Data is left as text because bad
// base64 has an error of its own.
type FsWriteFileParams struct {
	Path       string `json:"path"`
	DataBase64 string `json:"dataBase64"`
	InThread
}

// FsCreateDirectoryParams makes a directory; Recursive defaults to true.
type FsCreateDirectoryParams struct {
	Path      string `json:"path"`
	Recursive *bool  `json:"recursive,omitempty"`
	InThread
}

// FsMetadata describes what a path leads to; only IsSymlink is about the path itself.
type FsMetadata struct {
	IsDirectory  bool  `json:"isDirectory"`
	IsFile       bool  `json:"isFile"`
	IsSymlink    bool  `json:"isSymlink"`
	CreatedAtMs  int64 `json:"createdAtMs"` // 0 when unknown
	ModifiedAtMs int64 `json:"modifiedAtMs"`
}

// FsReadDirectoryResult lists one directory, in no order.
type FsReadDirectoryResult struct {
	Entries []FsEntry `json:"entries"`
}

// FsEntry is one name in a directory, typed by what it leads to.
type FsEntry struct {
	FileName    string `json:"fileName"`
	IsDirectory bool   `json:"isDirectory"`
	IsFile      bool   `json:"isFile"`
}

// FsRemoveParams removes; Recursive and Force default to true.
type FsRemoveParams struct {
	Path      string `json:"path"`
	Recursive *bool  `json:"recursive,omitempty"`
	Force     *bool  `json:"force,omitempty"`
	InThread
}

// FsCopyParams copies a file, a link as a link, or with Recursive a directory.
type FsCopyParams struct {
	SourcePath      string `json:"sourcePath"`
	DestinationPath string `json:"destinationPath"`
	Recursive       bool   `json:"recursive,omitempty"`
	InThread
}

// FsWatchParams begins notifications about a file, or about a directory and the names in
// it, under an id of the client's choice.
type FsWatchParams struct {
	Path    string `json:"path"`
	WatchID string `json:"watchId"`
	InThread
}

// FsWatchResult repeats the path.
type FsWatchResult struct {
	Path string `json:"path"`
}

// FsUnwatchParams ends them.
type FsUnwatchParams struct {
	WatchID string `json:"watchId"`
}

// FsChanged lists what changed, sorted.
type FsChanged struct {
	WatchID      string   `json:"watchId"`
	ChangedPaths []string `json:"changedPaths"`
}

// FileSearchParams looks for files by a part of their path. A newer search with the same
// token ends an older one.
type FileSearchParams struct {
	Query             string   `json:"query"`
	Roots             []string `json:"roots"`
	CancellationToken *string  `json:"cancellationToken,omitempty"`
	InThread
}

// FileSearchResult lists the best matches, best first.
type FileSearchResult struct {
	Files []FileMatch `json:"files"`
}

// FileMatch is a file or directory below a root. The names are the protocol's.
type FileMatch struct {
	Root      string   `json:"root"`
	Path      string   `json:"path"`       // below the root
	MatchType string   `json:"match_type"` // file, directory
	FileName  string   `json:"file_name"`
	Score     uint32   `json:"score"`
	Indices   []uint32 `json:"indices"` // characters of Path that matched
}

// FileSearchStartParams begins a search whose query changes.
type FileSearchStartParams struct {
	SessionID string   `json:"sessionId"`
	Roots     []string `json:"roots"`
	InThread
}

// FileSearchUpdateParams changes the query.
type FileSearchUpdateParams struct {
	SessionID string `json:"sessionId"`
	Query     string `json:"query"`
}

// FileSearchSession names a search.
type FileSearchSession struct {
	SessionID string `json:"sessionId"`
}

// FileSearchUpdated are the matches of the present query.
type FileSearchUpdated struct {
	SessionID string      `json:"sessionId"`
	Query     string      `json:"query"`
	Files     []FileMatch `json:"files"`
}

// BackgroundTerminalsParams pages the commands that a thread's agent left running.
type BackgroundTerminalsParams struct {
	ThreadID string  `json:"threadId"`
	Cursor   *string `json:"cursor,omitempty"`
	Limit    *uint32 `json:"limit,omitempty"`
}

// BackgroundTerminalsResult is one page.
type BackgroundTerminalsResult struct {
	Data       []BackgroundTerminal `json:"data"`
	NextCursor *string              `json:"nextCursor"`
}

// BackgroundTerminal is a command that runs on after the agent went on.
type BackgroundTerminal struct {
	ItemID     string   `json:"itemId"`
	ProcessID  string   `json:"processId"`
	Command    string   `json:"command"`
	Cwd        string   `json:"cwd"`
	OSPid      *uint32  `json:"osPid"`
	CPUPercent *float64 `json:"cpuPercent"`
	RSSKb      *uint64  `json:"rssKb"`
}

// BackgroundTerminalParams names one.
type BackgroundTerminalParams struct {
	ThreadID  string `json:"threadId"`
	ProcessID string `json:"processId"`
}

// BackgroundTerminalEnded says whether it ran.
type BackgroundTerminalEnded struct {
	Terminated bool `json:"terminated"`
}
