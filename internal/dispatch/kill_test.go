package dispatch_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/thread"
)

// victim is a process that is killed without a word.
type victim string

const (
	theDispatcher victim = "dispatcher"
	theExecutord  victim = "executord"
	theAgent      victim = "agent"
)

// moments are when a process dies: the first time that the dispatcher has a turn
// in a phase, while it goes no further. Who does not live yet cannot die.
var moments = []struct {
	name   string
	phase  thole.Phase
	worked bool // the agent has run a command
	warm   bool // a turn before it left executord and agent waiting
	lives  string
}{
	{name: "queued", phase: thole.PhaseQueued, warm: true, lives: "dispatcher executord agent"},
	{name: "claimed", phase: thole.PhaseClaimed, lives: "dispatcher"},
	{name: "restoring", phase: thole.PhaseRestoring, lives: "dispatcher executord"},
	{name: "linking", phase: thole.PhaseLinking, lives: "dispatcher executord"},
	{name: "preparing", phase: thole.PhasePreparing, lives: "dispatcher executord"},
	{name: "running", phase: thole.PhaseRunning, lives: "dispatcher executord agent"},
	{name: "running and worked", phase: thole.PhaseRunning, worked: true, lives: "dispatcher executord agent"},
	{name: "waiting_human", phase: thole.PhaseWaitingHuman, lives: "dispatcher executord agent"},
	{name: "syncing", phase: thole.PhaseSyncing, lives: "dispatcher executord agent"},
	{name: "exported", phase: thole.PhaseExported, lives: "dispatcher executord agent"},
	{name: "succeeded", phase: thole.PhaseSucceeded, lives: "dispatcher executord agent"},
}

// A dispatcher, executord and a real agent's process are killed in every phase.
// The turn ends once and completes, but for an agent that dies alone over its
// work: that turn fails and says so. A turn after it works in any case. The short
// form takes every victim in every phase on one of the engines. With THOLE_SOAK=1
// it is both, and where a victim does not live yet that is checked: no agent runs
// before its workspace is there.
func TestKilledInEveryPhase(t *testing.T) {
	t.Parallel()
	for i, m := range moments {
		for j, who := range []victim{theDispatcher, theExecutord, theAgent} {
			for k, engine := range []string{"sqlite", "postgres"} {
				lives := strings.Contains(m.lives, string(who))
				if ((i+j+k)%2 != 0 || !lives) && os.Getenv("THOLE_SOAK") == "" {
					continue
				}
				t.Run(strings.ReplaceAll(m.name, " ", "_")+"/"+string(who)+"/"+engine, func(t *testing.T) {
					t.Parallel()
					s := &scene{t: t, dir: os.Getenv(envScene), who: who, phase: m.phase, worked: m.worked, warm: m.warm, lives: lives}
					if s.dir != "" {
						s.play()
						os.Exit(0)
					}
					s.run(engine)
				})
			}
		}
	}
}

const (
	envScene = "THOLE_DISPATCH_SCENE" // the directory of the scene this child is to play
	envModel = "THOLE_DISPATCH_MODEL"
	envStore = "THOLE_DISPATCH_STORE"
)

// scene is one death. It is played in this process, and in a child if that is
// who dies.
type scene struct {
	t            *testing.T
	dir          string
	who          victim
	phase        thole.Phase
	worked, warm bool
	lives        bool

	model string
	store sqldb.Config
	p     *pipeline
	once  sync.Once
	over  atomic.Bool // the victim was struck
}

func (s *scene) run(engine string) {
	s.dir, s.model = s.t.TempDir(), modelsim.Start(s.t).URL()
	codex := lab.Codex(s.t)
	if engine == "sqlite" {
		s.store.Path = filepath.Join(s.dir, "home", "thole.db")
	} else {
		s.store.DSN = lab.Postgres(s.t)
	}
	if s.who == theDispatcher {
		var path []string
		for part := range strings.SplitSeq(s.t.Name(), "/") {
			path = append(path, "^"+part+"$")
		}
		child := exec.Command(os.Args[0], "-test.run="+strings.Join(path, "/"), "-test.count=1", "-test.timeout=90s")
		child.Env = append(os.Environ(), envScene+"="+s.dir, envModel+"="+s.model, envStore+"="+s.store.Path+s.store.DSN)
		out, err := child.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			s.t.Errorf("the dispatcher did not die: %v\n%s", err, out)
		}
		s.open(codex, false)
	} else {
		s.open(codex, true)
		s.act()
	}
	defer s.p.end(s.t, s.dir)
	s.check()
}

