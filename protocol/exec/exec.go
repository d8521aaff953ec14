// Package exec is the exec-server wire: methods, parameters, results and error
// codes, as plain data. It is compatible with Codex exec-server. Bytes are
// standard base64, paths are file: URIs, one message is one JSON object without
// a "jsonrpc" member. It holds no behaviour beyond converting paths.
package exec

// Methods a client calls.
const (
	MethodInitialize        = "initialize"
	MethodProcessStart      = "process/start"
	MethodProcessRead       = "process/read"
	MethodProcessWrite      = "process/write"
	MethodProcessSignal     = "process/signal"
	MethodProcessTerminate  = "process/terminate"
	MethodProcessResize     = "process/resize" // extension: capabilities.processResize
	MethodEnvironmentInfo   = "environment/info"
	MethodEnvironmentStatus = "environment/status"
	MethodEnvironmentConfig = "environmentConfig/read"
	MethodReadFile          = "fs/readFile"
	MethodWriteFile         = "fs/writeFile"
	MethodCreateDirectory   = "fs/createDirectory"
	MethodGetMetadata       = "fs/getMetadata"
	MethodCanonicalize      = "fs/canonicalize"
	MethodReadDirectory     = "fs/readDirectory"
	MethodWalk              = "fs/walk"
	MethodRemove            = "fs/remove"
	MethodCopy              = "fs/copy"
	MethodOpen              = "fs/open"
	MethodReadBlock         = "fs/readBlock"
	MethodWriteBlock        = "fs/writeBlock"
	MethodClose             = "fs/close"
	MethodWatchMissing      = "fs/watchMissing"
	MethodWatch             = "fs/watch"   // extension: capabilities.fsWatch
	MethodUnwatch           = "fs/unwatch" // extension: capabilities.fsWatch
	MethodHTTPRequest       = "http/request"
)

// Notifications. initialized is the only one a client may send.
const (
	NotifyInitialized    = "initialized"
	NotifyOutput         = "process/output"
	NotifyExited         = "process/exited"
	NotifyClosed         = "process/closed"
	NotifyMissingChanged = "fs/missingChanged"
	NotifyChanged        = "fs/changed" // extension: capabilities.fsWatch
	NotifyBodyDelta      = "http/request/bodyDelta"
)

// Error codes. Match on these, never on the text.
const (
	CodeInvalidRequest  = -32600
	CodeMethodNotFound  = -32601
	CodeInvalidParams   = -32602
	CodeInternal        = -32603
	CodeNotFound        = -32004 // a file, or a file handle
	CodeSessionAttached = -32010 // the session still has a connection; retry
)

// Limits of the protocol.
const (
	RetainedBytes  = 1 << 20 // newest output kept per process
	RetainedChunks = 50_000
	MaxMessage     = 64 << 20 // one JSON message
	MaxFrame       = 16 << 20 // one inbound WebSocket frame
	FragmentAbove  = 8 << 20  // larger messages leave in fragments
	MaxBlock       = 1 << 20  // fs/readBlock and fs/writeBlock
	MaxHandles     = 128      // open file handles per connection
	MaxHandleID    = 32
	MaxWatches     = 128 // fs/watch per connection
)

// InitializeParams opens a connection. ResumeSessionID attaches it to a session
// that lost its own.
type InitializeParams struct {
	ClientName      string  `json:"clientName"`
	ResumeSessionID *string `json:"resumeSessionId,omitempty"`
	// EndWithConnection makes a session that cannot be resumed: its processes end with
	// its connection. An extension.
	EndWithConnection bool `json:"endWithConnection,omitempty"`
}

// InitializeResult names the session. EnvironmentInfo spares a round trip; old
// servers leave it out.
type InitializeResult struct {
	SessionID       string           `json:"sessionId"`
	EnvironmentInfo *EnvironmentInfo `json:"environmentInfo,omitempty"`
}

// Empty is the result of methods that only succeed or fail.
type Empty struct{}
