// Package here resolves the source of threads that work in a directory of the user of this
// machine. It is only for that user: a request that came from elsewhere is refused. Which
// directories are for agents the driver of executors decides, before the thread starts and
// again before each start of an executor.
package here

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/sandbox/repository"
	"github.com/tholehq/thole/internal/source"
)

// Resolver implements source.Resolver for thole.SourceHere.
type Resolver struct {
	// Check refuses a directory, or says where it lies.
	Check func(dir string) (repository.Place, error)
}

var _ source.Resolver = Resolver{}

// Resolve holds nothing: the directory is the user's own.
func (r Resolver) Resolve(_ context.Context, _ thole.ThreadID, q source.Request) (thole.Source, error) {
	switch {
	case !q.Local:
		return thole.Source{}, thole.Errorf(thole.CodeForbidden, "source here: only the user of this machine can have an agent work in a directory of it").
			WithHint("use the thole command or the page of `thole up` on this machine, or start the thread on a branch or from an upload")
	case q.Dir == "":
		return thole.Source{}, thole.Errorf(thole.CodeInvalid, "source here: no directory is named").WithHint("name it with its full path")
	case q.Repo != "" || q.Ref != "" || q.Dirty || q.Upload != "":
		return thole.Source{}, thole.Errorf(thole.CodeInvalid, "source here: it takes a directory as it is, and no repository, ref or upload").
			WithHint("source branch makes a copy at a ref; --dirty takes uncommitted files along")
	}
	place, err := r.Check(q.Dir)
	if err != nil {
		return thole.Source{}, err
	}
	return thole.Source{Kind: thole.SourceHere, Dir: place.Dir, Objects: place.Objects}, nil
}