// play is the child's part: it does not come back.
func (s *scene) play() {
	s.model = os.Getenv(envModel)
	if s.store.Path = os.Getenv(envStore); strings.Contains(s.store.Path, "://") {
		s.store.Path, s.store.DSN = "", s.store.Path
	}
	s.open(lab.Codex(s.t), true)
	s.act()
	waitFor(s.t, s.over.Load)
}

func (s *scene) open(codex string, watched bool) {
	s.t.Helper()
	p, err := openPipeline(s.dir, s.store, s.model, func(d *dispatch.Config, x *local.Config) {
		d.Workspaces = still{}
		x.Tools = func() local.Tools { return local.Tools{Env: map[string]string{"THOLE_PROVIDERS_CODEX": codex}} }
		if testing.Verbose() {
			d.Log = slog.New(slog.NewTextHandler(s.t.Output(), nil))
		}
		if watched {
			d.Threads = &witness{Service: d.Threads, scene: s}
		}
	})
	if err != nil {
		s.t.Fatal(err)
	}
	// Nobody answers the question before the process died that is to die over it.
	p.mute = func() bool {
		return watched && !s.over.Load() && (s.phase == thole.PhaseRunning || s.phase == thole.PhaseWaitingHuman)
	}
	s.p = p
}

const warmTurn = thole.TurnID("01890000-0000-7000-8000-000000000004")

// act begins the turn in which a process dies and sees it through.
func (s *scene) act() {
	s.t.Helper()
	agent := "test" // which lives in executord
	if s.who == theAgent || s.who == theExecutord && (s.phase == thole.PhaseRunning || s.phase == thole.PhaseWaitingHuman) {
		agent = "codex"
	}
	settings := event.Settings{Provider: agent, Profile: thole.ProfileFull}
	if _, err := s.p.m.Create(context.Background(), me, thread.Create{ID: killedThread, Owner: thole.DefaultOwner, Settings: settings}); err != nil {
		s.t.Fatal(err)
	}
	if s.warm {
		s.turn(warmTurn, "sim: say warm")
	}
	s.turn(killedTurn, "sim: run echo kept > f ;; ask Go on? | yes | no ;; say done")
}

func (s *scene) turn(id thole.TurnID, prompt string) fold.Turn {
	s.t.Helper()
	_, err := s.p.m.StartTurn(context.Background(), me, thread.StartTurn{Thread: killedThread, ID: id, Input: thole.Text(prompt)})
	if err != nil {
		s.t.Fatal(err)
	}
	t, err := s.p.turn(id, settledTurn)
	if err != nil {
		s.t.Fatal(err)
	}
	return t
}

func (s *scene) check() {
	t := s.t
	turn, err := s.p.turn(killedTurn, settledTurn)
	if err != nil {
		t.Fatal(err)
	}
	want := thole.OutcomeCompleted
	if s.who == theAgent && (s.worked || s.phase == thole.PhaseWaitingHuman) {
		want = thole.OutcomeFailed
	}
	crashed := turn.Error != nil && turn.Error.Code == thole.ErrProviderCrashed
	if s.who == theAgent && s.phase == thole.PhaseRunning && !s.worked && crashed {
		want = thole.OutcomeFailed // it was quicker than its death
	}
	if turn.Outcome != want || crashed != (want == thole.OutcomeFailed) {
		t.Fatalf("the turn ended %s in %s, want %s: %+v", turn.Outcome, turn.Phase, want, turn.Error)
	}
	if s.who == theDispatcher && turn.Run != 0 {
		t.Errorf("the turn was begun again in run %d though its executor lived", turn.Run)
	}
	events, err := s.p.m.Events(context.Background(), me, killedThread, 0, 10000)
	if err != nil {
		t.Fatal(err)
	}
	ends, said := 0, 0
	for i, e := range events {
		if e.Seq != uint64(i+1) {
			t.Errorf("event %d has seq %d", i, e.Seq)
		}
		if e.Turn == killedTurn && e.Kind == event.TurnEnded {
			ends++
		}
		if e.Turn == killedTurn && e.Kind == event.ItemCompleted && e.Data.Item.Text == "done" {
			said++
		}
	}
	// Taken up again, the scripted model hears what has no script.
	if ends != 1 || said > 1 || want == thole.OutcomeCompleted && turn.Run == 0 && said == 0 {
		t.Errorf("the turn ended %d times and said its last word %d times: %q", ends, said, (&rig{Machine: s.p.m, t: t}).said(killedThread, killedTurn))
	}
	if s.who != theDispatcher {
		waitFor(t, s.over.Load)
	}
	s.turn(laterTurn, "sim: run cat f || echo kept")
	if got := (&rig{Machine: s.p.m, t: t}).said(killedThread, laterTurn); !strings.Contains(got, "kept") {
		t.Errorf("the next turn said %q", got)
	}
	if want == thole.OutcomeCompleted {
		root, _ := home(s.dir)
		if found, _ := filepath.Glob(filepath.Join(root, "*", "workspace", "f")); len(found) != 1 {
			t.Errorf("the file is in %v", found)
		}
	}
}

