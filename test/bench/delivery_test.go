//go:build linux

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/channel/channeltest"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/delivery/driver"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// millisOf runs a command n times and returns the median in milliseconds.
func millisOf(t *testing.T, n int, make func() *exec.Cmd) float64 {
	all := []float64{}
	for range n {
		cmd := make()
		start := time.Now()
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v: %v", cmd.Args, err)
		}
		all = append(all, float64(time.Since(start).Microseconds())/1e3)
	}
	return middle(all)
}

func samples() int {
	if Long() {
		return 60
	}
	return 10
}

// TestDeliveryCommands: what a command costs beyond starting a process.
func TestDeliveryCommands(t *testing.T) {
	bin := lab.Thole(t)
	home, err := os.MkdirTemp("", "tb")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(home)
	env := append(os.Environ(), "THOLE_HOME="+home)
	run := func(args ...string) func() *exec.Cmd {
		return func() *exec.Cmd {
			cmd := exec.Command(bin, args...)
			cmd.Env = env
			return cmd
		}
	}
	if out, err := run("job", "list")().CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	defer func() { _ = run("daemon", "stop")().Run() }()
	version := func() float64 { return millisOf(t, samples(), run("version")) }
	Case{
		Name: "Start of a command", Unit: "ms", Peer: "/bin/true", Promise: 6, Loose: 20,
		Ours:   version,
		Theirs: func() float64 { return millisOf(t, samples(), func() *exec.Cmd { return exec.Command("/bin/true") }) },
		Note:   "`thole version`, the whole process. The promise is from before S3, metrics and traces came from their official libraries, which initialise themselves in about half of this time.",
	}.Run(t)
	commit := durableCommit(t)
	Case{
		Name: "Job submission", Unit: "ms", Peer: "thole version × 1.3 + 2 durable commits", Promise: 1, Loose: 2.5,
		Ours: func() float64 {
			return millisOf(t, samples(), run("job", "submit", "--target", "desktop", "--thread-id", "t"))
		},
		Theirs: func() float64 { return 1.3*version() + 2*commit() },
		Note:   "`thole job submit` against a warm daemon; a commit is one row in a SQLite file of the same settings.",
	}.Run(t)
}

// durableCommit measures one small transaction of the store, in milliseconds.
func durableCommit(t *testing.T) func() float64 {
	db, all := swappers(t, sqldb.Config{Path: filepath.Join(t.TempDir(), "c.db")}, 1)
	return func() float64 {
		took := []float64{}
		for range 50 {
			start := time.Now()
			if err := all[0].swap(context.Background(), db); err != nil {
				t.Fatal(err)
			}
			took = append(took, float64(time.Since(start).Microseconds())/1e3)
		}
		return middle(took)
	}
}

// TestDeliveryNextReady: the next-ready decision does not feel the backlog.
func TestDeliveryNextReady(t *testing.T) {
	large := 4_000
	if Long() {
		large = 100_000
	}
	peek := func(jobs int) func() float64 {
		m := backlog(t, jobs)
		return func() float64 {
			took := []float64{}
			for range 200 {
				start := time.Now()
				c, err := m.Candidates(context.Background(), thole.TargetThole, 1)
				if err != nil || len(c) != 1 {
					t.Fatal(len(c), err)
				}
				took = append(took, float64(time.Since(start).Nanoseconds())/1e3)
			}
			return middle(took)
		}
	}
	Case{
		Name: "Next ready delivery", Unit: "µs", Peer: "the same with 1,000 queued jobs", Promise: 2, Loose: 3,
		Ours: peek(large), Theirs: peek(1000),
		Note: fmt.Sprintf("%d jobs queued over 1,000 threads.", large),
	}.Run(t)
}

