package threadjob

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/artifact"
	"github.com/tholehq/thole/internal/daemon/executors"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/internal/tholetest"
	"github.com/tholehq/thole/internal/thread"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var me = thole.LocalActor

// rig is a runner over a real store, real threads and executords in this process.
type rig struct {
	*testing.T
	kit     *tholetest.Kit
	machine *delivery.Machine
	cfg     Config

	mu      sync.Mutex
	changed chan struct{}
}

func newRig(t *testing.T) *rig {
	t.Helper()
	k := tholetest.New(t)
	r := &rig{T: t, kit: k, changed: make(chan struct{})}
	keeper, err := artifact.New(artifact.Config{Dir: t.TempDir(), Store: k.Store().Artifacts()})
	if err != nil {
		t.Fatal(err)
	}
	r.machine = delivery.New(delivery.Config{Store: k.Store().Delivery(), Limits: delivery.DefaultLimits(), Wake: func(*delivery.Candidate) { r.note() }})
	asked := executors.New(executors.Config{
		Threads: k.Threads, Dispatcher: k.Dispatcher, Rows: k.Store().Executors(), Queue: k.Store().Queue(), Driver: k.Executors, Files: k.Files, Log: slog.New(slog.DiscardHandler),
	})
	r.cfg = Config{
		Machine: r.machine, Keeper: keeper, Threads: k.Threads, Rows: k.Store().Executors(), Driver: k.Executors, Ready: asked.Ready, Sync: k.Dispatcher.Sync,
		Changed: func() <-chan struct{} { r.mu.Lock(); defer r.mu.Unlock(); return r.changed }, Dir: filepath.Join(t.TempDir(), "inside"), Unsure: sqldb.OutcomeUnknown,
	}
	return r
}

// note wakes the runner at a change of a job.
func (r *rig) note() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.changed)
	r.changed = make(chan struct{})
}

// run runs a runner until stop is called, or the test ends.
func (r *rig) run() (runner *Runner, stop func()) {
	r.Helper()
	runner, err := New(r.cfg)
	if err != nil {
		r.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); runner.Run(ctx) }()
	stop = func() { cancel(); <-done }
	r.Cleanup(stop)
	return runner, stop
}

func (r *rig) thread() thole.ThreadID {
	r.Helper()
	th, err := r.kit.Threads.Create(r.Context(), me, thread.Create{Settings: event.Settings{Provider: "test", Profile: thole.ProfileFull}})
	if err != nil {
		r.Fatal(err)
	}
	return th.ID
}

// submit makes a job that runs a shell command in the box of a thread.
func (r *rig) submit(th thole.ThreadID, script string) thole.JobID {
	r.Helper()
	j, _, err := r.machine.Submit(r.Context(), me, delivery.Submit{
		ID: thole.NewID[thole.JobID](time.Now()), Owner: thole.DefaultOwner, Address: delivery.Address{User: thole.LocalUser, Endpoint: "home", Thread: th}, Target: thole.TargetThole,
		TaskKind: "test", Command: &delivery.Command{Argv: []string{"sh", "-c", script}},
	})
	if err != nil {
		r.Fatal(err)
	}
	return j.ID
}

func (r *rig) job(id thole.JobID) delivery.Job {
	r.Helper()
	j, _, err := r.machine.Job(r.Context(), me, id)
	if err != nil {
		r.Fatal(err)
	}
	return j
}

// ended waits for a job's end and returns it with its whole output.
func (r *rig) ended(id thole.JobID) (j delivery.Job, output string) {
	r.Helper()
	poll.Until(r, "the job's end", func() bool { j = r.job(id); return j.State.Terminal() })
	if j.Artifact != "" {
		rec, err := r.cfg.Keeper.Get(r.Context(), me, j.Artifact)
		if err != nil {
			r.Fatal(err)
		}
		text, err := os.ReadFile(r.cfg.Keeper.Path(rec))
		if err != nil {
			r.Fatal(err)
		}
		output = string(text)
	}
	return j, output
}

// kept is the output of a job that is read so far.
func (r *rig) kept(id thole.JobID) string {
	text, _ := os.ReadFile(filepath.Join(r.cfg.Dir, string(id)+".out"))
	return string(text)
}

