//go:build linux

package bench

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/depot"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/git"
	"github.com/tholehq/thole/internal/objects/dir"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/testprovider"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/source"
	"github.com/tholehq/thole/internal/source/branch"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/workspace/manager"
)

// readyFiles reports when a workspace is ready for its agent. What comes after is not
// measured, so nothing is stored.
type readyFiles struct {
	*depot.Depot
	ready chan time.Time
}

func (r readyFiles) Validate(ctx context.Context, t dispatch.ExecutorWorkspace) error {
	err := r.Depot.Validate(ctx, t)
	r.ready <- time.Now()
	return err
}

func (r readyFiles) Sync(context.Context, dispatch.ExecutorWorkspace, string) (string, error) {
	return "s", nil
}

func (r readyFiles) Verify(context.Context, dispatch.ExecutorWorkspace, string) error { return nil }

// gitRun runs git as a user does.
func gitRun(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command(lab.Git(t), args...)
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// bigRepo is a repository with n files of so many bytes each, packed.
func bigRepo(t *testing.T, n, size int) string {
	t.Helper()
	repo := filepath.Join(t.TempDir(), "big")
	gitRun(t, t.TempDir(), "init", "-q", "-b", "main", repo)
	cmd := exec.Command(lab.Git(t), "fast-import", "--quiet")
	cmd.Dir = repo
	in, err := cmd.StdinPipe()
	must(t, err)
	must(t, cmd.Start())
	out := bufio.NewWriter(in)
	fmt.Fprint(out, "commit refs/heads/main\ncommitter a <a@b> 1700000000 +0000\ndata 5\nfirst\n")
	rnd := rand.NewChaCha8([32]byte{7})
	half := make([]byte, size/2)
	for i := range n {
		_, _ = rnd.Read(half)
		fmt.Fprintf(out, "M 100644 inline d%02d/e%d/file-%05d\ndata %d\n%s\n", i%20, i%70, i, 2*len(half), hex.EncodeToString(half))
	}
	must(t, out.Flush())
	must(t, in.Close())
	must(t, cmd.Wait())
	return repo
}

// TestBranchStart measures the start of a thread on a branch of a repository, from the
// request to a workspace that is ready for the agent, against a worktree of the same.
func TestBranchStart(t *testing.T) {
	n, size := 5_000, 4_000
	if Long() {
		n, size = 50_000, 20_000
	}
	ctx := context.Background()
	home, err := os.MkdirTemp("", "bb") // short: it holds sockets
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(home) })
	repo := bigRepo(t, n, size)
	db, err := store.Open(ctx, sqldb.Config{Path: filepath.Join(home, "db")})
	must(t, err)
	t.Cleanup(func() { db.Close() })
	bwrap, binary := lab.Bwrap(t), lab.Thole(t)
	branches := branch.New(branch.Config{Home: home, UserHome: t.TempDir(), Alive: db.Threads().Sources,
		Git: &git.Runner{Program: lab.Git(t), Self: binary, Box: func(context.Context) (string, error) { return bwrap, nil }}})
	var objects *dir.Store
	served := httptest.NewServer(nil)
	t.Cleanup(served.Close)
	objects, err = dir.Open(filepath.Join(home, "objects"), served.URL)
	must(t, err)
	files := readyFiles{ready: make(chan time.Time, 1), Depot: depot.New(depot.Config{
		Manager: manager.New(manager.Config{Rows: db.Workspaces(), Objects: objects}), Rows: db.Workspaces(), Objects: objects, Lay: branches.Lay,
		Check: func(context.Context) error { return nil }, Log: slog.New(slog.DiscardHandler)})}
	machine, err := thread.New(thread.Config{Store: db.Threads()})
	must(t, err)
	driver := local.New(local.Config{Root: filepath.Join(home, "x"), Home: home, Binary: binary, Bwrap: bwrap})
	d := dispatch.New(dispatch.Config{Owner: t.Name(), Queue: db.Queue(), Threads: machine, Rows: db.Executors(), Driver: driver, Workspaces: files, Credentials: noFiles{},
		Info:   func(ctx context.Context, _ string) provider.Info { return testprovider.New().Probe(ctx) },
		Limits: queue.Limits{Total: 1}, StartsPerSec: 1000, SweepEvery: time.Hour, Log: slog.New(slog.DiscardHandler)})
	machine.Attach(d)
	must(t, machine.Start(ctx))
	must(t, d.Start(ctx))
	cleared := func() {
		list, err := driver.List(ctx)
		must(t, err)
		for _, info := range list {
			must(t, driver.Remove(ctx, info.ID))
		}
	}
	t.Cleanup(func() {
		_ = d.Stop(ctx)
		_ = machine.Close(ctx)
		cleared()
	})
	ours := func() float64 {
		start, id := time.Now(), thole.NewID[thole.ThreadID](time.Now())
		from, err := branches.Resolve(ctx, id, source.Request{Kind: thole.SourceBranch, Repo: repo, Local: true, Actor: thole.LocalActor})
		must(t, err)
		_, err = machine.Create(ctx, thole.LocalActor, thread.Create{ID: id, Owner: thole.DefaultOwner, Files: from, Settings: event.Settings{Provider: "test", Profile: thole.ProfileFull}})
		must(t, err)
		turn, err := machine.StartTurn(ctx, thole.LocalActor, thread.StartTurn{Thread: id, Input: thole.Text("sim: run git status --porcelain | wc -l")})
		must(t, err)
		took := (<-files.ready).Sub(start).Seconds()
		for { // what remains of the turn is not measured
			got, err := machine.Turn(ctx, thole.LocalActor, id, turn.ID)
			must(t, err)
			if got.Phase.Terminal() {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		page, err := machine.Items(ctx, thole.LocalActor, id, turn.ID, thread.PageParams{Limit: 10})
		must(t, err)
		clean := false
		for _, it := range page.Items {
			clean = clean || it.Item.Command != nil && strings.TrimSpace(it.Item.Command.Output) == "0"
		}
		if !clean {
			t.Fatalf("the agent's workspace is not clean: %+v", page.Items)
		}
		cleared()
		return took
	}
	round := 0
	theirs := func() float64 {
		round++
		at := filepath.Join(home, fmt.Sprintf("worktree-%d", round))
		took := timed(func() { gitRun(t, repo, "worktree", "add", "-q", "--detach", at, "main") })
		must(t, os.RemoveAll(at))
		gitRun(t, repo, "worktree", "prune")
		return took
	}
	Case{Name: "Start of a thread on a branch", Unit: "s", Peer: "git worktree add", Promise: 1.5, Loose: 8, Ours: ours, Theirs: theirs,
		Note: fmt.Sprintf("A repository with %d files of %d bytes. Ours is from the request to a workspace that is ready for its agent, in a box that was not there before, with the files flushed to the disk; git flushes nothing, and writes with one worker where ours has as many as there are processors. "+
			"What a small repository costs is the start of the box; the short form has %d files and a looser bound for that.", n, size, 5_000)}.Run(t)
}
