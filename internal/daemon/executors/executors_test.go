package executors_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/daemon/executors"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/gateway"
	"github.com/tholehq/thole/internal/gateway/calls"
	"github.com/tholehq/thole/internal/jsonhttp"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/internal/tholetest"
	"github.com/tholehq/thole/internal/thread"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	bg       = context.Background()
	me       = thole.LocalActor
	stranger = thole.Actor{User: "stranger", Via: "token"}
)

// owner is a kit and what its people may ask of it.
type owner struct {
	*tholetest.Kit
	t       *testing.T
	records *calls.Store
	own     *executors.Service
	jobs    []delivery.Job // whose command is running
}

func newOwner(t *testing.T) *owner {
	t.Helper()
	k := tholetest.New(t)
	records := calls.New(t.TempDir(), func(gateway.Claim) bool { return true })
	o := &owner{Kit: k, t: t, records: records}
	o.own = executors.New(executors.Config{
		Calls: records, Recording: true, Jobs: func(context.Context) ([]delivery.Job, error) { return o.jobs, nil },
		Threads: k.Threads, Dispatcher: k.Dispatcher, Rows: k.Store().Executors(), Queue: k.Store().Queue(), Driver: k.Executors, Files: k.Files, Log: slog.New(slog.DiscardHandler),
	})
	return o
}

// ask calls a method as an actor.
func (o *owner) ask(actor thole.Actor, method string, params any) (any, error) {
	o.t.Helper()
	raw, err := json.Marshal(params)
	if err != nil {
		o.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(bg, time.Minute)
	defer cancel()
	return o.own.Methods()[method](ctx, actor, raw)
}

func got[T any](o *owner, method string, params any) T {
	o.t.Helper()
	v, err := o.ask(me, method, params)
	if err != nil {
		o.t.Fatalf("%s: %v", method, err)
	}
	return v.(T)
}

func (o *owner) thread() thole.ThreadID {
	o.t.Helper()
	th, err := o.Threads.Create(bg, me, thread.Create{Settings: event.Settings{Provider: "test", Profile: thole.ProfileFull}})
	if err != nil {
		o.t.Fatal(err)
	}
	return th.ID
}

func (o *owner) start(id thole.ThreadID, text string) thole.TurnID {
	o.t.Helper()
	turn, err := o.Threads.StartTurn(bg, me, thread.StartTurn{Thread: id, Input: thole.Text(text)})
	if err != nil {
		o.t.Fatal(err)
	}
	return turn.ID
}

func (o *owner) phase(id thole.ThreadID, turn thole.TurnID, what string, ok func(thole.Phase) bool) {
	o.t.Helper()
	poll.Until(o.t, what, func() bool {
		got, err := o.Threads.Turn(bg, me, id, turn)
		return err == nil && ok(got.Phase)
	})
}

// play runs a turn to its end.
func (o *owner) play(id thole.ThreadID, text string) {
	o.t.Helper()
	o.phase(id, o.start(id, text), "the turn's end", thole.Phase.Terminal)
}

func waits(p thole.Phase) bool { return p == thole.PhaseWaitingHuman }

// People see the executors of their own threads, by either name, and save their files.
func TestListAndSync(t *testing.T) {
	o := newOwner(t)
	if all := got[[]executors.Executor](o, executors.MethodList, executors.ListParams{}); len(all) != 0 {
		t.Fatalf("before the first turn: %+v", all)
	}
	a, b := o.thread(), o.thread()
	o.play(a, "sim: say hi")
	o.play(b, "sim: say hi")
	all := got[[]executors.Executor](o, executors.MethodList, executors.ListParams{})
	if len(all) != 2 || all[0].Thread != b || all[1].Thread != a || all[0].State != executor.RowRunning {
		t.Fatalf("the one that worked last comes first: %+v", all)
	}
	for _, name := range []string{string(a), string(all[1].ID)} {
		if one := got[[]executors.Executor](o, executors.MethodList, executors.ListParams{ID: name}); len(one) != 1 || one[0].ID != all[1].ID {
			t.Errorf("%s: %+v", name, one)
		}
	}
	dir, err := o.Executors.WorkspaceDir(all[1].ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "late"), []byte("late"), 0o600); err != nil {
		t.Fatal(err)
	}
	saved := got[[]executors.Executor](o, executors.MethodSync, executors.ListParams{ID: string(a)})
	if len(saved) != 1 || saved[0].Sync != executor.SyncSuccess || saved[0].Snapshot == all[1].Snapshot || !saved[0].SyncStarted.After(all[1].SyncStarted) {
		t.Errorf("after a sync: %+v, before %+v", saved, all[1])
	}
	out := filepath.Join(t.TempDir(), "out")
	x := got[executors.ExportResult](o, executors.MethodExport, executors.ExportParams{Thread: a, Dir: out})
	if body, err := os.ReadFile(filepath.Join(out, "late")); string(body) != "late" || x.Snapshot != saved[0].Snapshot || x.Files < 1 {
		t.Errorf("the export has %q, %v: %+v", body, err, x)
	}
}