// commands are the jobs that an executor has not forgotten.
func (r *rig) commands(id thole.ExecutorID) []thole.JobID {
	r.Helper()
	client, err := (&Runner{cfg: r.cfg}).reach(r.Context(), id)
	if err != nil {
		r.Fatal(err)
	}
	defer client.Close()
	status, err := client.Status(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	return status.Jobs
}

// release lets a command go on that reads from a pipe in its directory.
func (r *rig) release(x thole.ExecutorID) {
	r.Helper()
	dir, err := r.kit.Executors.WorkspaceDir(x)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "go"), []byte("on\n"), 0) // waits for the reader
	}
	if err != nil {
		r.Fatal(err)
	}
}

// waiting is a command that says a, waits for release, and says b.
const waiting = "mkfifo go; echo a; read x < go; echo b; echo ran >> runs"

// A command ends its job with its status and output, and nothing of it is left.
func TestACommandEndsItsJob(t *testing.T) {
	r := newRig(t)
	r.run()
	th := r.thread()
	for script, want := range map[string]struct {
		state  thole.JobState
		code   int64
		output string
	}{"echo out; echo err >&2": {thole.JobReady, 0, "out\nerr\n"}, "echo no; exit 3": {thole.JobFailed, 3, "no\n"}, "true": {thole.JobReady, 0, ""}} {
		id := r.submit(th, script)
		j, output := r.ended(id)
		if j.State != want.state || j.ExitCode != want.code || output != want.output || j.ResultSummary == "" || j.Executor == "" {
			t.Errorf("%s: %+v, %q", script, j, output)
		}
		poll.Until(t, "nothing to be left", func() bool {
			_, err := os.Stat(filepath.Join(r.cfg.Dir, string(id)+".out"))
			return os.IsNotExist(err) && len(r.commands(j.Executor)) == 0
		})
	}
}

// threads answers as an error says.
type threads struct{ err error }

func (t threads) Get(context.Context, thole.Actor, thole.ThreadID) (fold.Thread, error) {
	return fold.Thread{}, t.err
}

