package branch

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/tholehq/thole/internal/git"
)

// maxElsewhere bounds how many names of each sort are recorded.
const maxElsewhere = 20

// elsewhere notes what the record's commit refers to and no copy of it has: the files of
// submodules and the content that LFS keeps. A commit whose own lists cannot be read has
// neither, as git finds none in it either.
func (b *Branches) elsewhere(ctx context.Context, rec *record) error {
	commit := rec.Source.Commit
	// A blob may include files of this machine.
	out, err := b.ask(ctx, rec, "config", "--no-includes", "--blob", commit+":.gitmodules", "-z", "--get-regexp", `^submodule\..*\.path$`)
	if err != nil {
		return err
	}
	var paths []string
	for entry := range strings.SplitSeq(out, "\x00") {
		if _, path, ok := strings.Cut(entry, "\n"); ok && path != "" && len(paths) < maxModules {
			paths = append(paths, path)
		}
	}
	if len(paths) > 0 {
		out, err := b.ask(ctx, rec, append([]string{"--literal-pathspecs", "ls-tree", "-z", "--full-tree", commit, "--"}, paths...)...)
		if err != nil {
			return err
		}
		for entry := range strings.SplitSeq(out, "\x00") {
			if what, path, ok := strings.Cut(entry, "\t"); ok && strings.HasPrefix(what, "160000 ") {
				rec.Source.Submodules = noted(rec.Source.Submodules, path)
			}
		}
	}
	out, err = b.ask(ctx, rec, "grep", "-I", "-h", "--no-color", "-E", "-e", `^[^#].*[[:space:]]filter=lfs([[:space:]]|$)`, commit, "--", ":(top,glob)**/.gitattributes")
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		if words := strings.Fields(line); len(words) > 0 {
			rec.Source.LFS = noted(rec.Source.LFS, words[0])
		}
	}
	return nil
}

// maxModules bounds how many submodules are looked for.
const maxModules = 1000

func noted(list []string, name string) []string {
	if name = strings.ToValidUTF8(name, "\uFFFD"); len(list) == maxElsewhere || slices.Contains(list, name) {
		return list
	}
	return append(list, name)
}

// ask runs git over the record's repository, which it only reads: in a box where it is the
// user's. What git refuses is an empty answer.
func (b *Branches) ask(ctx context.Context, rec *record, args ...string) (string, error) {
	c := git.Cmd{Dir: rec.GitDir, Args: args, Env: map[string]string{"GIT_DIR": rec.GitDir, "GIT_WORK_TREE": rec.GitDir, "GIT_NO_LAZY_FETCH": "1"}}
	run := b.cfg.Git.RunOwn
	if rec.Mirror == "" {
		run, c.Show, c.UID = b.cfg.Git.Run, append([]string{rec.GitDir}, objectsOf(rec)...), rec.UID
	}
	out, err := run(ctx, c)
	var refused *git.Error
	if errors.As(err, &refused) {
		return "", nil
	}
	return string(out), err
}
