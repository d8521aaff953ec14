// Package source is the port through which a thread is given its files: a Request says
// what a person or program asked for, a Resolver makes the thread's thole.Source of it
// or refuses it by name. It decides nothing about a thread and keeps nothing.
package source

import (
	"context"

	thole "github.com/tholehq/thole"
)

// Request is what was asked for at a door.
type Request struct {
	Kind thole.SourceKind
	// Repo is a local path or a URL, Ref what to begin at ("" for its HEAD), Dir where the
	// agent works: below the top of a branch, or the directory of SourceHere.
	Repo, Ref, Dir string
	// Upload names what a client sent.
	Upload string
	// Dirty takes uncommitted and untracked files along.
	Dirty bool
	// Name is what the branch is named after: see Slug.
	Name  string
	Actor thole.Actor
	// Local says that the request came by the home's socket or the page of this machine.
	Local bool
}

// Resolver makes sources. It is asked before the thread id is created, and may be asked
// again for the same id; refusals have the class of the mistake and a hint.
type Resolver interface {
	Resolve(ctx context.Context, id thole.ThreadID, r Request) (thole.Source, error)
}
