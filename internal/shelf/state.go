package shelf

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/git"
)

// Refs of a shelf. A turn's states are refs/turns/NUMBER/before and after; without one
// before, a turn began with what the turn before it ended with.
const (
	refBase  = "refs/base"
	refNow   = "refs/now"
	refTurns = "refs/turns/"
)

func refBefore(turn int) string { return refTurns + strconv.Itoa(turn) + "/before" }
func refAfter(turn int) string  { return refTurns + strconv.Itoa(turn) + "/after" }

// Kept reports whether what a turn left is on a thread's shelf.
func (s *Shelf) Kept(id thole.ThreadID, turn int) bool {
	_, err := os.Stat(filepath.Join(s.path(id), filepath.FromSlash(refAfter(turn))))
	return err == nil
}

// State is one state of a thread's files: a checkpoint. Its commit has the files as its
// tree, and as its parent what the repository in the files was at.
type State struct {
	Commit string
	tree   string
	head   Head
}

// branchLine precedes the branch in the message of a checkpoint.
const branchLine = "Branch: "

// states are the refs of a shelf.
type states map[string]State

// states reads all of them. It is one run of git, however many there are.
func (o *one) states(ctx context.Context) (states, error) {
	out, err := o.own(ctx, git.Cmd{Args: []string{"for-each-ref", "--format=%(refname)%00%(objectname)%00%(tree)%00%(parent)%00%(contents:body)%00%01", refBase, refNow, refTurns}})
	if err != nil {
		return nil, err
	}
	all := states{}
	for record := range bytes.SplitSeq(out, []byte{1}) {
		parts := strings.Split(strings.TrimPrefix(string(record), "\n"), "\x00")
		if len(parts) != 6 {
			continue
		}
		st := State{Commit: parts[1], tree: parts[2]}
		st.head.Commit, _, _ = strings.Cut(parts[3], " ")
		lines := bufio.NewScanner(strings.NewReader(parts[4]))
		for lines.Scan() {
			if ref, ok := strings.CutPrefix(lines.Text(), branchLine); ok && validRef(ref) {
				st.head.Branch = ref
			}
		}
		if parts[0] == refBase && o.th.Files.Kind == thole.SourceBranch { // a commit of the user's, not a checkpoint
			st.head = Head{Commit: o.th.Files.Commit, Branch: "refs/heads/" + o.th.Files.Branch}
		}
		all[parts[0]] = st
	}
	return all, nil
}

// turns are the numbers of the turns whose end is known, in order.
func (s states) turns() []int {
	var out []int
	for ref := range s {
		rest, ok := strings.CutPrefix(ref, refTurns)
		number, what, _ := strings.Cut(rest, "/")
		if n, err := strconv.Atoi(number); ok && err == nil && what == "after" {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// before is the state that a turn began with.
func (s states) before(turn int) (State, bool) {
	if st, ok := s[refBefore(turn)]; ok {
		return st, true
	}
	turns := s.turns()
	for i := len(turns) - 1; i >= 0; i-- {
		if turns[i] < turn {
			return s[refAfter(turns[i])], true
		}
	}
	st, ok := s[refBase]
	return st, ok
}

// last is the newest state that was kept.
func (s states) last() (State, bool) { return s.before(int(^uint(0) >> 1)) }

// changed reports whether a turn changed files.
func (s states) changed(turn int) bool {
	before, ok := s.before(turn)
	return ok && before.tree != s[refAfter(turn)].tree
}

// keep points refs at a state, in one step.
func (o *one) keep(ctx context.Context, st State, refs ...string) error {
	var in strings.Builder
	for _, ref := range refs {
		fmt.Fprintf(&in, "update %s %s\n", ref, st.Commit)
	}
	_, err := o.own(ctx, git.Cmd{Args: []string{"update-ref", "--stdin"}, Stdin: strings.NewReader(in.String())})
	return err
}

// identity of what the server commits for itself.
func (s *Shelf) identity() map[string]string {
	at := strconv.FormatInt(s.cfg.Now().Unix(), 10) + " +0000"
	return map[string]string{
		"GIT_AUTHOR_NAME": "thole", "GIT_AUTHOR_EMAIL": "thole@localhost", "GIT_AUTHOR_DATE": at,
		"GIT_COMMITTER_NAME": "thole", "GIT_COMMITTER_EMAIL": "thole@localhost", "GIT_COMMITTER_DATE": at,
	}
}

// commit makes a commit on the shelf.
func (o *one) commit(ctx context.Context, tree, message string, env map[string]string, parents ...string) (string, error) {
	args := []string{"commit-tree", tree}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	out, err := o.own(ctx, git.Cmd{Args: args, Env: env, Stdin: strings.NewReader(message)})
	return strings.TrimSpace(string(out)), err
}

// record makes a checkpoint of a tree.
func (o *one) record(ctx context.Context, tree string, head Head) (State, error) {
	message := "Checkpoint\n"
	if head.Branch != "" {
		message += "\n" + branchLine + head.Branch + "\n"
	}
	var parents []string
	if head.Commit != "" {
		parents = []string{head.Commit}
	}
	id, err := o.commit(ctx, tree, message, o.identity(), parents...)
	return State{Commit: id, tree: tree, head: head}, err
}

// nothing is the state of no files.
func (o *one) nothing(ctx context.Context) (State, error) {
	out, err := o.own(ctx, git.Cmd{Args: []string{"mktree"}, Stdin: strings.NewReader("")})
	if err != nil {
		return State{}, err
	}
	return o.record(ctx, strings.TrimSpace(string(out)), Head{})
}
