// Package source is the port to where threads' files come from: a Resolver makes of what
// a client asked for the thole.Source that is recorded with the thread. It lays no files.
package source

import (
	"context"

	thole "github.com/tholehq/thole"
)

// Request is what a client asked for.
type Request struct {
	// Kind is "" where the client chose nothing.
	Kind thole.SourceKind
	// Repo is a directory in a repository, or a URL; Ref a branch, tag or commit there, ""
	// for its HEAD.
	Repo, Ref string
	// Dir is where the agent is to work: the directory of SourceHere, or one below the top
	// of a branch.
	Dir string
	// Upload names what the client sent.
	Upload string
	// Dirty takes uncommitted and untracked files along.
	Dirty bool
	// Name is what a branch is called, without BranchPrefix; see Slug. "" for any.
	Name  string
	Actor thole.Actor
	// Local: it came by the home's socket, or from the page of this machine.
	Local bool
}

// Resolver makes sources.
type Resolver interface {
	// Resolve looks at what was asked for and holds what the thread will need of it. It is
	// called before the thread is created, with the id that it will have; what it holds for
	// a thread that is never created is let go of by a sweep. A refusal has a code and a
	// hint. It may be called again.
	Resolve(ctx context.Context, id thole.ThreadID, r Request) (thole.Source, error)
}
