package thole

// SourceKind says what sort of place a thread's files come from.
type SourceKind string

const (
	// SourceEmpty: nothing but what the app's manifest lays.
	SourceEmpty SourceKind = "empty"
	// SourceTemplate: what the app's manifest lays, named as such.
	SourceTemplate SourceKind = "template"
	// SourceBranch: a copy of a git repository, on a new branch.
	SourceBranch SourceKind = "branch"
	// SourceHere: a directory of the user of this machine, at its own path.
	SourceHere SourceKind = "here"
	// SourceUpload: an archive, or files, that a client sent.
	SourceUpload SourceKind = "upload"
)

// Source is where a thread's files come from. It is chosen when the thread starts and
// never changes. The zero value is that of threads of earlier versions, and means
// SourceEmpty.
type Source struct {
	Kind SourceKind `json:"kind,omitempty"`
	// Repo is the repository of a branch: the top directory of a local one, absolute and
	// without links, or a URL without a password.
	Repo string `json:"repo,omitempty"`
	// Ref is what was asked for, Commit what it meant then.
	Ref    string `json:"ref,omitempty"`
	Commit string `json:"commit,omitempty"`
	// Branch is the one that the thread works on, thole/NAME.
	Branch string `json:"branch,omitempty"`
	// Carried is a commit with the uncommitted and untracked files that were taken
	// along, "" for none. It is no part of the branch.
	Carried string `json:"carried,omitempty"`
	// Dir is where the agent works: below the top of a branch, "" for the top, or the
	// absolute path of SourceHere.
	Dir string `json:"dir,omitempty"`
	// Objects are directories of git objects on the server's machine to which the files
	// refer. The box shows them, read-only, under their own path.
	Objects []string `json:"objects,omitempty"`
	// Submodules are paths of a branch that are empty in the copy, and LFS patterns of files
	// that are pointers there: the content of both is elsewhere. Only the first ones are named.
	Submodules []string `json:"submodules,omitempty"`
	LFS        []string `json:"lfs,omitempty"`
	// Sparse are the patterns, in cone mode, of what of a branch is checked out, "" for all: its
	// other files are not in the copy, and not deleted there.
	Sparse string `json:"sparse,omitempty"`
	// LeftOut are uncommitted files that could not be taken along, and why; the first ones.
	LeftOut []string `json:"omitted,omitempty"`
	// Upload names what a client sent.
	Upload string `json:"upload,omitempty"`
}

// InPlace reports whether the thread works on the user's own files.
func (s Source) InPlace() bool { return s.Kind == SourceHere }

// WorkspaceRoot is where the files of every other source are inside an executor.
const WorkspaceRoot = "/workspace"

// WorkDir is the absolute path of the directory in which the agent works, as the agent
// sees it.
func (s Source) WorkDir() string {
	switch {
	case s.InPlace():
		return s.Dir
	case s.Dir == "":
		return WorkspaceRoot
	}
	return WorkspaceRoot + "/" + s.Dir
}

// At names the place that the files come from: a repository, a directory or an upload;
// "" for a source without one.
func (s Source) At() string {
	switch s.Kind {
	case SourceBranch:
		return s.Repo
	case SourceHere:
		return s.Dir
	case SourceUpload:
		return s.Upload
	}
	return ""
}
