package system

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/source"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/internal/thread"
)

// ended waits for a turn's end and returns what it says.
func (r *branchRig) ended(id thole.ThreadID, turn thole.TurnID) (fold.Turn, string) {
	r.t.Helper()
	var got fold.Turn
	poll.Until(r.t, "the turn", func() (done bool) {
		var err error
		got, err = r.machine.Turn(r.t.Context(), thole.LocalActor, id, turn)
		return err == nil && got.Phase.Terminal()
	})
	page, err := r.machine.Items(r.t.Context(), thole.LocalActor, id, turn, thread.PageParams{Limit: 100})
	if err != nil {
		r.t.Fatal(err)
	}
	var said strings.Builder
	for _, it := range page.Items {
		said.WriteString(it.Item.Text)
	}
	return got, said.String()
}

func (r *branchRig) diff(id thole.ThreadID, turn int) []string {
	r.t.Helper()
	c, err := r.changed.Diff(r.t.Context(), thole.LocalActor, id, httpapi.ChangesQuery{Turn: turn})
	if err != nil {
		r.t.Fatal(err)
	}
	var out []string
	for _, f := range c.Files {
		out = append(out, f.Kind+" "+f.Path)
	}
	return out
}

// What turns do to a copy of a repository is shown while they run and after, applied,
// pulled and taken back, with and without an executor.
func TestChangesOfABranch(t *testing.T) {
	r := newBranchRig(t, lab.Bwrap(t))
	repo := filepath.Join(lab.Open(t), "repo")
	if err := os.Mkdir(repo, 0o755); err != nil {
		t.Fatal(err)
	}
	userGit(t, repo, "init", "-q", "-b", "main")
	for name, text := range map[string]string{"a.txt": "one\n", "b.txt": "two\n"} {
		if err := os.WriteFile(filepath.Join(repo, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	userGit(t, repo, "add", "-A")
	userGit(t, repo, "commit", "-q", "-m", "first")
	ctx := t.Context()
	th := r.thread(source.Request{Repo: repo, Name: "change-things"})
	if got := r.diff(th.ID, 0); len(got) != 0 {
		t.Errorf("before the first turn: %q", got)
	}
	if said, turn := r.run(th.ID, "echo changed > a.txt && git commit -qam changed && echo new > new.txt"); turn.Outcome != thole.OutcomeCompleted {
		t.Fatalf("%s: %+v", said, turn)
	}
	if said, turn := r.run(th.ID, "rm b.txt"); turn.Outcome != thole.OutcomeCompleted {
		t.Fatalf("%s: %+v", said, turn)
	}
	want := map[int]string{0: "modified a.txt,deleted b.txt,added new.txt", 1: "modified a.txt,added new.txt", 2: "deleted b.txt"}
	for turn, want := range want {
		if got := strings.Join(r.diff(th.ID, turn), ","); got != want {
			t.Errorf("turn %d: %s, want %s", turn, got, want)
		}
	}
	turn, err := r.machine.StartTurn(ctx, thole.LocalActor, thread.StartTurn{Thread: th.ID, Input: thole.Text("sim: run echo live > live.txt ;; ask Which? | red | blue")})
	if err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "the question", func() bool {
		got, err := r.machine.Turn(ctx, thole.LocalActor, th.ID, turn.ID)
		return err == nil && got.Phase == thole.PhaseWaitingHuman
	})
	if got := strings.Join(r.diff(th.ID, 3), ","); got != "added live.txt" {
		t.Errorf("while it runs: %s", got)
	}
	for what, err := range map[string]error{
		"apply": second(r.changed.Apply(ctx, thole.LocalActor, th.ID, false)), "pull": second(r.changed.Pull(ctx, thole.LocalActor, th.ID, false)),
		"merge": second(r.changed.Merge(ctx, thole.LocalActor, th.ID)), "push": second(r.changed.Push(ctx, thole.LocalActor, th.ID, "", false)), "undo": second(r.changed.Undo(ctx, thole.LocalActor, th.ID, 1)),
	} {
		if thole.CodeOf(err) != thole.CodeBusy || thole.HintOf(err) == "" {
			t.Errorf("%s while a turn runs: %v", what, err)
		}
	}
	if err := r.machine.Interrupt(ctx, thole.LocalActor, th.ID, turn.ID); err != nil {
		t.Fatal(err)
	}
	r.ended(th.ID, turn.ID)

	// An export has links, modes and a repository that is whole, and nothing that runs.
	r.run(th.ID, "ln -s ../../etc/passwd link; printf '#!/bin/sh\\n' > run.sh; chmod 755 run.sh; git config core.fsmonitor 'touch ran'; printf '#!/bin/sh\\ntouch ran\\n' > .git/hooks/post-index-change; chmod 755 .git/hooks/post-index-change")
	out := filepath.Join(t.TempDir(), "out")
	if _, x, err := r.files.ExportDir(ctx, th.ID, out, false); err != nil || x.Links != 1 || len(x.Stripped) == 0 {
		t.Errorf("%+v, %v", x, err)
	}
	if to, err := os.Readlink(filepath.Join(out, "link")); err != nil || to != "../../etc/passwd" {
		t.Error(to, err)
	}
	if st, err := os.Stat(filepath.Join(out, "run.sh")); err != nil || st.Mode().Perm() != 0o755 {
		t.Error(st, err)
	}
	if got := userGit(t, out, "-c", "safe.directory=*", "status", "--porcelain"); got != "D b.txt\n?? link\n?? live.txt\n?? new.txt\n?? run.sh" {
		t.Errorf("status of the export: %s", got)
	}
	r.run(th.ID, "rm link run.sh; git config --unset core.fsmonitor; rm .git/hooks/post-index-change")

	// Without an executor it is what the last turn left.
	r.remove(th.ID)
	var patch bytes.Buffer
	if err := r.changed.Patch(ctx, thole.LocalActor, th.ID, httpapi.ChangesQuery{Context: 3}, &patch); err != nil || strings.Count(patch.String(), "diff --git") != 4 {
		t.Errorf("%s, %v", patch.String(), err)
	}
	if a, err := r.changed.Apply(ctx, thole.LocalActor, th.ID, false); err != nil || !a.Done || a.Total != 4 || a.Dir != repo {
		t.Errorf("%+v, %v", a, err)
	}
	if got := userGit(t, repo, "status", "--porcelain"); got != "M a.txt\n D b.txt\n?? live.txt\n?? new.txt" {
		t.Errorf("%s", got)
	}
	p, err := r.changed.Pull(ctx, thole.LocalActor, th.ID, false)
	if err != nil || p.Branch != th.Files.Branch || p.Commits != 2 {
		t.Errorf("%+v, %v", p, err)
	}

	// An undo is a turn: it makes an executor, and the agent hears of it.
	u, err := r.changed.Undo(ctx, thole.LocalActor, th.ID, 2)
	if err != nil {
		t.Fatal(err)
	}
	got, said := r.ended(th.ID, thole.TurnID(u.RunID))
	if got.Outcome != thole.OutcomeCompleted || u.Turn != 2 || u.Number != 6 || !strings.Contains(said, "before turn 2: 2 files changed") {
		t.Fatalf("%+v %q %+v", u, said, got)
	}
	if got := strings.Join(r.diff(th.ID, 0), ","); got != want[1] {
		t.Errorf("after the undo: %s", got)
	}
	if said, _ := r.run(th.ID, "cat b.txt; git log --format=%s -1; ls"); said != "two\nchanged\na.txt\nb.txt\nnew.txt\n" {
		t.Errorf("the agent finds %q", said)
	}
}

func second[T any](_ T, err error) error { return err }

// A thread in the user's own directory shows and takes back what its turns did there, and
// keeps its shelf small.
func TestChangesHere(t *testing.T) {
	r := newBranchRig(t, lab.Bwrap(t))
	dir := filepath.Join(lab.Open(t), "project")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	userGit(t, dir, "init", "-q", "-b", "main")
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	userGit(t, dir, "add", "-A")
	userGit(t, dir, "commit", "-q", "-m", "first")
	th := r.in(dir)
	r.run(th.ID, "echo changed > a.txt; git commit -qam changed; echo new > new.txt")
	if got := strings.Join(r.diff(th.ID, 1), ","); got != "modified a.txt,added new.txt" {
		t.Errorf("%s", got)
	}
	if _, err := r.changed.Apply(t.Context(), thole.LocalActor, th.ID, false); thole.CodeOf(err) != thole.CodeConflict {
		t.Errorf("%v", err)
	}
	c, err := r.changed.Diff(t.Context(), thole.LocalActor, th.ID, httpapi.ChangesQuery{})
	if err != nil || !c.InPlace || c.Repo != "" {
		t.Errorf("%+v, %v", c, err)
	}
	u, err := r.changed.Undo(t.Context(), thole.LocalActor, th.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got, said := r.ended(th.ID, thole.TurnID(u.RunID)); got.Outcome != thole.OutcomeCompleted {
		t.Fatalf("%s %+v", said, got)
	}
	if got := userGit(t, dir, "status", "--porcelain") + userGit(t, dir, "log", "--format=%s"); got != "first" {
		t.Errorf("%s", got)
	}
	st, err := os.Stat(filepath.Join(dir, "a.txt"))
	if text, rerr := os.ReadFile(filepath.Join(dir, "a.txt")); err != nil || string(text) != "one\n" || st.Mode().Perm() != 0o644 {
		t.Errorf("%q %v %v", text, rerr, st)
	}
}
