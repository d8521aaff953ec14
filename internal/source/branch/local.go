package branch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/git"
	"github.com/tholehq/thole/internal/source"
	"github.com/tholehq/thole/internal/workspace/beneath"
	"golang.org/x/sys/unix"
)

// resolveLocal makes a source of a repository of this machine.
func (b *Branches) resolveLocal(ctx context.Context, rec *record, r source.Request) error {
	at, err := find(r.Repo)
	if err != nil {
		return err
	}
	if err := b.allowed(at); err != nil {
		return err
	}
	if at.Top == "" && r.Dirty {
		return thole.Errorf(thole.CodeInvalid, "%s has no working tree, so there are no uncommitted files to take along", at.Common).WithHint("leave out --dirty")
	}
	if err := b.look(ctx, &at, rec, r.Ref); err != nil {
		return err
	}
	rec.Source.Repo = at.Name()
	if why := unshared(at); why != "" {
		if err := b.copyLocal(ctx, at, rec); err != nil {
			return fmt.Errorf("%s, so it is copied: %w", why, err)
		}
	} else {
		rec.Source.Objects, rec.GitDir, rec.UID = at.ObjectDirs(), at.Common, at.uid
	}
	below := at.below()
	if r.Dir == "" && below != "" && !r.Dirty && !b.has(ctx, at, rec.Source.Commit, below) {
		below = "" // nobody asked for it by name
	}
	if r.Dir == "" {
		rec.Source.Dir = below
	} else if !r.Dirty && !b.has(ctx, at, rec.Source.Commit, r.Dir) {
		return thole.Errorf(thole.CodeNotFound, "commit %s has no directory %q", short(rec.Source.Commit), r.Dir).WithHint("name one that is committed, or take uncommitted files along with --dirty")
	}
	return b.hold(ctx, rec, func(ctx context.Context) error {
		if !r.Dirty {
			return nil
		}
		return b.carry(ctx, at, rec)
	})
}

// unshared is why agents are not shown a repository's objects, "" if they are. What it
// borrows lies in a repository that nobody named, with a history of its own; and the agents
// of root are users of their own.
func unshared(at userRepo) string {
	if n := len(at.Objects); n > 0 {
		return at.Name() + " borrows objects from " + at.Objects[n-1]
	}
	if path := closed(at.ObjectDirs()); path != "" {
		return path + " is not readable for agents"
	}
	if unix.Access(at.Common, unix.W_OK) != nil { // no ref there keeps the commit
		return at.Common + " may not be written"
	}
	return ""
}

// allowed refuses repositories in thole's own home, as what the server keeps there is not
// for agents, and paths that cannot be recorded.
func (b *Branches) allowed(at userRepo) error {
	home, err := filepath.EvalSymlinks(b.cfg.Home)
	if err != nil {
		return err
	}
	for _, p := range at.shown() {
		if !utf8.ValidString(p) {
			return thole.Errorf(thole.CodeUnsupported, "repository %q has a path that is not UTF-8", at.Name()).WithHint("rename the directory")
		}
		if beneath.Within(p, home) || beneath.Within(home, p) {
			return thole.Errorf(thole.CodeForbidden, "repository %s holds thole's own files, or is one of them", at.Name()).WithHint("choose another repository, or another --home")
		}
	}
	return nil
}

// run runs git over a repository of the user, which it sees read-only.
func (b *Branches) run(ctx context.Context, at userRepo, c git.Cmd) ([]byte, error) {
	return b.cfg.Git.Run(ctx, b.over(at, c))
}

// over is a command over a repository of the user.
func (b *Branches) over(at userRepo, c git.Cmd) git.Cmd {
	// The working tree is the one that was found, not what the configuration says.
	env := map[string]string{"GIT_DIR": at.Git, "GIT_WORK_TREE": at.Name(), "GIT_NO_LAZY_FETCH": "1"}
	for k, v := range c.Env {
		env[k] = v
	}
	c.Env, c.UID, c.Files = env, at.uid, at.Top
	if c.Dir == "" {
		c.Dir = at.Common
	}
	c.Show = append(at.shown(), c.Show...)
	return c
}

// look finds out which commit is meant and what a copy of it needs.
func (b *Branches) look(ctx context.Context, at *userRepo, rec *record, ref string) error {
	out, err := b.run(ctx, *at, git.Cmd{Args: []string{"rev-parse", "--is-shallow-repository", "--show-object-format"}})
	if err != nil {
		return unusable(*at, err)
	}
	words := strings.Fields(string(out))
	if len(words) != 2 {
		return unusable(*at, fmt.Errorf("git says %q", out))
	}
	rec.Format = words[1]
	if rec.Source.Commit, err = b.commit(ctx, *at, ref); err != nil {
		return err
	}
	if words[0] == "true" {
		if rec.Shallow, err = shallow(at.Common); err != nil {
			return unusable(*at, err)
		}
	}
	settings, err := b.settings(ctx, *at)
	if err != nil {
		return unusable(*at, err)
	}
	rec.User, rec.Email = settings["user.name"], settings["user.email"]
	if remote := git.MainRemote(settings); remote != "" {
		rec.Origin = cleanURL(settings["remote."+remote+".url"])
		if remote != "origin" {
			rec.Remote = remote
		}
	}
	if settings["core.sparsecheckout"] == "true" {
		patterns, err := small(at.Git, "info/sparse-checkout")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return unusable(*at, err)
		}
		if _, ok := source.ParseCone(patterns); ok && settings["core.sparsecheckoutcone"] == "true" {
			rec.Sparse, rec.Cone, rec.Source.Sparse = patterns, true, patterns
		} // else the copy has all files: which ones such patterns name only git knows
	}
	for key, value := range settings {
		if rest, ok := strings.CutPrefix(key, "filter."); ok {
			at.filters = append(at.filters, rest[:max(0, strings.LastIndexByte(rest, '.'))])
		}
		if strings.HasPrefix(key, "remote.") && strings.HasSuffix(key, ".promisor") && value == "true" || key == "extensions.partialclone" {
			rec.Partial = true
		}
	}
	if rec.Partial && rec.Sparse == "" {
		return b.complete(ctx, *at, rec.Source.Commit)
	}
	return nil
}

