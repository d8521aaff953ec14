package system

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/sandbox/repository"
	"github.com/tholehq/thole/internal/source"
	"github.com/tholehq/thole/internal/source/here"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/thread"
)

// in starts a thread that works in a directory.
func (r *branchRig) in(dir string) fold.Thread {
	r.t.Helper()
	id := thole.NewID[thole.ThreadID](time.Now())
	resolver := here.Resolver{Check: func(dir string) (repository.Place, error) { return local.CheckHere(dir, "/nonexistent") }}
	from, err := resolver.Resolve(r.t.Context(), id, source.Request{Kind: thole.SourceHere, Dir: dir, Local: true, Actor: thole.LocalActor})
	if err != nil {
		r.t.Fatal(err)
	}
	th, err := r.machine.Create(r.t.Context(), thole.LocalActor, thread.Create{ID: id, Owner: thole.DefaultOwner, Files: from, Settings: event.Settings{Provider: "test", Profile: thole.ProfileFull}})
	if err != nil {
		r.t.Fatal(err)
	}
	return th
}

// Threads that work in a directory of the user share it, keep their conversations when
// their executors are removed, store nothing of the directory, and say so when it is gone.
func TestThreadsWorkHere(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		t.Run("bubblewrap", func(t *testing.T) { worksHere(t, lab.Bwrap(t)) })
		t.Run("plain", func(t *testing.T) { worksHere(t, "") })
	})
}

func worksHere(t *testing.T, bwrap string) {
	r := newBranchRig(t, bwrap)
	dir, err := filepath.EvalSymlinks(lab.Open(t))
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "project")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	userGit(t, dir, "init", "-q", "-b", "main")
	userGit(t, dir, "commit", "-q", "--allow-empty", "-m", "first")
	th, other := r.in(dir), r.in(dir)
	const data = "/home/agent/.agent_data/test" // in the box
	if said, turn := r.run(th.ID, "pwd; echo one > made; git status --short"); said != dir+"\n?? made\n" {
		t.Fatalf("the agent sees %q, %+v", said, turn)
	}
	if said, _ := r.run(other.ID, "cat made; echo two >> made"); said != "one\n" {
		t.Errorf("another thread sees %q", said)
	}
	if bwrap != "" {
		r.run(th.ID, "mkdir -p "+data+" && echo said > "+data+"/kept")
	}
	snap, _, err := r.db.Workspaces().Head(t.Context(), th.ID)
	if err != nil || bwrap != "" && snap.Files == 0 {
		t.Errorf("the conversations are not stored: %+v, %v", snap, err)
	}
	if snap.Bytes > 10_000 {
		t.Errorf("more is stored than the conversations: %+v", snap)
	}
	r.remove(th.ID)
	if text, err := os.ReadFile(filepath.Join(dir, "made")); err != nil || string(text) != "one\ntwo\n" {
		t.Errorf("after the removal the file is %q, %v", text, err)
	}
	if bwrap != "" {
		if said, _ := r.run(th.ID, "cat made "+data+"/kept; ls -A"); said != "one\ntwo\nsaid\n.git\nmade\n" {
			t.Errorf("in another executor the agent sees %q", said)
		}
	}
	if names := userGit(t, dir, "status", "--porcelain", "--ignored"); names != "?? made" {
		t.Errorf("the directory has %q", names)
	}

	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	for what, do := range map[string]func() error{"is gone": func() error { return nil }, "was replaced": func() error { return os.Mkdir(dir, 0o755) }} {
		if what == "was replaced" && bwrap == "" {
			continue // there is no executor that would remember
		}
		if err := do(); err != nil {
			t.Fatal(err)
		}
		said, turn := r.run(th.ID, "echo ran")
		if said != "" || turn.Error == nil || !strings.Contains(turn.Error.Message, what) || turn.Error.Hint == "" {
			t.Errorf("%s: %q, %+v", what, said, turn.Error)
		}
		_ = os.Remove(dir)
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	if said, turn := r.run(th.ID, "cat made"); said != "one\ntwo\n" {
		t.Errorf("it is back: %q, %+v", said, turn.Error)
	}
	if got, err := os.ReadDir(dir); err != nil || !slices.ContainsFunc(got, func(e os.DirEntry) bool { return e.Name() == "made" }) {
		t.Errorf("the directory: %v, %v", got, err)
	}
}