// What is not the asker's, not there or not a request is refused with what to do.
func TestRefusals(t *testing.T) {
	o := newOwner(t)
	id := o.thread()
	o.play(id, "sim: say hi")
	for _, c := range []struct {
		actor  thole.Actor
		method string
		params any
		want   thole.Code
	}{
		{me, executors.MethodList, executors.ListParams{ID: "nothing"}, thole.CodeNotFound},
		{stranger, executors.MethodList, executors.ListParams{ID: string(id)}, thole.CodeNotFound},
		{me, executors.MethodList, "no object", thole.CodeInvalid},
		{me, executors.MethodSync, executors.ListParams{}, thole.CodeInvalid},
		{stranger, executors.MethodSync, executors.ListParams{ID: string(id)}, thole.CodeNotFound},
		{stranger, executors.MethodCloseThread, executors.CloseParams{Thread: id}, thole.CodeNotFound},
		{stranger, executors.MethodStopped, executors.StoppedParams{Thread: id}, thole.CodeNotFound},
		{stranger, executors.MethodSaved, executors.SavedParams{Thread: id}, thole.CodeNotFound},
		{me, executors.MethodSaved, executors.SavedParams{Thread: id, Wait: "for ever"}, thole.CodeInvalid},
		{stranger, executors.MethodNetwork, executors.NetworkParams{Thread: id}, thole.CodeNotFound},
		{stranger, executors.MethodExport, executors.ExportParams{Thread: id, Dir: t.TempDir()}, thole.CodeNotFound},
		{me, executors.MethodExport, executors.ExportParams{Thread: id, Dir: "relative"}, thole.CodeInvalid},
	} {
		if v, err := o.ask(c.actor, c.method, c.params); thole.CodeOf(err) != c.want {
			t.Errorf("%s %+v as %s: %+v, %v, want %s", c.method, c.params, c.actor.User, v, err, c.want)
		}
	}
	if v, err := o.ask(stranger, executors.MethodCloseThread, executors.CloseParams{All: true}); err != nil || len(v.(executors.CloseResult).Threads) != 0 {
		t.Errorf("a stranger closed %+v, %v", v, err)
	}
	if list, err := o.own.Left(bg); err != nil || len(list) != 1 {
		t.Errorf("after what strangers asked for there run %+v, %v", list, err)
	}
}

// A thread that is closed keeps the turn it has, unless that is to end too; then its
// executor stops with its files saved.
func TestCloseWaitsOrInterrupts(t *testing.T) {
	o := newOwner(t)
	id, idle := o.thread(), o.thread()
	o.play(idle, "sim: say hi")
	turn := o.start(id, "sim: run echo kept > f ;; ask Which? | red | blue")
	o.phase(id, turn, "the question", waits)
	at := got[[]executors.Executor](o, executors.MethodList, executors.ListParams{ID: string(idle)})[0].ID
	o.jobs = []delivery.Job{{ID: "placed", Executor: at}, {ID: "not placed yet", Thread: idle}}
	left, err := o.own.Left(bg)
	if err != nil || len(left) != 2 {
		t.Fatalf("%+v, %v", left, err)
	}
	for _, l := range left {
		if want := l.Thread == idle; slices.Equal(l.Jobs, []thole.JobID{"placed"}) != want || (len(l.Jobs) > 0) != want {
			t.Errorf("jobs that go on: %+v", l)
		}
		if want := l.Thread == id; l.Waits != want || (l.Turn == turn) != want || (l.Turn == "") == want {
			t.Errorf("what goes on: %+v", l)
		}
	}
	if s := got[executors.Saved](o, executors.MethodSaved, executors.SavedParams{Thread: id, Wait: "sync"}); s.Running != turn || s.Saving || s.Unsaved != "" {
		t.Errorf("while a turn runs: %+v", s)
	}
	if why := o.own.Staying(); why != "a turn is running" {
		t.Errorf("it stays for %q", why)
	}
	c := got[executors.CloseResult](o, executors.MethodCloseThread, executors.CloseParams{All: true})
	if len(c.Threads) != 2 || c.Asked.IsZero() {
		t.Fatalf("closed %+v", c)
	}
	if _, err := o.ask(me, executors.MethodStopped, executors.StoppedParams{Thread: idle, Asked: c.Asked}); err != nil {
		t.Fatal(err)
	}
	if now, err := o.Threads.Turn(bg, me, id, turn); err != nil || now.Phase != thole.PhaseWaitingHuman {
		t.Fatalf("the turn did not wait on: %+v, %v", now, err)
	}
	c = got[executors.CloseResult](o, executors.MethodCloseThread, executors.CloseParams{Thread: id, Interrupt: true})
	if _, err := o.ask(me, executors.MethodStopped, executors.StoppedParams{Thread: id, Asked: c.Asked}); err != nil {
		t.Fatal(err)
	}
	if now, err := o.Threads.Turn(bg, me, id, turn); err != nil || now.Outcome != thole.OutcomeInterrupted {
		t.Errorf("the turn was not interrupted: %+v, %v", now, err)
	}
	for _, x := range got[[]executors.Executor](o, executors.MethodList, executors.ListParams{}) {
		if x.State != executor.RowStopped || x.Sync != executor.SyncSuccess {
			t.Errorf("after both were closed: %+v", x)
		}
	}
	if s := got[executors.Saved](o, executors.MethodSaved, executors.SavedParams{Thread: id, Wait: "turn"}); s != (executors.Saved{}) {
		t.Errorf("after the stop: %+v", s)
	}
	if why := o.own.Staying(); why != "" {
		t.Errorf("it stays for %q", why)
	}
}

// A terminal needs an executor that runs; without one the answer says how to get it.
func TestTerminalNeedsAnExecutor(t *testing.T) {
	o := newOwner(t)
	id := o.thread()
	r := httptest.NewRequest(http.MethodGet, executors.TerminalPath(id), nil)
	r.SetPathValue("thread", string(id))
	w := httptest.NewRecorder()
	o.own.Terminal(w, r)
	if err := jsonhttp.ReadError(w.Result()); w.Code != http.StatusConflict || thole.CodeOf(err) != thole.CodeConflict || thole.HintOf(err) == "" {
		t.Errorf("%d: %v", w.Code, err)
	}
	if why := o.own.Staying(); why != "" {
		t.Errorf("it stays for %q", why)
	}
}
