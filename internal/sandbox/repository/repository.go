// Package repository knows where a directory lies in a git repository, and what of the
// repositories below it git takes programs and paths from: hooks, configuration,
// attributes, and the files that lead to another git directory. A box in which an agent
// works in the user's own directory shows those read-only. The package runs no git, mounts
// nothing, and follows no link.
//
// Locate is how all of thole finds a repository. Anybody may have packed what is found, and
// an agent may have written it; so one rule decides what is followed:
//
//   - A git directory is the directory .git of a work tree, or a bare repository. It leads to
//     no other: a commondir in it is refused, and so is a .git that is a symbolic link, a
//     pipe or a device.
//   - A file .git is followed only to a git directory that names the same work tree in turn.
//     That of a linked work tree lies in worktrees of its repository, and its file gitdir
//     names the file .git. Any other, of a submodule or apart, names the work tree as
//     core.worktree.
//   - The work tree, its .git, the git directory and the repository's belong to one user.
//   - Objects may lie elsewhere. Root, who can read those of everybody, follows alternates
//     only to objects of the repository's owner.
//   - What is read on the way is small, a regular file and no link.
//
// Whatever breaks the rule is refused by name, with what helps. Only a .git that is a
// directory and no repository is passed over, as git does.
package repository

import (
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// Place is where a directory lies. All paths are absolute and without links.
type Place struct {
	// Dir is the directory.
	Dir string `json:"dir"`
	// Top is the work tree that Dir is in, "" where there is none.
	Top string `json:"top,omitempty"`
	// Git is that work tree's git directory, Common the one with its objects, branches and
	// configuration. They differ in a linked work tree. Both are "" in no repository.
	Git    string `json:"git,omitempty"`
	Common string `json:"common,omitempty"`
	// Objects are directories of objects elsewhere that Common refers to.
	Objects []string `json:"objects,omitempty"`
	// Home is what ~ means in a configuration of the owner's.
	Home string `json:"home,omitempty"`
	// Named are paths that agents can write and that configuration elsewhere names, see
	// NamedOutside.
	Named []Named `json:"named,omitempty"`
	// UID is whose the repository is.
	UID int `json:"-"`
}

// Outside are the git directories that do not lie in Dir, parents first.
func (p Place) Outside() (out []string) {
	for _, dir := range []string{p.Common, p.Git} {
		if dir != "" && !beneath.Within(dir, p.Dir) && !beneath.Within(dir, out...) {
			out = append(out, dir)
		}
	}
	return out
}

// Name is what a person calls the repository: its work tree, or itself where it is bare.
func (p Place) Name() string {
	if p.Top != "" {
		return p.Top
	}
	return p.Common
}

// CheckFiles refuses a place without files to work on: a git directory.
func (p Place) CheckFiles() error {
	switch {
	case slices.Contains(strings.Split(p.Dir, "/"), ".git"): // also one that is not a repository yet
		return refuse(p.Dir, "lies in a git directory").WithHint("name the work tree")
	case p.Git == "":
		return nil
	case p.Top == "":
		return refuse(p.Dir, "lies in a bare repository, %s", p.Common).WithHint("a thread on a branch of it has a work tree: --repo %s", p.Common)
	case beneath.Within(p.Dir, p.Git, p.Common):
		return refuse(p.Dir, "lies in a git directory").WithHint("name the work tree, %s", p.Top)
	}
	return nil
}

// ObjectDirs are all directories with objects of the repository, its own first.
func (p Place) ObjectDirs() []string {
	own := p.Common + "/objects"
	if isLink(own) {
		return slices.Clone(p.Objects) // where it leads is the first
	}
	return append([]string{own}, p.Objects...)
}

func refuse(path, format string, args ...any) *thole.Error {
	return thole.Errorf(thole.CodeInvalid, "%s "+format, append([]any{path}, args...)...)
}
