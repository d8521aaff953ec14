package view

import (
	"time"

	thole "github.com/tholehq/thole"
)

// SourceChoice is where a new session's files are to come from.
type SourceChoice struct {
	Kind   thole.SourceKind `json:"kind" enum:"branch,here,template,upload,empty"`
	Repo   string           `json:"repo,omitempty" maxLength:"4096" doc:"of a branch: a directory of this machine, or a URL"`
	Ref    string           `json:"ref,omitempty" maxLength:"1024" doc:"of a branch: where it begins; HEAD when absent"`
	Dir    string           `json:"dir,omitempty" maxLength:"4096" doc:"where the agent works: below the top of a branch, or the directory of here"`
	Dirty  bool             `json:"dirty,omitempty" doc:"of a branch: take uncommitted and untracked files along"`
	Upload string           `json:"upload,omitempty" maxLength:"64" doc:"id of POST /uploads"`
	Name   string           `json:"name,omitempty" maxLength:"4096" doc:"of a branch: what it is named after, such as the first message"`
}

// Source is where a session's files come from.
type Source struct {
	Kind   thole.SourceKind `json:"kind" enum:"branch,here,template,upload,empty"`
	Repo   string           `json:"repo,omitempty"`
	Ref    string           `json:"ref,omitempty"`
	Commit string           `json:"commit,omitempty"`
	Branch string           `json:"branch,omitempty"`
	Dirty  bool             `json:"dirty,omitempty" doc:"uncommitted files were taken along"`
	Upload string           `json:"upload,omitempty"`
	// What a branch lacks.
	Submodules []string `json:"submodules,omitempty" doc:"of a branch: paths of submodules, which are empty; the first 20"`
	LFS        []string `json:"lfs,omitempty" doc:"of a branch: patterns of files that are Git LFS pointers; the first 20"`
}

// OfSource converts; threads of earlier versions have an empty one.
func OfSource(s thole.Source) Source {
	if s.Kind == "" {
		s.Kind = thole.SourceEmpty
	}
	return Source{Kind: s.Kind, Repo: s.Repo, Ref: s.Ref, Commit: s.Commit, Branch: s.Branch, Dirty: s.Carried != "", Upload: s.Upload, Submodules: s.Submodules, LFS: s.LFS}
}

// Folder is a directory of this machine.
type Folder struct {
	Name       string `json:"name"`
	Path       string `json:"path"`
	Repository bool   `json:"repository" doc:"a git repository begins here"`
}

// Folders are the directories in a directory.
type Folders struct {
	Folder
	Parent    string   `json:"parent,omitempty" doc:"the directory above, absent at the top"`
	Items     []Folder `json:"items"`
	Truncated bool     `json:"truncated" doc:"there are more than are listed"`
}

// RecentSource is a repository or directory that sessions worked on.
type RecentSource struct {
	Kind   thole.SourceKind `json:"kind" enum:"branch,here"`
	At     string           `json:"at" doc:"a directory of this machine, or a URL"`
	UsedAt time.Time        `json:"used_at"`
}

// Repository is what can be chosen of a repository.
type Repository struct {
	Repo string `json:"repo" doc:"its top directory"`
	Dir  string `json:"dir,omitempty" doc:"where the given path is below it"`
	Bare bool   `json:"bare"`
	// Branch is "" where HEAD names no branch, Commit where there is none yet.
	Branch    string      `json:"branch,omitempty"`
	Commit    string      `json:"commit,omitempty"`
	Branches  []BranchRef `json:"branches"`
	Truncated bool        `json:"truncated" doc:"there are more branches, or more changes, than are counted"`
	Changed   int         `json:"changed" doc:"tracked files with uncommitted changes"`
	Untracked int         `json:"untracked" doc:"files that git does not know and does not ignore"`
}

// BranchRef is a branch of a repository.
type BranchRef struct {
	Name   string `json:"name"`
	Commit string `json:"commit"`
}

// Upload is what a client sent, until a session uses it.
type Upload struct {
	ID        string    `json:"id"`
	Files     int       `json:"files"`
	Links     int       `json:"links"`
	Bytes     int64     `json:"bytes" doc:"unpacked"`
	ExpiresAt time.Time `json:"expires_at" doc:"it is removed then unless a session was made of it"`
}
