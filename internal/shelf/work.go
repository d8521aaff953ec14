package shelf

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/git"
)

// Work is all that a thread made, as a branch on its shelf.
type Work struct {
	Dir    string // the shelf: git push works there
	Branch string // thole/NAME, on the shelf too
	Commit string
	Base   string // the commit that the thread began with, "" for none
	// Commits is how many the branch has more than the base.
	Commits int
	// Remote is the address of the repository that the files came from, or of its origin;
	// "" where there is none.
	Remote string
	Notes  []string // what the user must know
}

// Prepare makes one branch of what a thread did: the agent's own commits, and a commit by
// the user of what it did not commit. It can be repeated, and gives the same commit as
// long as nothing changed. name is that of the branch, "" for the thread's own.
func (s *Shelf) Prepare(ctx context.Context, th fold.Thread, dir string, name string) (Work, error) {
	o, done, err := s.open(ctx, th, dir)
	if err != nil {
		return Work{}, err
	}
	defer done()
	return o.prepare(ctx, name)
}

func (o *one) prepare(ctx context.Context, name string) (w Work, err error) {
	all, err := o.begun(ctx)
	if err != nil {
		return w, err
	}
	st, left, err := o.now(ctx, all)
	if err != nil {
		return w, err
	}
	base := all[refBase]
	w = Work{Dir: o.bare, Branch: name, Base: base.head.Commit, Notes: each("left out: ", left)}
	if w.Branch == "" {
		w.Branch = BranchOf(o.th)
	}
	if !validRef("refs/heads/" + w.Branch) {
		return w, thole.Errorf(thole.CodeInvalid, "%q is not a name for a branch", w.Branch).WithHint("use letters, digits, - and /")
	}
	if st.tree == base.tree && st.head.Commit == base.head.Commit {
		return w, thole.Errorf(thole.CodeConflict, "the thread changed nothing").WithHint("thole thread diff %s shows what it changed", o.th.ID)
	}
	if w.Commit, err = o.gather(ctx, st, "refs/heads/"+w.Branch); err != nil {
		return w, err
	}
	args := []string{"rev-list", "--count", w.Commit}
	if w.Base != "" {
		args = append(args, "^"+w.Base)
	}
	count, err := o.line(ctx, args...)
	if err != nil {
		return w, err
	}
	if w.Commits, err = strconv.Atoi(count); err != nil {
		return w, err
	}
	below, err := o.below(ctx, base, st)
	if err != nil {
		return w, err
	}
	w.Notes = append(w.Notes, below...)
	w.Remote, err = o.remote(ctx)
	return w, err
}

// below says which commits of repositories below a branch names that its beginning does not:
// the branch does not have them, and nobody else may.
func (o *one) below(ctx context.Context, base, st State) (notes []string, err error) {
	out, err := o.own(ctx, git.Cmd{Args: []string{"diff-tree", "-r", "-z", "--no-renames", "--raw", "--no-abbrev", base.tree, st.tree}, Limit: maxRaw})
	if err != nil {
		return nil, err
	}
	for _, r := range parseRaw(out) {
		if r.mode != gitlink {
			continue
		}
		if len(notes) == maxNamed {
			return append(notes, "… and further repositories below"), nil
		}
		notes = append(notes, fmt.Sprintf("%s is a repository of its own: the branch names its commit %.12s and does not have it; push it from there, or others cannot check it out", r.path, r.id))
	}
	return notes, nil
}