// backlog queues jobs over 1,000 threads, straight into rows: through the machine
// it would take minutes and leave the same rows.
func backlog(t *testing.T, jobs int) *delivery.Machine {
	t.Helper()
	db, err := store.Open(context.Background(), sqldb.Config{Path: filepath.Join(t.TempDir(), "b.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	l := delivery.DefaultLimits()
	l.WaitWindow, l.MaxJobs = 0, 1
	m := delivery.New(delivery.Config{Store: db.Delivery(), Limits: l})
	ctx, done := context.Background(), make(chan error, 64)
	for w := range 64 { // group commit makes this quick
		go func() {
			var err error
			for i := w; i < jobs && err == nil; i += 64 {
				id := thole.JobID(fmt.Sprintf("00000000-0000-7000-8000-%012d", i))
				a := delivery.Address{User: thole.LocalUser, Thread: thole.ThreadID("t" + strconv.Itoa(i%1000))}
				if _, _, err = m.Submit(ctx, thole.LocalActor, delivery.Submit{ID: id, Owner: thole.DefaultOwner, Address: a, Target: thole.TargetThole}); err == nil {
					_, err = m.Finish(ctx, thole.LocalActor, delivery.Finish{Job: id, State: thole.JobReady, Request: "r"})
				}
			}
			done <- err
		}()
	}
	for range 64 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// instant records when a proposal arrived.
type instant struct {
	*channeltest.Host
	at chan time.Time
}

func (c instant) Propose(ctx context.Context, p channel.Proposal) (channel.Answer, error) {
	c.at <- time.Now()
	return c.Host.Propose(ctx, p)
}

// TestDeliveryLatency: from job complete to the channel.
func TestDeliveryLatency(t *testing.T) {
	db, err := store.Open(context.Background(), sqldb.Config{Path: filepath.Join(t.TempDir(), "l.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	l := delivery.DefaultLimits()
	l.WaitWindow = 0
	var d *driver.Driver
	m := delivery.New(delivery.Config{Store: db.Delivery(), Limits: l, Wake: func(c *delivery.Candidate) { d.Wake(c) }})
	ch := instant{channeltest.New(nil), make(chan time.Time, 1)}
	d = driver.New(driver.Config{Machine: m, Channels: map[thole.Target]channel.Channel{thole.TargetThole: ch}, Sole: true, Holder: "b"})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = d.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	n := 0
	once := func() float64 {
		n++
		now := time.Now()
		id := thole.NewID[thole.JobID](now)
		a := delivery.Address{User: thole.LocalUser, Thread: thole.ThreadID("t" + strconv.Itoa(n))}
		if _, _, err := m.Submit(ctx, thole.LocalActor, delivery.Submit{ID: id, Owner: thole.DefaultOwner, Address: a, Target: thole.TargetThole}); err != nil {
			t.Fatal(err)
		}
		for d.Busy() {
			time.Sleep(time.Millisecond)
		}
		start := time.Now()
		if _, err := m.Finish(ctx, thole.LocalActor, delivery.Finish{Job: id, State: thole.JobReady, Request: "r", Inline: "done"}); err != nil {
			t.Fatal(err)
		}
		return float64((<-ch.at).Sub(start).Microseconds()) / 1e3
	}
	commit := durableCommit(t)
	Case{
		Name: "Completion to channel", Unit: "ms", Peer: "2 durable commits", Promise: 1, Loose: 20,
		Ours: func() float64 {
			took := []float64{}
			for range samples() {
				took = append(took, once())
			}
			return middle(took)
		},
		Theirs: func() float64 { return 2 * commit() },
		Note:   "`job complete` with an inline payload and no wait window, until Propose is called. Exactly two durable steps lie between, which a test holds; a durable commit of the peer writes one row, ours seven and nine with their indexes. The ratio shows what the decisions and their 24 statements add.",
	}.Run(t)
}

// TestDaemonFootprint: the idle daemon next to an idle codex app-server.
func TestDaemonFootprint(t *testing.T) {
	codex := lab.Codex(t)
	bin := lab.Thole(t)
	ours := func() (ms, mib float64) {
		home, err := os.MkdirTemp("", "tf")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(home)
		run := func(args ...string) []byte {
			cmd := exec.Command(bin, append(args, "--json", "--home", home)...)
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(args, err)
			}
			return out
		}
		start := time.Now()
		run("job", "list")
		ms = float64(time.Since(start).Microseconds()) / 1e3
		var st wire.Status
		if err := json.Unmarshal(run("daemon", "status"), &st); err != nil {
			t.Fatal(err)
		}
		mib = idleMiB(t, st.PID)
		run("daemon", "stop")
		return ms, mib
	}
	theirs := func() (ms, mib float64) {
		home := t.TempDir()
		cmd := exec.Command(codex, "app-server")
		cmd.Env = []string{"HOME=" + home, "CODEX_HOME=" + home, "PATH=/usr/bin:/bin"}
		in, _ := cmd.StdinPipe()
		out, _ := cmd.StdoutPipe()
		start := time.Now()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(in, `{"id":1,"method":"initialize","params":{"clientInfo":{"name":"bench","version":"1"}}}`)
		if err := json.NewDecoder(out).Decode(new(json.RawMessage)); err != nil {
			t.Fatal(err)
		}
		ms = float64(time.Since(start).Microseconds()) / 1e3
		mib = idleMiB(t, cmd.Process.Pid)
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return ms, mib
	}
	first := func(f func() (float64, float64)) func() float64 { return func() float64 { ms, _ := f(); return ms } }
	second := func(f func() (float64, float64)) func() float64 { return func() float64 { _, mib := f(); return mib } }
	Case{Name: "Daemon: cold start to first answer", Unit: "ms", Peer: "codex app-server to initialize", Promise: 0.5, Loose: 3,
		Ours: first(ours), Theirs: first(theirs), Note: "Ours includes the client process, making the home and its database."}.Run(t)
	Case{Name: "Daemon: idle memory", Unit: "MiB", Peer: "codex app-server", Promise: 0.25, Loose: 1,
		Ours: second(ours), Theirs: second(theirs), Note: "Resident set when nothing was asked for a second after the first answers. Ours gives back the free heap when it has started. More than half of it are pages of the program's file, as with the exec-server."}.Run(t)
}

// idleMiB is the resident set of a process that was left alone for a moment.
func idleMiB(t *testing.T, pid int) float64 {
	if Long() {
		time.Sleep(time.Second)
	}
	return residentMiB(t, pid)
}

func residentMiB(t *testing.T, pid int) float64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(b), "\n") {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmRSS:" {
			kib, _ := strconv.ParseFloat(f[1], 64)
			return kib / 1024
		}
	}
	t.Fatal("no resident set")
	return 0
}
