package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/measure"
	"github.com/tholehq/thole/internal/provider"
)

// place is a turn's executor, ready to run agents.
type place struct {
	row    executor.Row
	info   executor.Info
	client *executorclient.Client
	// starved is how often it had run out of memory before.
	starved int
	// spoken is the number of the thread's last turn that was given to an agent here
	// and was no command turn.
	spoken int
}

// place runs a request where the turn's executor is, or finds there what an
// earlier worker began. Where the thread's last turn ran is asked first: an
// executord that takes the token of its start is the one that was prepared, and
// anything else is looked at from the beginning.
func (w *worker) place(ctx context.Context, th fold.Thread, t fold.Turn, req wire.RunRequest) (*place, wire.Run, error) {
	usable := w.usable(t)
	if err := w.grounded(ctx, th); err != nil {
		return nil, wire.Run{}, err
	}
	if p, ok := w.recall(th.ID); ok && usable == nil && !moved(t, p.row.ID) {
		run, err := w.hand(ctx, p, th, t, req)
		if err == nil {
			w.remember(p, t)
			return p, run, nil
		}
		w.log.Debug("warm executor", "executor", p.row.ID, "err", err)
		w.forget(th.ID)
	}
	p, err := w.prepare(ctx, th, t)
	if err != nil {
		return nil, wire.Run{}, err
	}
	if moved(t, p.row.ID) {
		p.client.Close()
		return nil, wire.Run{}, errLost
	}
	if usable != nil { // but a run that is there goes on, whatever its CLI says now
		status, err := p.client.Status(ctx)
		if err == nil && !slices.ContainsFunc(status.Runs, func(r wire.Run) bool { return r.ID == req.Turn.ID }) {
			err = usable
		}
		if err != nil {
			p.client.Close()
			return nil, wire.Run{}, err
		}
	}
	run, err := w.hand(ctx, p, th, t, req)
	if err != nil {
		p.client.Close()
		return nil, wire.Run{}, err
	}
	w.remember(p, t)
	return p, run, nil
}

// grounded is why the directory of the user that a thread works in is not there as its
// executors show it.
func (w *worker) grounded(ctx context.Context, th fold.Thread) error {
	if !th.Files.InPlace() {
		return nil
	}
	driver, ok := w.cfg.Driver.(executor.InPlace)
	if !ok {
		return thole.Errorf(thole.CodeUnsupported, "executors of driver %s cannot work in a directory of this machine", w.cfg.Driver.Name()).
			WithHint("start a thread on a branch of it: --repo %s", th.Files.Dir)
	}
	rows, err := w.cfg.Rows.Of(ctx, th.ID)
	for _, row := range rows {
		err = errors.Join(err, driver.CheckFiles(ctx, row.ID))
	}
	return err
}

// hand gives a request to its executor, with the credentials of its agent there.
func (w *worker) hand(ctx context.Context, p *place, th fold.Thread, t fold.Turn, req wire.RunRequest) (wire.Run, error) {
	w.before(ctx, p, th, t)
	var err error
	if command, _ := thole.TurnCommandOf(t.Input); command.AgentRuns() {
		if req.Grant, err = w.grant(ctx, p, th, t, req); err != nil {
			return wire.Run{}, fmt.Errorf("get credentials: %w", err)
		}
	}
	run, err := p.client.Run(ctx, req)
	if err != nil {
		return wire.Run{}, fmt.Errorf("run turn: %w", err)
	}
	return run, nil
}

// grant is what the agent of a request gets. An executor that an earlier version started,
// and that would refuse the request or does not know the way to the gateway, is started
// again first, unless the run is there and goes on with what it has.
func (w *worker) grant(ctx context.Context, p *place, th fold.Thread, t fold.Turn, req wire.RunRequest) (provider.Grant, error) {
	ask := func() (provider.Grant, error) {
		return w.cfg.Credentials.For(ctx, provider.For{Owner: th.Owner, Thread: th.ID, Turn: t.ID, Executor: p.row.ID, Provider: req.Provider, Here: here(th.Files), Secret: p.info.Token})
	}
	g, err := ask()
	if err != nil || !p.info.Old && (!g.Led() || p.info.Gateway) {
		return g, err
	}
	status, err := p.client.Status(ctx)
	switch {
	case err != nil:
		return g, err
	case slices.ContainsFunc(status.Runs, func(r wire.Run) bool { return r.ID == req.Turn.ID }):
		return provider.Grant{}, nil
	case status.Terminals > 0:
		return g, thole.Errorf(thole.CodeUnavailable, "this executor was started by an earlier version of thole, has to be started again, and a terminal is open in it").
			WithHint("close the terminal")
	}
	p.client.Close()
	if err := w.cfg.Driver.Stop(ctx, p.row.ID); err != nil {
		return g, fmt.Errorf("stop executor: %w", err)
	}
	if err := w.start(ctx, p, th); err != nil {
		return g, err
	}
	return ask() // its secret is another one
}