// A job whose thread was deleted is cancelled, and no executor is started for it. A thread
// that cannot be read is not one that is gone.
func TestAMissingThread(t *testing.T) {
	r := newRig(t)
	id := r.submit(r.thread(), "true")
	r.cfg.Ready = func(context.Context, thole.ThreadID) (executor.Row, error) {
		t.Error("an executor was asked for")
		return executor.Row{}, errors.New("no")
	}
	r.cfg.Threads = threads{thole.Errorf(thole.CodeUnavailable, "no database")}
	unread, err := New(r.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := unread.follow(t.Context(), r.job(id)); thole.CodeOf(err) != thole.CodeUnavailable || r.job(id).State != thole.JobRunning {
		t.Errorf("a thread that cannot be read: %v, %s", err, r.job(id).State)
	}
	r.cfg.Threads = threads{thole.Errorf(thole.CodeNotFound, "no thread")}
	r.run()
	if j, _ := r.ended(id); j.State != thole.JobCancelled {
		t.Errorf("%+v", j)
	}
}

// A thread without an executor fails the job with the reason and what helps; a place that was
// recorded is kept.
func TestNoExecutor(t *testing.T) {
	r := newRig(t)
	id := r.submit(r.thread(), "true")
	r.cfg.Ready = func(context.Context, thole.ThreadID) (executor.Row, error) {
		return executor.Row{}, thole.Errorf(thole.CodeUnavailable, "no bubblewrap").WithHint("install it")
	}
	r.run()
	if j, _ := r.ended(id); j.State != thole.JobFailed || j.ResultSummary != "the command did not begin: no bubblewrap (install it)" || j.ExitCode != -1 || j.Executor != "" {
		t.Errorf("%+v", j)
	}
}

// A job whose thread's executor came up on another server is left to the runner there: it has
// not failed, and has no place yet.
func TestTheExecutorCameUpElsewhere(t *testing.T) {
	r := newRig(t)
	id := r.submit(r.thread(), "true")
	r.cfg.Engine = "local:here"
	r.cfg.Ready = func(context.Context, thole.ThreadID) (executor.Row, error) {
		return executor.Row{ID: "x1", Engine: "local:there"}, nil
	}
	r.cfg.Driver = inspected{info: executor.Info{State: executor.Missing}}
	runner, err := New(r.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := runner.follow(t.Context(), r.job(id)); err != nil {
		t.Error(err)
	}
	if j := r.job(id); j.State != thole.JobRunning || j.Executor != "" {
		t.Errorf("%+v", j)
	}
}

// inspected answers about executors in the driver's place.
type inspected struct {
	executor.Driver
	info executor.Info
	err  error
}

func (d inspected) Inspect(context.Context, thole.ExecutorID) (executor.Info, error) {
	return d.info, d.err
}

// A command whose executor is gone never runs again: the job fails, with the output so far.
// An executor of which nothing is known is not gone.
func TestTheExecutorIsGone(t *testing.T) {
	r := newRig(t)
	id := r.submit(r.thread(), "echo again")
	if err := r.machine.Place(t.Context(), me, id, "x1"); err != nil {
		t.Fatal(err)
	}
	for _, d := range []struct {
		driver inspected
		gone   bool
	}{{inspected{err: errors.New("no answer")}, false}, {inspected{info: executor.Info{State: executor.Stopped}}, true}} {
		cfg := r.cfg
		cfg.Driver = d.driver
		if _, err := (&Runner{cfg: cfg}).reach(t.Context(), "x1"); errors.Is(err, errGone) != d.gone || err == nil {
			t.Errorf("%+v: %v", d.driver, err)
		}
	}
	r.cfg.Driver = inspected{info: executor.Info{State: executor.Stopped}}
	if err := os.MkdirAll(r.cfg.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.cfg.Dir, string(id)+".out"), []byte("so far\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.run()
	if j, output := r.ended(id); j.State != thole.JobFailed || !strings.Contains(j.ResultSummary, "how far it came is not known") || output != "so far\n" {
		t.Errorf("%+v, %q", j, output)
	}
}

// A runner that takes over begins what was only placed, reads on where the other stopped, and
// never runs a command twice.
func TestAnotherRunnerTakesOver(t *testing.T) {
	r := newRig(t)
	id := r.submit(r.thread(), waiting)
	row, err := r.cfg.Ready(t.Context(), r.job(id).Thread)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.machine.Place(t.Context(), me, id, row.ID); err != nil { // and the owner was killed
		t.Fatal(err)
	}
	_, stop := r.run()
	poll.Until(t, "the first output", func() bool { return r.kept(id) == "a\n" })
	stop()
	if j := r.job(id); j.State != thole.JobRunning {
		t.Fatalf("the job ended with its reader: %+v", j)
	}
	r.release(row.ID) // while nobody reads
	r.run()
	j, output := r.ended(id)
	dir, err := r.kit.Executors.WorkspaceDir(row.ID)
	if err != nil {
		t.Fatal(err)
	}
	if ran, err := os.ReadFile(filepath.Join(dir, "runs")); err != nil || !bytes.Equal(ran, []byte("ran\n")) || output != "a\nb\n" || j.State != thole.JobReady || j.Executor != row.ID {
		t.Errorf("%+v, %q, ran %q, %v", j, output, ran, err)
	}
}

// A cancelled job's command ends, and what was read of it is removed.
func TestACancelledJob(t *testing.T) {
	r := newRig(t)
	runner, _ := r.run()
	id := r.submit(r.thread(), waiting)
	poll.Until(t, "the first output", func() bool { return r.kept(id) == "a\n" })
	if _, err := r.machine.Cancel(t.Context(), me, id, "request", "enough"); err != nil {
		t.Fatal(err)
	}
	runner.Cancel(id)
	poll.Until(t, "the command's end", func() bool { return len(r.commands(r.job(id).Executor)) == 0 && r.kept(id) == "" })
	if j := r.job(id); j.State != thole.JobCancelled || j.Artifact != "" {
		t.Errorf("%+v", j)
	}
}

// A sweep ends commands whose job was over while nobody ran, and removes their output. What
// still runs stays.
func TestASweep(t *testing.T) {
	r := newRig(t)
	th := r.thread()
	over, runs := r.submit(th, waiting), r.submit(th, waiting)
	row, err := r.cfg.Ready(t.Context(), th)
	if err != nil {
		t.Fatal(err)
	}
	runner, err := New(r.cfg)
	if err != nil {
		t.Fatal(err)
	}
	client, err := runner.reach(t.Context(), row.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, id := range []thole.JobID{over, runs} {
		if err := r.machine.Place(t.Context(), me, id, row.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := client.StartJob(t.Context(), wire.JobRequest{ID: id, Argv: []string{"sh", "-c", "read x"}}); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(r.cfg.Dir, string(id)+".out"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.machine.Cancel(t.Context(), me, over, "request", "enough"); err != nil {
		t.Fatal(err)
	}
	runner.sweep(t.Context())
	if left := r.commands(row.ID); len(left) != 1 || left[0] != runs || r.kept(over) != "" || r.kept(runs) != "x" {
		t.Errorf("left %v, output %q and %q", left, r.kept(over), r.kept(runs))
	}
}