// gather makes the commit of a state and keeps it under a ref of the shelf.
func (o *one) gather(ctx context.Context, st State, ref string) (string, error) {
	head := st.head.Commit
	if head == "" {
		head = o.th.Files.Commit
	}
	under, err := o.treeOf(ctx, head)
	if err != nil {
		return "", err
	}
	if under != st.tree {
		// What an earlier call made stays, so that a branch that has it moves forward.
		if made, err := o.line(ctx, "rev-parse", "--verify", "-q", ref+"^{commit}"); err == nil && made != head {
			if _, err := o.line(ctx, "merge-base", "--is-ancestor", head, made); head == "" || err == nil {
				if tree, err := o.treeOf(ctx, made); err != nil || tree == st.tree {
					return made, err
				}
				return o.userCommit(ctx, st.tree, Title(o.th)+"\n", true, ref, made)
			}
		}
	}
	if carried := o.th.Files.Carried; carried != "" && head == o.th.Files.Commit && st.tree != under {
		// What the user had not committed is a commit of its own, so that the agent's is only
		// the agent's.
		tree, err := o.treeOf(ctx, carried)
		if err != nil {
			return "", err
		}
		if tree != under {
			if head, err = o.userCommit(ctx, tree, "Uncommitted changes that were taken along\n", false, ref, head); err != nil {
				return "", err
			}
			under = tree
		}
	}
	if under == st.tree {
		return head, o.keep(ctx, State{Commit: head}, ref)
	}
	return o.userCommit(ctx, st.tree, Title(o.th)+"\n", true, ref, head)
}

func (o *one) treeOf(ctx context.Context, commit string) (string, error) {
	if commit == "" {
		return "", nil
	}
	return o.line(ctx, "rev-parse", "--verify", "-q", commit+"^{tree}")
}

// userCommit makes a commit by the user and keeps it.
func (o *one) userCommit(ctx context.Context, tree, message string, agent bool, ref, parent string) (string, error) {
	env, err := o.author(ctx)
	if err != nil {
		return "", err
	}
	if agent && o.cfg.CoAuthor != "" {
		message += "\nCo-authored-by: " + o.cfg.CoAuthor + "\n"
	}
	var parents []string
	if parent != "" {
		parents = []string{parent}
	}
	id, err := o.commit(ctx, tree, message, env, parents...)
	if err != nil {
		return "", err
	}
	return id, o.keep(ctx, State{Commit: id}, ref)
}

// Title is a thread's name as the first line of a message.
func Title(th fold.Thread) string {
	text := strings.Join(strings.Fields(th.Name), " ")
	if text == "" {
		text = strings.Join(strings.Fields(th.Preview), " ")
	}
	if r := []rune(text); len(r) > maxTitle {
		text = strings.TrimSpace(string(r[:maxTitle-1])) + "…"
	}
	if text == "" || strings.HasPrefix(text, "#") {
		text = "Work of thread " + string(th.ID)
	}
	return text
}

const maxTitle = 72

// threadName is what a thread is called where others stand next to it.
func threadName(th fold.Thread) string { return fmt.Sprintf("thread %q", Title(th)) }

