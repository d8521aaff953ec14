package branch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/sandbox/repository"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// userRepo is a repository of this machine, found without git.
type userRepo struct {
	repository.Place
	uid     int      // its owner, where we are root
	filters []string // that its configuration names
}

// shown is what a box has to show of it.
func (r userRepo) shown() []string {
	all := append([]string{r.Git, r.Common}, r.ObjectDirs()...)
	if r.Top != "" {
		all = append(all, r.Top)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// below is where in the work tree the directory is that was named, "" for the top.
func (r userRepo) below() string {
	below, err := filepath.Rel(r.Top, r.Dir)
	if err != nil || r.Top == "" || below == "." || beneath.Within(r.Dir, r.Git) {
		return ""
	}
	return below
}

// find looks for the repository that a directory is in.
func find(path string) (userRepo, error) {
	at, err := repository.Find(path)
	if thole.CodeOf(err) == thole.CodeNotFound && !errors.Is(err, fs.ErrNotExist) {
		err = thole.Errorf(thole.CodeNotFound, "%w", err).WithHint("git init && git add -A && git commit makes a repository; without --repo the thread starts with no files")
	}
	r := userRepo{Place: at}
	if os.Geteuid() == 0 {
		r.uid = at.UID
	}
	return r, err
}

// quoted is a path in the form of a list of alternates, which is git's and not Go's.
func quoted(path string) string {
	if !strings.ContainsAny(path, "\n\r\"\\:") && !strings.HasPrefix(path, "#") {
		return path
	}
	out := []byte{'"'}
	for _, c := range []byte(path) {
		switch {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c < ' ' || c == 0x7f:
			out = fmt.Appendf(out, `\%03o`, c)
		default:
			out = append(out, c)
		}
	}
	return string(append(out, '"'))
}

// maxSmall bounds the files of a repository that are read here.
const maxSmall = 64 << 10

// small reads a small file of a repository, without its last line's end.
func small(dir, path string) (string, error) {
	text, err := beneath.ReadFile(dir, path, maxSmall)
	return strings.TrimRight(string(text), "\r\n"), err
}
