package source

import (
	"errors"
	"io/fs"
	"os"

	thole "github.com/tholehq/thole"
)

// Present refuses a source whose git objects are not there any more: the user deleted or
// moved the repository that the thread's files share them with.
func Present(s thole.Source) error {
	for _, dir := range s.Objects {
		switch _, err := os.Stat(dir); {
		case errors.Is(err, fs.ErrNotExist):
			return thole.Errorf(thole.CodeGone, "this thread's files share git objects with %s, and %s is gone", s.Repo, dir).
				WithHint("put the repository back where it was; thole workspace export writes the files that were stored")
		case err != nil:
			return thole.Errorf(thole.CodeUnavailable, "look for the git objects of %s: %w", s.Repo, err).WithHint("see that %s can be read", dir)
		}
	}
	return nil
}
