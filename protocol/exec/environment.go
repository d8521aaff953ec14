package exec

// Shell is a login shell of the executor.
type Shell struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// Capabilities a client gates features on. An absent one is false. A server
// advertises only what it does.
type Capabilities struct {
	EnvironmentConfigRead bool `json:"environmentConfigRead"`
	HTTPHeaderEnvVars     bool `json:"httpHeaderEnvVars"`
	SandboxedStreaming    bool `json:"sandboxedFileStreaming"`
	FileWriteStreaming    bool `json:"fileWriteStreaming"`
	FSWatchMissing        bool `json:"fsWatchMissing"`
	ProcessResize         bool `json:"processResize"` // extension
	StdinClose            bool `json:"stdinClose"`    // extension: closeStdin of process/write
	FSWatch               bool `json:"fsWatch"`       // extension
}

// EnvironmentInfo describes the executor. Only Shell is always there.
type EnvironmentInfo struct {
	Shell                Shell         `json:"shell"`
	ExecutorVersion      string        `json:"executorVersion,omitempty"`
	ProviderID           string        `json:"providerId,omitempty"`
	PrependPathDirs      []string      `json:"prependPathDirs,omitempty"` // URIs of what it puts first in PATH
	Cwd                  *string       `json:"cwd"`
	UserHomeDir          *string       `json:"userHomeDir,omitempty"`
	PlatformOS           string        `json:"platformOs,omitempty"`
	TemporaryDirectories []string      `json:"temporaryDirectories"`
	TempDir              string        `json:"tempDir,omitempty"`
	Capabilities         *Capabilities `json:"capabilities,omitempty"`
}

// StatusResult answers environment/status.
type StatusResult struct {
	Status string `json:"status"`
}

// ConfigReadParams asks for configuration layers by TOML key path.
type ConfigReadParams struct {
	Cwd               string     `json:"cwd"`
	ConfigPaths       [][]string `json:"configPaths"`
	RequirementsPaths [][]string `json:"requirementsPaths"`
}

// ConfigLayers are configuration layers in rising precedence.
type ConfigLayers struct {
	Layers              []ConfigLayer `json:"layers"`
	CloudInsertionIndex int           `json:"cloudInsertionIndex"`
}

// ConfigLayer is one configuration file.
type ConfigLayer struct {
	Source  string `json:"source"`
	BaseDir string `json:"baseDir"`
	TOML    string `json:"toml"`
}

// ConfigReadResult answers environmentConfig/read.
type ConfigReadResult struct {
	UserHomeDir  *string      `json:"userHomeDir"`
	CodexHomeDir string       `json:"codexHomeDir"`
	Hostname     *string      `json:"hostname"`
	Config       ConfigLayers `json:"config"`
	Requirements ConfigLayers `json:"requirements"`
}

// HTTPHeader is one header. ValueEnvVar appends a variable of the executor to Value.
type HTTPHeader struct {
	Name        string  `json:"name"`
	Value       string  `json:"value"`
	ValueEnvVar *string `json:"valueEnvVar,omitempty"`
}

// HTTPRequestParams makes the executor send a request.
type HTTPRequestParams struct {
	Method         string       `json:"method"`
	URL            string       `json:"url"`
	RequestID      string       `json:"requestId"`
	Headers        []HTTPHeader `json:"headers,omitempty"`
	Body           []byte       `json:"bodyBase64,omitempty" strict:"null"`
	TimeoutMs      *uint64      `json:"timeoutMs,omitempty"`
	RedirectPolicy string       `json:"redirectPolicy,omitempty"` // follow (default), stop
	StreamResponse bool         `json:"streamResponse,omitempty"`
}

// HTTPRequestResult is a response; Body is empty when it is streamed.
type HTTPRequestResult struct {
	Status  int          `json:"status"`
	Headers []HTTPHeader `json:"headers"`
	Body    []byte       `json:"bodyBase64"`
}

// BodyDeltaParams carries a piece of a streamed body, numbered from 1.
type BodyDeltaParams struct {
	RequestID string  `json:"requestId"`
	Seq       uint64  `json:"seq"`
	Delta     []byte  `json:"deltaBase64"`
	Done      bool    `json:"done"`
	Error     *string `json:"error"`
}
