package branch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/git"
	"github.com/tholehq/thole/internal/source"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// layTime bounds a checkout.
const layTime = 2 * time.Hour

// Lay makes the copy of a thread's source in a workspace that no agent has seen: a
// repository whose objects are elsewhere, on the thread's branch, with its files. What an
// earlier try left is replaced. It runs as the owner of the directory. Submodules stay
// empty and pointers of LFS stay pointers.
func (b *Branches) Lay(ctx context.Context, id thole.ThreadID, s thole.Source, dir string) error {
	rec, err := b.of(id, s)
	if err != nil {
		return err
	}
	if err := source.Present(s); err != nil {
		return err
	}
	root, err := beneath.Open(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	uid := 0
	if os.Geteuid() == 0 {
		if uid, err = root.Owner(); err != nil {
			return err
		}
	}
	packed, leads, err := b.names(ctx, &rec, s)
	if err != nil {
		return b.explain(rec, err)
	}
	if err := plant(root, rec, s, uid, packed, leads); err != nil {
		return fmt.Errorf("make the workspace's repository: %w", err)
	}
	run := func(args ...string) error {
		_, err := b.cfg.Git.Run(ctx, git.Cmd{Dir: dir, Args: args, Show: s.Objects, Write: []string{dir}, UID: uid, Timeout: layTime,
			Env: map[string]string{"GIT_DIR": dir + "/.git", "GIT_WORK_TREE": dir, "GIT_NO_LAZY_FETCH": "1"},
			// As many at once as there are processors.
			Config: map[string]string{"checkout.workers": "0"}})
		return err
	}
	files := s.Commit
	if s.Carried != "" {
		files = s.Carried
	}
	if err := run("read-tree", "--reset", "-u", files); err != nil {
		return b.explain(rec, err)
	}
	if s.Carried != "" {
		if err := run("reset", "--quiet", "--mixed", s.Commit); err != nil {
			return b.explain(rec, err)
		}
	}
	return nil
}

// explain says of a failed checkout what may be the reason.
func (b *Branches) explain(rec record, err error) error {
	var failed *git.Error
	if !errors.As(err, &failed) {
		return err
	}
	if rec.Partial && strings.Contains(failed.Stderr, "promisor") {
		return thole.Errorf(thole.CodeUnsupported, "repository %s is a partial clone and lacks some files of commit %s: %w", rec.Source.Repo, short(rec.Source.Commit), err).
			WithHint("git -C %s checkout %s fetches them", rec.Source.Repo, short(rec.Source.Commit))
	}
	if strings.Contains(failed.Stderr, "error: invalid path ") { // which git takes for its own, or leads out
		return thole.Errorf(thole.CodeUnsupported, "check out commit %s of %s: it has a file that git refuses: %w", short(rec.Source.Commit), rec.Source.Repo, err).
			WithHint("choose another commit; this one may have been made to do harm")
	}
	return thole.Errorf(thole.CodeUnavailable, "check out commit %s of %s: %w", short(rec.Source.Commit), rec.Source.Repo, err).
		WithHint("git -C %s fsck looks for damage there", rec.Source.Repo)
}

// plant writes the repository's own files, which are few: what else it has is elsewhere.
func plant(root *beneath.Dir, rec record, s thole.Source, uid int, packed string, leads map[string]string) error {
	if err := root.RemoveAll(".git"); err != nil {
		return err
	}
	files := map[string]string{
		".git/HEAD":                    "ref: refs/heads/" + s.Branch + "\n",
		".git/refs/heads/" + s.Branch:  s.Commit + "\n",
		".git/config":                  config(rec),
		".git/objects/info/alternates": string(alternates(s.Objects)),
		".git/info/exclude":            "",
		".git/packed-refs":             packed,
	}
	maps.Copy(files, leads)
	if len(rec.Shallow) > 0 {
		files[".git/shallow"] = strings.Join(rec.Shallow, "\n") + "\n"
	}
	if rec.Sparse != "" {
		files[".git/info/sparse-checkout"] = rec.Sparse + "\n"
	}
	for path, text := range files {
		if err := put(root, path, text); err != nil {
			return err
		}
	}
	for _, dir := range []string{".git/objects/pack/x", ".git/refs/tags/x"} { // what marks a repository
		at, _, err := root.Parent(dir, true)
		if err != nil {
			return err
		}
		at.Close()
	}
	if uid == 0 {
		return nil
	}
	sub, err := root.Sub(".git")
	if err != nil {
		return err
	}
	defer sub.Close()
	return errors.Join(sub.ChownAll(uid, uid), sub.ChownSelf(uid, uid))
}

func put(root *beneath.Dir, path, text string) error {
	dir, name, err := root.Parent(path, true)
	if err != nil {
		return err
	}
	defer dir.Close()
	f, err := dir.Create(name, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(text); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// config is the workspace's own configuration of git.
func config(rec record) string {
	var c strings.Builder
	c.WriteString("[core]\n\trepositoryformatversion = 1\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n")
	if rec.Sparse != "" {
		fmt.Fprintf(&c, "\tsparsecheckout = true\n\tsparsecheckoutcone = %t\n", rec.Cone)
	}
	if rec.Format != "" && rec.Format != "sha1" {
		fmt.Fprintf(&c, "[extensions]\n\tobjectformat = %s\n", value(rec.Format))
	}
	if rec.User != "" || rec.Email != "" {
		c.WriteString("[user]\n")
		for key, v := range map[string]string{"name": rec.User, "email": rec.Email} {
			if v != "" {
				fmt.Fprintf(&c, "\t%s = %s\n", key, value(v))
			}
		}
	}
	if rec.Origin != "" {
		name := remoteOf(&rec)
		fmt.Fprintf(&c, "[remote %s]\n\turl = %s\n\tfetch = %s\n", value(name), value(rec.Origin), value("+refs/heads/*:refs/remotes/"+name+"/*"))
		if rec.Partial {
			c.WriteString("\tpromisor = true\n\tpartialclonefilter = blob:none\n")
		}
	}
	return c.String()
}

// value writes a text that another person chose so that it is one value and nothing more.
func value(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, s)
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
