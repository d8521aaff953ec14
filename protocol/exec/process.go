package exec

import "encoding/json"

// Streams an output chunk can come from.
const (
	StreamStdout = "stdout"
	StreamStderr = "stderr"
	StreamPTY    = "pty"
)

// StartParams starts a process. The program is looked up in the child's PATH.
type StartParams struct {
	ProcessID string            `json:"processId"`
	Argv      []string          `json:"argv"`
	Cwd       string            `json:"cwd"`
	Env       map[string]string `json:"env"`
	EnvPolicy *EnvPolicy        `json:"envPolicy"`
	TTY       bool              `json:"tty"`
	PipeStdin bool              `json:"pipeStdin" strict:"optional"`
	Arg0      *string           `json:"arg0"`
	Sandbox   *Sandbox          `json:"sandbox"`
	// Rows and Cols are the terminal's first size, 24 by 80 when 0. An extension.
	Rows uint16 `json:"rows,omitempty"`
	Cols uint16 `json:"cols,omitempty"`

	EnforceManagedNetwork bool            `json:"enforceManagedNetwork,omitempty"`
	ManagedNetwork        json.RawMessage `json:"managedNetwork,omitempty"`
	NetworkProxy          json.RawMessage `json:"networkProxy,omitempty"`
	ShellSnapshot         *ShellSnapshot  `json:"shellSnapshot,omitempty"`
	Metadata              *Metadata       `json:"metadata,omitempty"`
}

// EnvPolicy builds the environment from the server's own; Env is laid over it last.
type EnvPolicy struct {
	Inherit               string            `json:"inherit"` // all, core, none
	IgnoreDefaultExcludes bool              `json:"ignoreDefaultExcludes"`
	Exclude               []string          `json:"exclude"`
	Set                   map[string]string `json:"set"`
	IncludeOnly           []string          `json:"includeOnly"`
}

// ShellSnapshot asks a server that advertises shellSnapshotV2 to cache shell start-up.
type ShellSnapshot struct {
	ScopeID string `json:"scopeId"`
	Shell   Shell  `json:"shell"`
}

// Metadata is informational.
type Metadata struct {
	ThreadID   *string `json:"threadId,omitempty"`
	ToolCallID *string `json:"toolCallId,omitempty"`
}

// Sandbox types a start can report.
const (
	SandboxNone  = "none"
	SandboxLinux = "linuxSeccomp"
)

// StartResult confirms a start. Old servers leave SandboxType out.
type StartResult struct {
	ProcessID   string `json:"processId"`
	SandboxType string `json:"sandboxType,omitempty"`
}

// ReadParams reads retained output after a sequence number. WaitMs long-polls.
type ReadParams struct {
	ProcessID string  `json:"processId"`
	AfterSeq  *uint64 `json:"afterSeq"`
	MaxBytes  *uint64 `json:"maxBytes"`
	WaitMs    *uint64 `json:"waitMs"`
}

// Chunk is one piece of output.
type Chunk struct {
	Seq    uint64 `json:"seq"`
	Stream string `json:"stream"`
	Chunk  []byte `json:"chunk"`
}

// ReadResult is a process's retained output and terminal state.
type ReadResult struct {
	Chunks        []Chunk `json:"chunks"`
	NextSeq       uint64  `json:"nextSeq"`
	Exited        bool    `json:"exited"`
	ExitCode      *int    `json:"exitCode"`
	Closed        bool    `json:"closed"`
	Failure       *string `json:"failure"`
	SandboxDenied bool    `json:"sandboxDenied"`
}

// WriteParams writes to stdin. A repeated WriteID is accepted and not written again.
type WriteParams struct {
	ProcessID string `json:"processId"`
	Chunk     []byte `json:"chunk"`
	WriteID   string `json:"writeId"`
	// CloseStdin ends a pipe after the chunk. An extension.
	CloseStdin bool `json:"closeStdin,omitempty"`
}

// Answers to a write. They are results, not errors.
const (
	WriteAccepted       = "accepted"
	WriteUnknownProcess = "unknownProcess"
	WriteStdinClosed    = "stdinClosed"
	WriteStarting       = "starting"
)

// WriteResult says what became of a write.
type WriteResult struct {
	Status string `json:"status"`
}

// SignalInterrupt is the one signal the protocol names.
const SignalInterrupt = "interrupt"

// SignalParams signals a process group.
type SignalParams struct {
	ProcessID string `json:"processId"`
	Signal    string `json:"signal"`
}

// ResizeParams sets the size of a process's terminal.
type ResizeParams struct {
	ProcessID string `json:"processId"`
	Rows      uint16 `json:"rows"`
	Cols      uint16 `json:"cols"`
}

// ProcessParams names a process.
type ProcessParams struct {
	ProcessID string `json:"processId"`
}

// TerminateResult says whether the process was alive.
type TerminateResult struct {
	Running bool `json:"running"`
}

// OutputParams announces a chunk. Output, exited and closed of one process share
// one sequence that starts at 1 and has no gap; closed is always last.
type OutputParams struct {
	ProcessID string `json:"processId"`
	Seq       uint64 `json:"seq"`
	Stream    string `json:"stream"`
	Chunk     []byte `json:"chunk"`
}

// ExitedParams announces the exit of the direct child. Old servers leave
// SandboxDenied out.
type ExitedParams struct {
	ProcessID     string `json:"processId"`
	Seq           uint64 `json:"seq"`
	ExitCode      int    `json:"exitCode"`
	SandboxDenied *bool  `json:"sandboxDenied,omitempty"`
}

// ClosedParams announces exit and the end of all output.
type ClosedParams struct {
	ProcessID string `json:"processId"`
	Seq       uint64 `json:"seq"`
}
