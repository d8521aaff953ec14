package system

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/daemon/changes"
	"github.com/tholehq/thole/internal/depot"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/testprovider"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/source"
	"github.com/tholehq/thole/internal/source/branch"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/internal/thread"
)

// branchRig runs turns of threads that come from a repository.
type branchRig struct {
	t        *testing.T
	db       *store.DB
	machine  *thread.Machine
	driver   *local.Driver
	d        *dispatch.Dispatcher
	branches *branch.Branches
	changed  *changes.Service
	home     string
	token    string // that a person keeps for every server
	files    *depot.Depot
}

func (r *branchRig) kept(context.Context, thole.Owner, string) (string, error) { return r.token, nil }

func newBranchRig(t *testing.T, bwrap string, more ...func(*config.Config)) *branchRig {
	t.Helper()
	ctx := context.Background()
	home, err := os.MkdirTemp("", "br") // short: it holds sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	r := &branchRig{t: t}
	if r.db, err = storetest.OpenAt(ctx, sqldb.Config{Path: filepath.Join(home, "db")}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.db.Close() })
	cfg := config.Default()
	cfg.Home, r.home = home, home
	for _, set := range more {
		set(&cfg)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	runner := newGit(lab.Thole(t), func(context.Context) (string, error) { return bwrap, nil })
	r.branches = newBranches(&cfg, r.db, runner, r.kept, log)
	states := newShelf(&cfg, runner, r.kept, log)
	open := &System{}
	ws, _, err := open.openFiles(&cfg, r.db, lab.Thole(t), r.branches, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { open.Close() })
	r.files = ws
	if r.machine, err = thread.New(thread.Config{Store: r.db.Threads()}); err != nil {
		t.Fatal(err)
	}
	r.driver = local.New(local.Config{Root: filepath.Join(home, "x"), Home: home, Binary: lab.Thole(t), Bwrap: bwrap})
	r.d = dispatch.New(dispatch.Config{
		Owner: t.Name(), Queue: r.db.Queue(), Threads: r.machine, Rows: r.db.Executors(), Driver: r.driver, Workspaces: ws, Changes: states, Credentials: noLogin{},
		Info:   func(ctx context.Context, _ string) provider.Info { return testprovider.New().Probe(ctx) },
		Limits: queue.Limits{Total: 4}, StartsPerSec: 100, SweepEvery: time.Hour, IdleStop: time.Nanosecond, RemoveAfter: time.Nanosecond, Log: log,
	})
	r.changed = newChanges(&cfg, states, r.machine, r.db, r.driver, ws, r.kept, nil, log)
	r.machine.Attach(r.d)
	if err := r.machine.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := r.d.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.d.Stop(ctx)
		r.machine.Close(ctx)
		list, _ := r.driver.List(ctx)
		for _, info := range list {
			r.driver.Remove(ctx, info.ID)
		}
	})
	return r
}

// thread starts a thread from what is asked for.
func (r *branchRig) thread(q source.Request) fold.Thread {
	r.t.Helper()
	id := thole.NewID[thole.ThreadID](time.Now())
	q.Kind, q.Local, q.Actor = thole.SourceBranch, true, thole.LocalActor
	from, err := r.branches.Resolve(r.t.Context(), id, q)
	if err != nil {
		r.t.Fatal(err)
	}
	th, err := r.machine.Create(r.t.Context(), thole.LocalActor, thread.Create{ID: id, Owner: thole.DefaultOwner, Files: from, Settings: event.Settings{Provider: "test", Profile: thole.ProfileFull}})
	if err != nil {
		r.t.Fatal(err)
	}
	return th
}

// run has the agent run a command and returns what that wrote.
func (r *branchRig) run(id thole.ThreadID, command string) (string, fold.Turn) {
	r.t.Helper()
	ctx := r.t.Context()
	turn, err := r.machine.StartTurn(ctx, thole.LocalActor, thread.StartTurn{Thread: id, Input: thole.Text("sim: run " + command)})
	if err != nil {
		r.t.Fatal(err)
	}
	var got fold.Turn
	poll.Until(r.t, "the turn", func() bool {
		got, err = r.machine.Turn(ctx, thole.LocalActor, id, turn.ID)
		return err == nil && got.Phase.Terminal()
	})
	page, err := r.machine.Items(ctx, thole.LocalActor, id, turn.ID, thread.PageParams{Limit: 100})
	if err != nil {
		r.t.Fatal(err)
	}
	var said strings.Builder
	for _, it := range page.Items {
		if it.Item.Command != nil {
			said.WriteString(it.Item.Command.Output)
		}
	}
	return said.String(), got
}

