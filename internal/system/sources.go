package system

import (
	"context"
	"log/slog"

	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/git"
	"github.com/tholehq/thole/internal/source/branch"
	"github.com/tholehq/thole/internal/store"
)

// newGit makes the one way to run git. box is nil where a person typed that there are no
// walls.
func newGit(self string, box func(context.Context) (string, error)) *git.Runner {
	if box == nil {
		box = func(context.Context) (string, error) { return "", nil }
	}
	return &git.Runner{Box: box, Self: self}
}

// newBranches makes threads' files of repositories.
func newBranches(cfg *config.Config, db *store.DB, runner *git.Runner, log *slog.Logger) *branch.Branches {
	return branch.New(branch.Config{Home: cfg.Home, Git: runner, Alive: db.Threads().Sources, Log: log})
}
