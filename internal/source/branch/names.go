package branch

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/git"
)

// maxListed bounds what Names reads of a repository's names.
const maxListed = 32 << 20

// Names lists the files that a thread would have that begins at ref, HEAD when empty, of
// the repository of this machine that a directory is in. With dirty it lists those below
// the directory as they are now, but none that git ignores.
func (b *Branches) Names(ctx context.Context, path, ref string, dirty bool) ([]string, error) {
	at, err := find(path)
	if err != nil {
		return nil, err
	}
	if err := b.allowed(at); err != nil {
		return nil, err
	}
	c := git.Cmd{Limit: maxListed, Timeout: inspectTime}
	if dirty && at.Top != "" {
		c.Dir, c.Env = filepath.Join(at.Top, at.below()), map[string]string{"GIT_WORK_TREE": at.Top}
		c.Args = []string{"ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"}
	} else {
		if ref == "" {
			ref = "HEAD"
		}
		commit, err := b.run(ctx, at, git.Cmd{Args: []string{"rev-parse", "--verify", "--quiet", "--end-of-options", ref + "^{commit}"}})
		if err != nil {
			return nil, thole.Errorf(thole.CodeNotFound, "no commit %q in %s", ref, at.Name())
		}
		c.Args = []string{"ls-tree", "-r", "-z", "--name-only", "--full-tree", strings.TrimSpace(string(commit))}
	}
	list, err := b.run(ctx, at, c)
	if errors.Is(err, git.ErrTooLong) { // the first of very many; the last one was cut
		list, err = list[:bytes.LastIndexByte(list, 0)+1], nil
	}
	if err != nil {
		return nil, unusable(at, err)
	}
	var out []string
	for name := range bytes.SplitSeq(list, []byte{0}) {
		if len(name) > 0 {
			out = append(out, string(name))
		}
	}
	return out, nil
}
