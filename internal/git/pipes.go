package git

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// While it looks at files, git opens some of them without a look at what they are: those
// that say what to leave out and how to read others, and those of repositories below. If one
// is a pipe, git waits until another process writes into it. No search before each run would pay
// for itself; so a run that takes longer is searched for the reason.

const (
	// patience is how long git runs before the first search; then it doubles.
	patience = time.Second
	// maxPipes bounds how many are named.
	maxPipes = 500
)

// PipesError ends a run that pipes hold, or could hold.
type PipesError struct {
	Dir   string
	Paths []string // below Dir
}

func (e *PipesError) Error() string {
	return fmt.Sprintf("%s is a pipe, which git would wait for", filepath.Join(e.Dir, e.Paths[0]))
}

// watchPipes ends the context that it returns when it finds pipes. stop returns when nothing
// searches any more.
func (c Cmd) watchPipes(ctx context.Context) (_ context.Context, stop func()) {
	if c.Files == "" {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for wait := patience; ; wait *= 2 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
			}
			if found := c.pipes(ctx); len(found) > 0 {
				cancel(&PipesError{Dir: c.Files, Paths: found})
				return
			}
		}
	}()
	return ctx, func() { cancel(nil); <-done }
}

// pipes are those that git may open and that are not hidden. No link is followed.
func (c Cmd) pipes(ctx context.Context) (found []string) {
	root, err := os.OpenRoot(c.Files)
	if err != nil {
		return nil
	}
	defer root.Close()
	_ = fs.WalkDir(root.FS(), ".", func(at string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil || len(found) == maxPipes {
			return fs.SkipAll
		}
		if err != nil {
			return nil //nolint:nilerr // git cannot read it either
		}
		if e.Type() == fs.ModeNamedPipe && opened(at) && !slices.Contains(c.Hide, filepath.Join(c.Files, at)) {
			found = append(found, at)
		}
		return nil
	})
	return found
}

// opened reports whether git may open a file without asking what it is.
func opened(at string) bool {
	switch path.Base(at) {
	case ".gitignore", ".gitattributes", ".gitmodules":
		return true
	}
	return slices.Contains(strings.Split(at, "/"), ".git")
}
