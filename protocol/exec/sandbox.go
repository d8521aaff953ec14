package exec

// Sandbox is the permission profile a process or a file call runs under. The
// outer object is camelCase and Permissions inside is snake_case: so is the wire.
type Sandbox struct {
	Permissions    Permissions    `json:"permissions"`
	Cwd            *string        `json:"cwd,omitempty"`
	WorkspaceRoots []string       `json:"workspaceRoots,omitempty"`
	WindowsLevel   string         `json:"windowsSandboxLevel"`
	PolicyContext  *PolicyContext `json:"policyContext,omitempty"`
	UserHomeDir    *string        `json:"userHomeDir,omitempty"`
}

// PolicyContext, when present, is what special paths are resolved against.
type PolicyContext struct {
	Cwd            *string  `json:"cwd,omitempty"`
	WorkspaceRoots []string `json:"workspaceRoots,omitempty"`
}

// Kinds of Permissions.
const (
	PermissionsManaged  = "managed"  // enforced here
	PermissionsDisabled = "disabled" // no sandbox
	PermissionsExternal = "external" // the caller enforces it
)

// Permissions is what a sandbox allows.
type Permissions struct {
	Type       string            `json:"type"`
	FileSystem *FileSystemPolicy `json:"file_system,omitempty"`
	Network    string            `json:"network,omitempty"` // restricted, enabled
}

// File system policies and network values.
const (
	FSRestricted      = "restricted"
	FSUnrestricted    = "unrestricted"
	NetworkRestricted = "restricted"
	NetworkEnabled    = "enabled"
)

// FileSystemPolicy lists what may be touched; what no entry matches is denied.
type FileSystemPolicy struct {
	Type             string    `json:"type"`
	Entries          []FSEntry `json:"entries,omitempty"`
	GlobScanMaxDepth *int      `json:"glob_scan_max_depth,omitempty"`
}

// Access of an entry. The more specific entry wins; at equal specificity deny
// beats write beats read.
const (
	AccessRead  = "read"
	AccessWrite = "write"
	AccessDeny  = "deny"
	AccessNone  = "none" // the older word for deny
)

// FSEntry gives access to a path, a glob or a special place.
type FSEntry struct {
	Path        FSPath `json:"path"`
	Access      string `json:"access"`
	MissingPath string `json:"missing_path_behavior,omitempty"` // skip
}

// Kinds of FSPath and of its special places.
const (
	FSPathPath    = "path"
	FSPathGlob    = "glob_pattern"
	FSPathSpecial = "special"

	SpecialRoot         = "root"
	SpecialMinimal      = "minimal"
	SpecialProjectRoots = "project_roots"
	SpecialTmpdir       = "tmpdir"
	SpecialSlashTmp     = "slash_tmp"
)

// FSPath is one of a URI, a glob pattern, a special place.
type FSPath struct {
	Type    string     `json:"type"`
	Path    string     `json:"path,omitempty"`
	Pattern string     `json:"pattern,omitempty"`
	Value   *FSSpecial `json:"value,omitempty"`
}

// FSSpecial is a place known by name, optionally below it.
type FSSpecial struct {
	Kind    string  `json:"kind"`
	Subpath *string `json:"subpath,omitempty"`
	Path    *string `json:"path,omitempty"`
}