var notInBranch = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^a-z0-9]+`) })

// BranchOf is the branch of a thread, also of one that has none of its own.
func BranchOf(th fold.Thread) string {
	if th.Files.Branch != "" {
		return th.Files.Branch
	}
	name := strings.Trim(notInBranch().ReplaceAllString(strings.ToLower(Title(th)), "-"), "-")
	if len(name) > 40 {
		name = strings.Trim(name[:40], "-")
	}
	if name == "" {
		name = string(th.ID)
	}
	return "thole/" + name
}

// source is the local repository that the thread's files came from, nil for none.
func (o *one) source() *userRepo {
	if o.user != nil || !filepath.IsAbs(o.th.Files.Repo) {
		return o.user
	}
	r, err := findRepository(o.th.Files.Repo)
	if err != nil {
		return nil
	}
	return r
}

// author is the user in the environment of git commit-tree: as the configuration says in
// the source repository.
func (o *one) author(ctx context.Context) (map[string]string, error) {
	env := o.identity()
	var said map[string]string
	if repo := o.source(); repo != nil {
		var err error
		if said, err = repo.settings(ctx, o.cfg.Git); err != nil {
			return nil, err
		}
	} else {
		said = theUser(o.cfg.Git).Settings(ctx)
	}
	for key, names := range map[string][]string{"user.name": {"GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"}, "user.email": {"GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"}} {
		value := said[key]
		if u, err := user.Current(); value == "" && err == nil {
			value = map[string]string{"user.name": u.Username, "user.email": u.Username + "@localhost"}[key]
		}
		if value = strings.Map(printable, value); value != "" {
			for _, name := range names {
				env[name] = value
			}
		}
	}
	return env, nil
}

func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return -1
	}
	return r
}

// theUser is the server's own user.
func theUser(g *git.Runner) git.User {
	home, _ := os.UserHomeDir() // without one nothing is known of the user
	return git.User{Git: g, Home: home}
}

// remote is where the thread's branch goes when it is pushed: the repository that its
// files came from, or the main remote of a local one.
func (o *one) remote(ctx context.Context) (string, error) {
	repo := o.source()
	if repo == nil {
		if filepath.IsAbs(o.th.Files.Repo) {
			return "", nil
		}
		return o.th.Files.Repo, nil
	}
	all, err := repo.values(ctx, o.cfg.Git, `^remote\..*\.(url|pushurl)$`)
	name := git.MainRemote(all)
	url := all["remote."+name+".pushurl"]
	if url == "" {
		url = all["remote."+name+".url"]
	}
	if err != nil || url == "" {
		return "", err
	}
	if CheckRemote(url) != nil {
		return url, nil //nolint:nilerr // refused when it is pushed to
	}
	if git.Transport(url) == "" && !filepath.IsAbs(url) && !strings.HasPrefix(url, "file://") {
		url = filepath.Join(repo.Top, url)
	}
	return url, nil
}

// CheckRemote refuses an address that is a program or an option.
func CheckRemote(url string) error {
	scheme, _, has := strings.Cut(url, "://")
	switch {
	case strings.HasPrefix(url, "-"), strings.ContainsFunc(url, func(r rune) bool { return r <= ' ' || r == 0x7f }):
	case has && scheme != "file" && git.Transport(url) == "":
	case !has && strings.Contains(url, "::"):
	default:
		return nil
	}
	return thole.Errorf(thole.CodeInvalid, "%q is not an address that is pushed to", url).WithHint("use a path or an address that begins with https:, ssh: or file:, or HOST:PATH")
}

// Push pushes a thread's branch as the server's own user, who is asked nothing.
func (s *Shelf) Push(ctx context.Context, th fold.Thread, dir string, remote string, force bool) (Work, string, error) {
	w, err := s.Prepare(ctx, th, dir, "")
	if err != nil {
		return w, "", err
	}
	if remote != "" {
		w.Remote = remote
	}
	if w.Remote == "" {
		return w, "", errNoRemote()
	}
	if err := CheckRemote(w.Remote); err != nil {
		return w, "", err
	}
	if git.Transport(w.Remote) == "" {
		return w, "", thole.Errorf(thole.CodeUnsupported, "%s is not reached over https or ssh", w.Remote).WithHint("thole thread push %s on the command line pushes there", th.ID)
	}
	token, err := s.token(ctx, th, w.Remote)
	if err != nil {
		return w, "", err
	}
	out, err := s.cfg.Git.Remote(ctx, git.Cmd{Dir: w.Dir, Args: PushArgs(w, force), Config: git.Credential(w.Remote, token)})
	var failed *git.Error
	if errors.As(err, &failed) {
		err = thole.Errorf(thole.CodeUnavailable, "push to %s: %s", w.Remote, strings.TrimSpace(failed.Stderr)).
			WithHint("try thole thread push %s on the command line, where git can ask", th.ID)
	}
	return w, string(out), err
}

// token is what a person keeps for the server of an address, "" for nothing.
func (s *Shelf) token(ctx context.Context, th fold.Thread, remote string) (string, error) {
	host := git.Host(remote)
	if host == "" || s.cfg.Token == nil {
		return "", nil
	}
	return s.cfg.Token(ctx, th.Owner, host)
}

func errNoRemote() error {
	return thole.Errorf(thole.CodeInvalid, "the thread's files came from no repository with a remote").WithHint("name one with --remote URL")
}

// PushArgs are the arguments of git, in the shelf, that push a thread's branch.
func PushArgs(w Work, force bool) []string {
	spec := w.Commit + ":refs/heads/" + w.Branch
	if force {
		spec = "+" + spec
	}
	return []string{"push", "--no-verify", "--no-recurse-submodules", "--", w.Remote, spec}
}