// strike kills the victim.
func (s *scene) strike(id thole.ExecutorID) {
	exe := "codex"
	switch s.who {
	case theDispatcher:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // until the signal arrives
	case theExecutord:
		exe = filepath.Base(binary)
	}
	killed := 0
	for _, pid := range processes(id) {
		path, _ := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
		if filepath.Base(path) == exe && syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	if s.lives != (killed > 0) {
		s.t.Errorf("%d processes of the %s in %s", killed, s.who, s.phase)
	}
}

// processes finds those of an executor.
func processes(id thole.ExecutorID) (pids []int) {
	names, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, name := range names {
		env, err := os.ReadFile(name)
		if pid, bad := strconv.Atoi(strings.Split(name, "/")[2]); err == nil && bad == nil && bytes.Contains(env, []byte("THOLE_EXECUTOR="+string(id))) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// witness is the threads of a dispatcher. It strikes when the turn is in the
// phase of the scene.
type witness struct {
	thread.Service
	scene *scene
}

func (w *witness) saw(phase thole.Phase, turn thole.TurnID, id thole.ExecutorID) {
	if phase == w.scene.phase && turn == killedTurn {
		w.scene.once.Do(func() {
			w.scene.strike(id)
			w.scene.over.Store(true)
		})
	}
}

// Get is the first that a dispatcher asks about a turn it has claimed.
func (w *witness) Get(ctx context.Context, actor thole.Actor, id thole.ThreadID) (fold.Thread, error) {
	if t, err := w.Turn(ctx, actor, id, killedTurn); err == nil && t.Phase == thole.PhaseQueued {
		row, _ := w.scene.p.db.Executors().OfThread(ctx, id)
		w.saw(t.Phase, t.ID, row.ID)
	}
	return w.Service.Get(ctx, actor, id)
}

func (w *witness) SetPhase(ctx context.Context, ref thread.TurnRef, phase thole.Phase, why string) error {
	err := w.Service.SetPhase(ctx, ref, phase, why)
	if err == nil {
		w.saw(phase, ref.Turn, ref.Executor)
	}
	return err
}

// Apply takes one event at a time: together they could pass over a phase.
func (w *witness) Apply(ctx context.Context, ref thread.TurnRef, events []event.Event) error {
	for i, e := range events {
		if err := w.Service.Apply(ctx, ref, events[i:i+1]); err != nil {
			return err
		}
		if w.scene.worked && (e.Kind != event.ItemCompleted || e.Item.Command == nil) {
			continue
		}
		t, err := w.Turn(ctx, thole.SystemActor, ref.Thread, ref.Turn)
		if err != nil {
			return err
		}
		w.saw(t.Phase, ref.Turn, ref.Executor)
	}
	return nil
}

// still is a workspace that stays where it is.
type still struct{}

func (still) Restore(context.Context, dispatch.ExecutorWorkspace) error  { return nil }
func (still) Link(context.Context, dispatch.ExecutorWorkspace) error     { return nil }
func (still) Validate(context.Context, dispatch.ExecutorWorkspace) error { return nil }
func (still) Sync(context.Context, dispatch.ExecutorWorkspace, string) (string, error) {
	return "snap", nil
}
func (still) Verify(context.Context, dispatch.ExecutorWorkspace, string) error { return nil }
func (still) Away() error                                                      { return nil }