// usable is why the turn's agent cannot be started here, nil where nothing is known
// against it. A command by hand needs no agent.
func (w *worker) usable(t fold.Turn) error {
	if command, _ := thole.TurnCommandOf(t.Input); w.info.Name == "" || w.info.Available || !command.AgentRuns() {
		return nil
	}
	return thole.Errorf(thole.CodeUnsupported, "%s cannot run here: %s", w.info.Title, w.info.Problem).WithHint("%s", w.info.Fix)
}

// moved reports whether a turn's run was in another executor than this: here it
// would begin again, under the ids of events that the thread knows already.
func moved(t fold.Turn, id thole.ExecutorID) bool {
	return (t.Phase == thole.PhaseRunning || t.Phase == thole.PhaseWaitingHuman) && t.Executor != "" && t.Executor != id
}

// recall is where the thread's last turn ran.
func (w *worker) recall(id thole.ThreadID) (*place, bool) {
	w.mu.Lock()
	p, ok := w.warm[id]
	w.mu.Unlock()
	if ok {
		p.starved = w.starvations(p.row.ID)
	}
	return &p, ok
}

func (w *worker) remember(p *place, t fold.Turn) {
	if command, _ := thole.TurnCommandOf(t.Input); command.AgentReads() {
		p.spoken = t.Number
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cfg.Scope == executor.ScopeThread {
		w.warm[t.Thread] = *p
	}
}

func (w *worker) forget(id thole.ThreadID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, ok := w.warm[id]; ok {
		p.client.Close()
		delete(w.warm, id)
	}
}

// starved reports whether a place ran out of memory since it was prepared.
func (w *worker) starved(p *place) bool { return w.starvations(p.row.ID) > p.starved }

func (w *worker) starvations(id thole.ExecutorID) int {
	if m, ok := w.cfg.Driver.(executor.Memory); ok {
		return m.Starved(id)
	}
	return 0
}

// prepare finds or makes the turn's executor and brings it to where agents may
// run: started, restored, linked, validated. A warm one costs no durable write.
func (w *worker) prepare(ctx context.Context, th fold.Thread, t fold.Turn) (*place, error) {
	want := executor.Row{ID: thole.NewID[thole.ExecutorID](w.cfg.Now()), Thread: th.ID, Scope: w.cfg.Scope, Driver: w.cfg.Driver.Name()}
	if w.cfg.Scope == executor.ScopeTurn {
		want.Turn = t.ID
	}
	row, err := w.cfg.Rows.Ensure(ctx, want)
	if err != nil {
		return nil, fmt.Errorf("place turn: %w", err)
	}
	if t.Interrupted && !row.Restored {
		return nil, errInterrupted // where nothing is restored no agent has begun
	}
	if err := w.still(row); err != nil {
		return nil, err
	}
	if !row.Restored {
		if err := w.sayGivenUp(ctx, row, t); err != nil {
			return nil, err
		}
	}
	p := &place{row: row}
	cold := row.State != executor.RowRunning || !row.Restored
	if cold {
		if err := w.phase(ctx, row.ID, thole.PhaseClaimed); err != nil {
			return nil, err
		}
	}
	if err = w.start(ctx, p, th); err == nil && !p.row.Restored {
		err = w.restore(ctx, p, th)
	}
	if err != nil && t.Interrupted && ctx.Err() == nil && !isFenced(err) {
		err = errInterrupted // nobody wants it tried again
	}
	return p, err
}

// restore brings a fresh executor to where agents may run, unless the turn is
// interrupted meanwhile.
func (w *worker) restore(ctx context.Context, p *place, th fold.Thread) error {
	ctx, release, err := w.untilInterrupted(ctx)
	if err != nil {
		return err
	}
	defer release()
	err = w.lay(ctx, p, th, func(ctx context.Context, s thole.Phase) error { return w.phase(ctx, p.row.ID, s) })
	if errors.Is(context.Cause(ctx), errInterrupted) {
		return errInterrupted
	}
	return err
}

// lay restores, links and validates a fresh executor's files, and calls note before each.
func (w *worker) lay(ctx context.Context, p *place, th fold.Thread, note func(context.Context, thole.Phase) error) error {
	steps := []struct {
		phase thole.Phase
		what  measure.What
		do    func(context.Context, ExecutorWorkspace) error
	}{
		{thole.PhaseRestoring, measure.Restore, w.cfg.Workspaces.Restore},
		{thole.PhaseLinking, measure.Link, w.cfg.Workspaces.Link},
		{thole.PhasePreparing, measure.Validate, w.cfg.Workspaces.Validate},
	}
	for _, s := range steps {
		err := note(ctx, s.phase)
		if err == nil {
			err = w.step(ctx, s.what, w.inTime(errSlowRestore, func(ctx context.Context) error { return s.do(ctx, w.target(th, p)) }))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.phase, err)
		}
	}
	ok, err := w.cfg.Rows.MarkRestored(ctx, p.row.ID)
	return expect(ok, err, "record restore: the executor is not running any more")
}

