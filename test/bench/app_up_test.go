//go:build linux

package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/tholetest"
	"github.com/tholehq/thole/protocol/app"
)

// startUp starts the real `thole up` without any agent on a home and returns when
// its socket is there.
func startUp(t testing.TB, home string) (addr string, cmd *exec.Cmd) {
	t.Helper()
	sock := daemon.Socket(home)
	_ = os.Remove(sock) // of a server that was killed
	cmd = exec.Command(lab.Thole(t), "up", "--no-browser", "--listen", "127.0.0.1:0", "--home", home)
	cmd.Env = []string{"HOME=" + home, "PATH=/usr/bin:/bin"}
	cmd.Dir = home
	begin(t, cmd)
	appears(t, sock)
	return "unix://" + sock, cmd
}

// shortDir is a directory whose path leaves room for a socket's name.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func hello(t testing.TB, addr string) *appclient.Client {
	t.Helper()
	c, err := appclient.Dial(bg(t), addr, appclient.Options{Name: "bench", Experimental: true})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestUpFootprint starts both servers, each to its answer to initialize, and looks
// at what they keep resident when nobody is there any more.
func TestUpFootprint(t *testing.T) {
	lab.Codex(t)
	lab.Thole(t) // before anything is timed
	model := codexHome(t)
	const idle = time.Second
	measure := func(start func() (string, *exec.Cmd), ms, mib *[]float64) func() float64 {
		return func() float64 {
			from := time.Now()
			addr, cmd := start()
			hello(t, addr).Close()
			took := float64(time.Since(from).Microseconds()) / 1e3
			time.Sleep(idle) // what is measured is idleness
			*mib = append(*mib, residentMiB(t, cmd.Process.Pid))
			finish(cmd)
			*ms = append(*ms, took)
			return took
		}
	}
	var ms, mib, theirMS, theirMiB []float64
	Case{
		Name: "up: start to ready", Unit: "ms", Peer: "codex app-server " + lab.CodexVersion, Promise: 1, Loose: 4,
		Ours:   measure(func() (string, *exec.Cmd) { return startUp(t, shortDir(t)) }, &ms, &mib),
		Theirs: measure(func() (string, *exec.Cmd) { return startCodex(t, model) }, &theirMS, &theirMiB),
		Note:   "From exec to the answer to initialize. Ours makes the home and its database each time and serves the web page; the peer has its home already.",
	}.Run(t)
	next := func(all []float64) func() float64 {
		i := -1
		return func() float64 { i = (i + 1) % len(all); return all[i] }
	}
	Case{
		Name: "up: idle memory", Unit: "MiB", Peer: "codex app-server " + lab.CodexVersion, Promise: 0.4, Loose: 1,
		Ours: next(mib), Theirs: next(theirMiB), Note: "Resident set of the same processes, a second after their only client left. More than half of ours are pages of the program's file, as with the exec-server.",
	}.Run(t)
}

// TestResumeMemory measures what the first page of a long thread costs a server
// that has just started.
func TestResumeMemory(t *testing.T) {
	lab.Codex(t)
	items := 200
	if Long() {
		items = 10_000
	}
	home := shortDir(t)
	model, thread := longCodex(t, items)
	rig := tholetest.New(t, tholetest.Home(home))
	ours := newSide(t, rig.Listen("unix://"+filepath.Join(home, "r.sock"), ""), 0)
	ours.fill(items)
	ours.c.Close()
	rig.Stop()
	grow := func(thread string, start func() (string, *exec.Cmd)) func() float64 {
		return func() float64 {
			addr, cmd := start()
			defer finish(cmd)
			c := hello(t, addr)
			defer c.Close()
			time.Sleep(time.Second) // let it finish its start, which is not what is measured
			before := residentMiB(t, cmd.Process.Pid)
			firstPage(t, c, thread)
			return max(0.01, residentMiB(t, cmd.Process.Pid)-before)
		}
	}
	Case{
		Name: "App server: memory growth by the resume of a long thread", Unit: "MiB", Peer: "codex app-server " + lab.CodexVersion,
		Promise: 0.2, Loose: 5,
		Ours:   grow(ours.thread, func() (string, *exec.Cmd) { return startUp(t, home) }),
		Theirs: grow(thread, func() (string, *exec.Cmd) { return startCodex(t, model) }),
		Note:   "Resident set of a fresh process before and after thread/resume with excludeTurns and thread/items/list of 100 items, on a thread of 10,000 items in the long form. " + copiesNote,
	}.Run(t)
}

const copiesNote = "All but one of the peer's turns are copies in its own record, without what the model would be sent: to make them it would send each to the model with every call."

// firstPage does what a client does that opens a thread.
func firstPage(t testing.TB, c *appclient.Client, thread string) {
	t.Helper()
	limit, desc := 100, "desc"
	r, err := c.Resume(bg(t), app.ThreadResumeParams{ThreadID: thread, ExcludeTurns: true})
	if err != nil {
		t.Fatal(err)
	}
	page, err := c.Items(bg(t), app.ItemsListParams{ThreadID: thread, PageParams: app.PageParams{Limit: &limit, SortDirection: &desc, Cursor: r.ItemsBackwardsCursor}})
	if err != nil || len(page.Data) != limit {
		t.Fatalf("%d items: %v", len(page.Data), err)
	}
}