// commit is what a ref means.
func (b *Branches) commit(ctx context.Context, at userRepo, ref string) (string, error) {
	tries := []string{"HEAD"}
	if ref != "" {
		tries = []string{ref, "refs/remotes/origin/" + ref}
	}
	var last error
	for _, name := range tries {
		out, err := b.run(ctx, at, git.Cmd{Args: []string{"rev-parse", "--verify", "--quiet", "--end-of-options", name + "^{commit}"}})
		if id := strings.TrimSpace(string(out)); err == nil && validID(id) {
			return id, nil
		}
		last = err
	}
	var failed *git.Error
	if !errors.As(last, &failed) && last != nil {
		return "", unusable(at, last)
	}
	if ref == "" {
		return "", thole.Errorf(thole.CodeNotFound, "repository %s has no commit yet", at.Name()).WithHint("git commit makes one, --ref names a branch that has one, and --here works in the directory itself")
	}
	return "", thole.Errorf(thole.CodeNotFound, "repository %s has no commit %q", at.Name(), ref).WithHint("git -C %s branch -a lists branches; git fetch may bring it", at.Name())
}

// complete makes sure that all files of a commit are in a partial clone: in a box there is
// nobody to fetch the others from.
func (b *Branches) complete(ctx context.Context, at userRepo, commit string) error {
	out, err := b.run(ctx, at, git.Cmd{Args: []string{"rev-list", "--objects", "--missing=print", "--no-object-names", commit + "^{tree}"}, Limit: 1 << 30})
	if err != nil {
		return unusable(at, err)
	}
	missing := 0
	for line := range bytes.Lines(out) {
		if bytes.HasPrefix(line, []byte("?")) {
			missing++
		}
	}
	if missing > 0 {
		return thole.Errorf(thole.CodeUnsupported, "repository %s is a partial clone and lacks %d objects of commit %s", at.Name(), missing, short(commit)).
			WithHint("git -C %s checkout %s fetches them; git fetch --refetch --no-filter fetches all", at.Name(), short(commit))
	}
	return nil
}

// has reports whether a commit has a directory.
func (b *Branches) has(ctx context.Context, at userRepo, commit, dir string) bool {
	out, err := b.run(ctx, at, git.Cmd{Args: []string{"cat-file", "-t", commit + ":" + dir}})
	return err == nil && strings.TrimSpace(string(out)) == "tree"
}

func unusable(at userRepo, err error) error {
	if thole.HintOf(err) != "" {
		return fmt.Errorf("look at repository %s: %w", at.Name(), err)
	}
	var held *git.PipesError
	if errors.As(err, &held) {
		return thole.Errorf(thole.CodeUnsupported, "look at repository %s: %w", at.Name(), err).WithHint("remove it if you did not make it")
	}
	return thole.Errorf(thole.CodeUnavailable, "look at repository %s: %w", at.Name(), err).WithHint("git -C %s status shows whether git can use it", at.Name())
}

// validID reports whether a text is the whole name of an object.
func validID(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

func short(id string) string { return id[:min(len(id), 12)] }

// shallow reads where a history is cut off.
func shallow(dir string) ([]string, error) {
	text, err := small(dir, "shallow")
	if err != nil {
		return nil, err
	}
	var cuts []string
	for line := range strings.SplitSeq(text, "\n") {
		if !validID(line) {
			return nil, fmt.Errorf("shallow in %s is damaged", dir)
		}
		cuts = append(cuts, line)
	}
	return cuts, nil
}

// maxLoose bounds the search for objects that agents could not read.
const maxLoose = 200_000

// closed is an object, or a directory of objects, that other users may not read, where
// agents are other users; "" for none.
func closed(dirs []string) (found string) {
	if os.Geteuid() != 0 {
		return ""
	}
	seen := 0
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if seen++; err != nil || seen > maxLoose {
				return fs.SkipAll
			}
			info, err := e.Info()
			if err != nil {
				return nil //nolint:nilerr // it went while we looked
			}
			need, ext := fs.FileMode(0o004), filepath.Ext(path)
			if e.IsDir() {
				need = 0o005
			} else if !info.Mode().IsRegular() || ext != "" && ext != ".pack" && ext != ".idx" || strings.HasPrefix(e.Name(), "tmp_") {
				return nil
			}
			if info.Mode()&need != need {
				found = path
				return fs.SkipAll
			}
			return nil
		})
	}
	return found
}
