package view

// Changes is how a session's files differ between two states.
type Changes struct {
	Turn   int    `json:"turn,omitempty" doc:"number of the run whose changes these are; absent for those of all runs"`
	From   string `json:"from" doc:"commit of the earlier state"`
	To     string `json:"to" doc:"commit of the later state"`
	Live   bool   `json:"live,omitempty" doc:"the later state is that of now, and a run under way may change it"`
	Branch string `json:"branch,omitempty" doc:"that the session works on"`
	Repo   string `json:"repo,omitempty" doc:"directory of this machine that apply, pull and merge write to; absent where they need one to be named or cannot be used"`
	// InPlace: the files are the user's own.
	InPlace bool          `json:"in_place,omitempty" doc:"the session works on the user's own directory: there is nothing to apply, pull or merge"`
	Files   []ChangedFile `json:"files"`
	Added   int           `json:"added" doc:"lines, in all files that are counted"`
	Removed int           `json:"removed"`
	// Total is how many files changed, listed or not.
	Total     int           `json:"total" doc:"number of changed files, which may be more than are listed"`
	Truncated bool          `json:"truncated,omitempty" doc:"files are missing in the list, or patches in it are cut off"`
	LeftOut   []string      `json:"left_out,omitempty" doc:"what no state has, and why: files that cannot be read, are too large or have a name that git refuses, pipes in the place of files that git reads, and repositories without a commit"`
	Turns     []TurnChanges `json:"turns" doc:"the runs whose states are known, oldest first"`
}

// ChangedFile is one changed file.
type ChangedFile struct {
	Path      string `json:"path" doc:"bytes that are not UTF-8 are replaced; path_bytes then has all of them"`
	PathBytes []byte `json:"path_bytes,omitempty"`
	OldPath   string `json:"old_path,omitempty" doc:"of a renamed file"`
	Kind      string `json:"kind" enum:"added,modified,deleted,renamed,type" doc:"type: a file became a link, or the like"`
	Mode      string `json:"mode,omitempty" doc:"100644, 100755, 120000 (link) or 160000 (commit of a repository below); absent for a deleted file"`
	OldMode   string `json:"old_mode,omitempty" doc:"where it differs from mode"`
	Added     int    `json:"added"`
	Removed   int    `json:"removed"`
	Binary    bool   `json:"binary,omitempty" doc:"lines are not counted and there is no patch"`
	Patch     string `json:"patch,omitempty" doc:"unified diff of the file, where one was asked for; bytes that are not UTF-8 are replaced"`
	Cut       bool   `json:"cut,omitempty" doc:"the patch is cut off, or missing for its length"`
}

// TurnChanges says of a run whether it changed files.
type TurnChanges struct {
	Number  int  `json:"number"`
	Changed bool `json:"changed"`
}

// Applied says what became of an attempt to bring a session's changes into a directory.
type Applied struct {
	Dir string `json:"dir" doc:"the directory of this machine"`
	// Done is false for a check, and where something is in the way.
	Done      bool          `json:"done" doc:"the files are written; false for a check and where there are conflicts"`
	Files     []ChangedFile `json:"files" doc:"what changed there, or would"`
	Total     int           `json:"total"`
	Conflicts []Conflict    `json:"conflicts" doc:"what is in the way; nothing is written then"`
	Notes     []string      `json:"notes,omitempty" doc:"what else the user must know"`
}

// Conflict is a file in the way.
type Conflict struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// Pulled says which branch of which repository has a session's changes now.
type Pulled struct {
	Repo   string `json:"repo"`
	Branch string `json:"branch"`
	Commit string `json:"commit"`
	Old    string `json:"old,omitempty" doc:"commit that the branch was at before"`
	// Commits is how many there are since the session's beginning.
	Commits int      `json:"commits" doc:"that the session's branch has more than its beginning"`
	Notes   []string `json:"notes,omitempty" doc:"what else the user must know: files that no state has, and commits that the branch names and does not have"`
}

// Merged says what became of an attempt to merge a session's branch.
type Merged struct {
	Pulled
	Into        string     `json:"into" doc:"the branch of the repository that is checked out"`
	Done        bool       `json:"done"`
	FastForward bool       `json:"fast_forward,omitempty"`
	Conflicts   []Conflict `json:"conflicts" doc:"what is in the way; nothing is merged then"`
}

// Pushed says what a remote repository has now.
type Pushed struct {
	Remote string `json:"remote"`
	Branch string `json:"branch"`
	Commit string `json:"commit"`
	Output string `json:"output,omitempty" doc:"what git and the remote said"`
	// Notes: as those of Pulled.
	Notes []string `json:"notes,omitempty" doc:"what else the user must know"`
}

// PullRequest is one that is open for a session's branch.
type PullRequest struct {
	URL      string `json:"url"`
	Number   int    `json:"number"`
	Branch   string `json:"branch"`
	Base     string `json:"base" doc:"the branch that it is for"`
	Existing bool   `json:"existing,omitempty" doc:"it was open already, and has what was pushed now"`
}

// Undone names the run that puts files back.
type Undone struct {
	RunID  string `json:"run_id"`
	Number int    `json:"number"`
	Turn   int    `json:"turn" doc:"the files become what they were before this run"`
}