// remove has the thread's executor stored, stopped and removed.
func (r *branchRig) remove(id thole.ThreadID) {
	r.t.Helper()
	ctx := r.t.Context()
	row, err := r.db.Executors().OfThread(ctx, id)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.d.Close(ctx, id); err != nil {
		r.t.Fatal(err)
	}
	poll.Until(r.t, "the executor's end", func() bool {
		if err := r.d.Sweep(ctx); err != nil {
			r.t.Fatal(err)
		}
		got, err := r.db.Executors().Get(ctx, row.ID)
		return err == nil && got.State == executor.RowDeleted
	})
}

func userGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command(lab.Git(t), args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// A thread on a branch finds a clean copy of the repository, works in it, goes on in
// another executor with what it committed, and says so when the repository is gone.
func TestAThreadWorksOnABranch(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		t.Run("bubblewrap", func(t *testing.T) { worksOnABranch(t, lab.Bwrap(t)) })
		t.Run("plain", func(t *testing.T) { worksOnABranch(t, "") })
	})
}

func worksOnABranch(t *testing.T, bwrap string) {
	r := newBranchRig(t, bwrap)
	repo := filepath.Join(t.TempDir(), "repo")
	if err := os.Mkdir(repo, 0o755); err != nil {
		t.Fatal(err)
	}
	userGit(t, repo, "init", "-q", "-b", "main")
	userGit(t, repo, "config", "user.name", "Ada")
	userGit(t, repo, "config", "user.email", "ada@example.com")
	for name, text := range map[string]string{"a.txt": "one\n", "b.txt": "two\n"} {
		if err := os.WriteFile(filepath.Join(repo, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	userGit(t, repo, "add", "-A")
	userGit(t, repo, "commit", "-qm", "first")
	if err := os.WriteFile(filepath.Join(repo, "b.txt"), []byte("changed\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	th := r.thread(source.Request{Repo: repo, Name: "change-a"})
	said, turn := r.run(th.ID, "git status --porcelain --branch; cat a.txt b.txt; git log --format=%s")
	if said != "## thole/change-a\none\ntwo\nfirst\n" {
		t.Fatalf("the agent sees %q, %+v", said, turn)
	}
	if said, _ := r.run(th.ID, "echo agent >> a.txt && git commit -qam second && echo new > c.txt && git log -1 --format=%an"); said != "Ada\n" {
		t.Errorf("the commit is by %q", said)
	}
	if said, _ := r.run(th.ID, "touch "+filepath.Join(repo, ".git/objects/x")+" 2>/dev/null && echo written || echo refused"); bwrap != "" && said != "refused\n" {
		t.Errorf("shared objects: %q", said)
	}
	r.remove(th.ID)
	userGit(t, repo, "gc", "-q", "--prune=now")
	if said, _ := r.run(th.ID, "git status --porcelain; git log --format=%s; cat a.txt; git fsck 2>&1"); said != "?? c.txt\nsecond\nfirst\none\nagent\n" {
		t.Fatalf("in the next executor: %q", said)
	}
	if bwrap == "" {
		return // without walls nothing is mounted that could be missing
	}
	// Uncommitted files come along and stay uncommitted.
	dirty := r.thread(source.Request{Repo: repo, Dirty: true})
	if said, _ := r.run(dirty.ID, "git status --porcelain; cat b.txt"); said != " M b.txt\nchanged\n" {
		t.Errorf("with uncommitted files: %q", said)
	}
	r.remove(th.ID)
	if err := os.Rename(repo, repo+".away"); err != nil {
		t.Fatal(err)
	}
	if _, turn := r.run(th.ID, "git status"); turn.Outcome != thole.OutcomeFailed || !strings.Contains(turn.Error.Message, "share git objects with "+repo) {
		t.Errorf("without the repository: %+v", turn)
	}
}
