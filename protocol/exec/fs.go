package exec

// PathParams names a path. FollowSymlinks defaults to true; false refuses a link
// in any component.
type PathParams struct {
	Path           string   `json:"path"`
	FollowSymlinks *bool    `json:"followSymlinks,omitempty"`
	Sandbox        *Sandbox `json:"sandbox,omitempty"`
}

// ReadFileResult is a whole file.
type ReadFileResult struct {
	Data []byte `json:"dataBase64"`
}

// WriteFileParams creates or truncates a file whose parent exists. Data is left
// as text because bad base64 has an error code of its own here.
type WriteFileParams struct {
	Path           string   `json:"path"`
	Data           string   `json:"dataBase64"`
	FollowSymlinks *bool    `json:"followSymlinks,omitempty"`
	Sandbox        *Sandbox `json:"sandbox,omitempty"`
}

// CreateDirectoryParams makes a directory; Recursive defaults to true.
type CreateDirectoryParams struct {
	Path           string   `json:"path"`
	Recursive      *bool    `json:"recursive,omitempty"`
	FollowSymlinks *bool    `json:"followSymlinks,omitempty"`
	Sandbox        *Sandbox `json:"sandbox,omitempty"`
}

// FileMetadata describes what a path leads to; only IsSymlink is about the path itself.
type FileMetadata struct {
	IsDirectory  bool   `json:"isDirectory"`
	IsFile       bool   `json:"isFile"`
	IsSymlink    bool   `json:"isSymlink"`
	Size         uint64 `json:"size"`
	CreatedAtMs  int64  `json:"createdAtMs"` // 0 when unknown
	ModifiedAtMs int64  `json:"modifiedAtMs"`
}

// PathResult is a resolved path.
type PathResult struct {
	Path string `json:"path"`
}

// DirEntry is one name in a directory, typed by what it leads to.
type DirEntry struct {
	FileName    string `json:"fileName"`
	IsDirectory bool   `json:"isDirectory"`
	IsFile      bool   `json:"isFile"`
}

// ReadDirectoryResult lists one level, unsorted; dangling links are left out.
type ReadDirectoryResult struct {
	Entries []DirEntry `json:"entries"`
}

// WalkOptions bounds a walk.
type WalkOptions struct {
	MaxDepth                uint64 `json:"maxDepth"`
	MaxDirectories          uint64 `json:"maxDirectories"`
	MaxEntries              uint64 `json:"maxEntries"`
	FollowDirectorySymlinks bool   `json:"followDirectorySymlinks"`
	PruneHiddenDirectories  bool   `json:"pruneHiddenDirectories,omitempty"`
}

// WalkParams walks a tree breadth first, names sorted per directory.
type WalkParams struct {
	Path    string      `json:"path"`
	Options WalkOptions `json:"options"`
	Sandbox *Sandbox    `json:"sandbox,omitempty"`
}

// WalkEntry is a file or directory met on a walk.
type WalkEntry struct {
	Path string `json:"path"`
	Kind string `json:"kind"` // directory, file
}

// WalkError is a directory that could not be read.
type WalkError struct {
	Path    string `json:"path"`
	Message string `json:"message"`
}

// WalkResult is a walk; Truncated says that a limit ended it.
type WalkResult struct {
	Entries   []WalkEntry `json:"entries"`
	Errors    []WalkError `json:"errors"`
	Truncated bool        `json:"truncated"`
}

// RemoveParams removes; Recursive and Force default to true.
type RemoveParams struct {
	Path           string   `json:"path"`
	Recursive      *bool    `json:"recursive,omitempty"`
	Force          *bool    `json:"force,omitempty"`
	FollowSymlinks *bool    `json:"followSymlinks,omitempty"`
	Sandbox        *Sandbox `json:"sandbox,omitempty"`
}

// CopyParams copies a file, a link as a link, or with Recursive a directory.
type CopyParams struct {
	SourcePath      string   `json:"sourcePath"`
	DestinationPath string   `json:"destinationPath"`
	Recursive       bool     `json:"recursive"`
	Sandbox         *Sandbox `json:"sandbox,omitempty"`
}

// Modes of fs/open.
const (
	OpenRead    = "read"
	OpenReplace = "replace"
)

// OpenParams opens a regular file under an id the client chooses.
type OpenParams struct {
	HandleID string   `json:"handleId"`
	Path     string   `json:"path"`
	Mode     string   `json:"mode,omitempty"`
	Sandbox  *Sandbox `json:"sandbox,omitempty"`
}

// HandleResult and HandleParams name an open file.
type HandleResult struct {
	HandleID string `json:"handleId"`
}

// HandleParams names an open file.
type HandleParams struct {
	HandleID string `json:"handleId"`
}

// ReadBlockParams reads at an offset.
type ReadBlockParams struct {
	HandleID string `json:"handleId"`
	Offset   uint64 `json:"offset"`
	Len      uint64 `json:"len"`
}

// ReadBlockResult is a block; EOF means that it is shorter than asked.
type ReadBlockResult struct {
	Chunk []byte `json:"chunk"`
	EOF   bool   `json:"eof"`
}

// WriteBlockParams writes at an offset.
type WriteBlockParams struct {
	HandleID string `json:"handleId"`
	Offset   uint64 `json:"offset"`
	Chunk    []byte `json:"chunk"`
}

// WatchMissingParams waits for the first of some missing paths to appear, or for
// Present to change. One watch per connection; a newer WatchID replaces it.
type WatchMissingParams struct {
	WatchID uint64   `json:"watchId"`
	Missing []string `json:"missing"`
	Present *string  `json:"present,omitempty"`
}

// WatchMissingResult says whether the watch stands.
type WatchMissingResult struct {
	Watching bool `json:"watching"`
}

// WatchParams begins notifications about a file, or about a directory and the names in
// it; a path that is missing may appear. An extension.
type WatchParams struct {
	WatchID string   `json:"watchId"`
	Path    string   `json:"path"`
	Sandbox *Sandbox `json:"sandbox,omitempty"`
}

// UnwatchParams ends them.
type UnwatchParams struct {
	WatchID string `json:"watchId"`
}

// ChangedParams lists what changed, sorted.
type ChangedParams struct {
	WatchID string   `json:"watchId"`
	Paths   []string `json:"paths"`
}

// MissingChangedParams ends a watch.
type MissingChangedParams struct {
	WatchID uint64 `json:"watchId"`
}