// start makes sure that the executor runs and fills in how to reach it.
func (w *worker) start(ctx context.Context, p *place, th fold.Thread) error {
	info, err := w.cfg.Driver.Inspect(ctx, p.row.ID)
	if err != nil || info.State != executor.Running {
		defer func() { w.booted(p.row.ID) }()
		err = w.step(ctx, measure.Start, func(ctx context.Context) (err error) {
			info, err = w.boot(ctx, p, th, info.State == executor.Missing)
			return err
		})
		if err != nil {
			return err
		}
	}
	// The row may lag: the process that started it did not live to say so.
	if p.row.State != executor.RowRunning {
		ok, err := w.cfg.Rows.MarkRunning(ctx, p.row.ID)
		if err := expect(ok, err, "record start: the executor was deleted meanwhile"); err != nil {
			return err
		}
		p.row.State = executor.RowRunning
	}
	p.info, p.starved = info, w.starvations(p.row.ID)
	p.client = executorclient.Dial(info.Endpoint, info.Token)
	return nil
}

// boot creates what is missing and starts it, no faster than the throttle.
func (w *worker) boot(ctx context.Context, p *place, th fold.Thread, missing bool) (executor.Info, error) {
	if missing && p.row.State != executor.RowCreating {
		// It was there once and is gone: its row ends, and another takes its place.
		if err := w.retireRow(ctx, p.row.ID); err != nil {
			return executor.Info{}, err
		}
		fresh := p.row
		fresh.ID = thole.NewID[thole.ExecutorID](w.cfg.Now())
		row, err := w.cfg.Rows.Ensure(ctx, fresh)
		if err != nil {
			return executor.Info{}, err
		}
		p.row = row
	}
	if err := w.makeRoom(ctx, p.row.ID); err != nil {
		return executor.Info{}, err
	}
	if err := w.starts.Wait(ctx); err != nil {
		return executor.Info{}, err
	}
	spec := executor.Spec{ID: p.row.ID, Thread: th.ID, Owner: th.Owner, Scope: p.row.Scope, Limits: w.cfg.Room, Files: th.Files}
	if err := w.cfg.Driver.Create(ctx, spec); err != nil {
		return executor.Info{}, fmt.Errorf("create executor: %w", err)
	}
	info, err := w.cfg.Driver.Start(ctx, p.row.ID)
	if err != nil {
		return executor.Info{}, fmt.Errorf("start executor: %w", err)
	}
	p.row.State = "" // to be recorded
	return info, nil
}

// expect turns a failed compare-and-set into a conflict error.
func expect(ok bool, err error, otherwise string) error {
	if err == nil && !ok {
		err = thole.Errorf(thole.CodeConflict, "%s", otherwise)
	}
	return err
}

func (w *worker) phase(ctx context.Context, id thole.ExecutorID, p thole.Phase) error {
	err := w.cfg.Threads.SetPhase(ctx, w.ref(id), p, "")
	if thole.CodeOf(err) == thole.CodeConflict && !isFenced(err) {
		return nil // an earlier worker got further; phases only move forward
	}
	return err
}

func (w *worker) target(th fold.Thread, p *place) ExecutorWorkspace {
	t := ExecutorWorkspace{Thread: th, Turn: w.lease.Turn, Executor: p.row.ID, Client: p.client, Token: w.lease.Token}
	if files, ok := w.cfg.Driver.(executor.Files); ok {
		t.Dir, _ = files.WorkspaceDir(p.row.ID)
		t.Data, _ = files.DataDir(p.row.ID)
	}
	return t
}

// here is the directory of the user that a thread writes in place.
func here(s thole.Source) string {
	if s.InPlace() {
		return s.Dir
	}
	return ""
}
