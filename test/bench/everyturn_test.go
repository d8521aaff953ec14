//go:build linux

package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/git"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/ownconfig"
	"github.com/tholehq/thole/internal/shelf"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/tholetest"
)

// TestCheckpoint measures what is kept of the files after a turn that changed some of many,
// against what git alone needs to make a tree of them.
func TestCheckpoint(t *testing.T) {
	n, size := 5_000, 2_000
	if Long() {
		n, size = 50_000, 4_000
	}
	ctx := context.Background()
	repo, ours, theirs := bigRepo(t, n, size), filepath.Join(t.TempDir(), "ours"), filepath.Join(t.TempDir(), "theirs")
	for _, files := range []string{ours, theirs} {
		gitRun(t, t.TempDir(), "clone", "-q", "--shared", repo, files)
	}
	head, err := exec.Command(lab.Git(t), "-C", repo, "rev-parse", "HEAD").Output()
	must(t, err)
	th := fold.Thread{ID: thole.NewID[thole.ThreadID](time.Now()), Files: thole.Source{
		Kind: thole.SourceBranch, Repo: repo, Commit: string(head[:40]), Branch: "thole/bench", Objects: []string{filepath.Join(repo, ".git", "objects")}}}
	bwrap := lab.Bwrap(t)
	s := shelf.New(shelf.Config{Dir: t.TempDir(), Git: &git.Runner{Program: lab.Git(t), Self: lab.Thole(t), Box: func(context.Context) (string, error) { return bwrap, nil }}})
	change := func(files string, turn int) time.Time {
		for i := range 20 {
			must(t, os.WriteFile(filepath.Join(files, fmt.Sprintf("d%02d/e%d/file-%05d", i%20, i%70, i)), fmt.Appendf(nil, "changed by turn %d\n", turn), 0o644))
		}
		return time.Now()
	}
	after := func() float64 {
		th.Turns++
		start := change(ours, th.Turns)
		must(t, s.After(ctx, th, th.Turns, ours))
		return time.Since(start).Seconds()
	}
	bare := 0
	tree := func() float64 {
		bare++
		start := change(theirs, bare)
		gitRun(t, theirs, "add", "-A")
		gitRun(t, theirs, "write-tree")
		return time.Since(start).Seconds()
	}
	after() // the first one has no index to begin with
	tree()
	Case{
		Name: "Checkpoint after a turn", Unit: "s", Peer: "git add -A, git write-tree", Promise: 1.3, Loose: 12, Ours: after, Theirs: tree,
		Note: fmt.Sprintf("%d files of %d bytes, 20 of them changed. %s", n, size, checkpointCost),
	}.Run(t)
}

// checkpointCost says what ours has on top of the floor.
const checkpointCost = "Ours also packs what changed, checks it and commits it, in three boxes: one asks git for the status, one brings what changed into the index, makes the tree and lists what may be wrong in it, one packs. On a loaded machine the first takes about a third of the time, the second another, packing and checking the last."

// ownCredentials reads a user's configuration for every turn, as the server does.
type ownCredentials struct{ user ownconfig.User }

func (c ownCredentials) For(context.Context, provider.For) (provider.Grant, error) {
	mine := ownconfig.Read(c.user, "codex")
	return provider.Grant{Config: mine.Files, Env: mine.Env}, nil
}

// TestOwnConfiguration measures a turn for which a large configuration of the user is read
// against one without.
func TestOwnConfiguration(t *testing.T) {
	home := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(home, ".codex", name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o644))
	}
	var settings strings.Builder
	for i := range 10 {
		fmt.Fprintf(&settings, "[mcp_servers.s%d]\ncommand = \"server\"\nargs = [\"%d\"]\n", i, i)
	}
	write("config.toml", settings.String())
	write("AGENTS.md", strings.Repeat("Be brief and careful.\n", 400))
	for i := range 50 {
		write(fmt.Sprintf("skills/s%d/SKILL.md", i), fmt.Sprintf("---\nname: s%d\ndescription: one of many\n---\n%s", i, strings.Repeat("Do this, then that.\n", 200)))
	}
	user := ownconfig.User{Home: home}
	if got := len(ownconfig.Read(user, "codex").Files); got < 52 {
		t.Fatalf("only %d files are read", got)
	}
	turns := 10
	if Long() {
		turns = 30
	}
	// round is the median of a few turns on a warm thread.
	round := func(options ...tholetest.Option) func() float64 {
		s := newSide(t, tholetest.New(t, options...).Listen("unix://"+filepath.Join(t.TempDir(), "c.sock"), ""), 0)
		return func() float64 {
			all := make([]float64, turns)
			for i := range all {
				start := time.Now()
				s.turn("sim: say hello")
				all[i] = float64(time.Since(start).Microseconds())
			}
			slices.Sort(all)
			return all[len(all)/2]
		}
	}
	Case{
		Name: "A turn with the user's configuration read, p50", Unit: "µs", Peer: "the same turn without", Promise: 1.3, Loose: 4,
		Ours:   round(tholetest.Dispatch(func(c *dispatch.Config) { c.Credentials = ownCredentials{user} })),
		Theirs: round(),
		Note:   "52 files of 200 kB: settings with 10 MCP servers, instructions, 50 skills. turn/start to turn/completed on a warm thread with the scripted agent, which needs no time of its own. The files are read, judged and sent to the executor for each turn, and laid once for a session.",
	}.Run(t)
}
