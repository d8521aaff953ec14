package runner

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"sync"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/thread"
)

// run takes one turn to its end. It reports whether the thread should be looked
// at again.
func (w *worker) run(t fold.Thread, turn fold.Turn) bool {
	ctx, stop := context.WithCancel(w.r.ctx)
	defer stop()
	w.mu.Lock()
	w.turn, w.stop, w.running, w.steerable, w.stopped, w.waiting = turn.ID, stop, false, false, turn.Interrupted, nil
	for _, m := range turn.Steers {
		w.waiting = append(w.waiting, steer{m.Input, m.ClientID})
	}
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.turn, w.running = "", false
		w.mu.Unlock()
	}()

	ref := w.ref(turn.ID)
	for _, p := range []thole.Phase{thole.PhaseClaimed, thole.PhasePreparing} {
		if turn.Phase == p || turn.Phase == thole.PhasePreparing {
			continue
		}
		// Not under ctx: an interrupt ends it, and the turn must come to its end all
		// the same.
		if err := w.r.threads.SetPhase(w.r.ctx, ref, p, ""); err != nil {
			return false // somebody else moved it, and wakes us if it is ours again
		}
	}
	runID := turn.ID
	if turn.Run > 0 {
		runID = provider.StableID[thole.TurnID]("run", string(turn.ID), strconv.Itoa(turn.Run))
	}
	out := newApplier(w.r.threads, ref, stop)
	if err := w.drive(ctx, t, turn, runID, out); err != nil {
		out.emit(w.failure(runID, err))
	}
	if err := out.close(); err != nil {
		if thole.CodeOf(err) != thole.CodeNotFound && thole.CodeOf(err) != thole.CodeConflict {
			return false
		}
	}
	w.settle(ref)
	return true
}

// drive opens the session and runs the turn on it. An error means that the turn
// did not begin.
func (w *worker) drive(ctx context.Context, t fold.Thread, turn fold.Turn, runID thole.TurnID, out *applier) error {
	if name := turn.Settings.Provider; name != "" && name != w.r.agent.Name() {
		return thole.Errorf(thole.CodeUnsupported, "there is no agent called %q here", name).WithHint("choose the scripted one")
	}
	in := provider.Turn{
		ID: runID, Input: turn.Input, ClientID: turn.ClientID,
		Settings: turn.Settings,
	}
	if turn.Reply != "" {
		reply, err := w.reply(ctx, turn.Reply)
		if err != nil {
			return err
		}
		in.Reply, in.Input = reply, nil
	}
	if errand, line := thole.ErrandOf(turn.Input); errand == thole.ErrandShell {
		place, err := w.r.place(t.ID)
		if err == nil {
			provider.RunShell(ctx, runID, line, place.Dir, map[string]string{"PATH": "/usr/bin:/bin"}, out.emit)
		}
		return err
	}
	s, err := w.open(ctx, t, turn)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.running = true
	stopped := w.stopped
	w.mu.Unlock()
	if stopped {
		return context.Canceled
	}
	begun, delivered := make(chan struct{}), make(chan struct{})
	var once sync.Once
	go func() {
		defer close(delivered)
		<-begun
		w.deliver(ctx, s)
	}()
	defer func() {
		once.Do(func() { close(begun) })
		<-delivered
	}()
	return s.Run(ctx, in, func(e event.Event) {
		once.Do(func() { close(begun) }) // from here on the agent takes steers
		out.emit(e)
	})
}

// deliver hands over the messages that came before the agent could take them.
// What it cannot take returns to the queue with the turn's end.
func (w *worker) deliver(ctx context.Context, s provider.Session) {
	for {
		w.mu.Lock()
		if len(w.waiting) == 0 {
			w.steerable = true
			w.mu.Unlock()
			return
		}
		m := w.waiting[0]
		w.waiting = w.waiting[1:]
		w.mu.Unlock()
		_ = s.Steer(ctx, m.input, m.clientID)
	}
}

func (w *worker) reply(ctx context.Context, ask thole.AskID) (*provider.Reply, error) {
	asks, err := w.r.threads.Asks(ctx, thole.SystemActor, w.thread, false)
	if err != nil {
		return nil, err
	}
	for _, a := range asks {
		if a.Ask.ID == ask && a.Answer != nil {
			return &provider.Reply{Ask: a.Ask, Answer: *a.Answer}, nil
		}
	}
	return nil, thole.Errorf(thole.CodeInternal, "the answer to ask %s is missing", ask)
}

// open returns the session, the one of the turn before if it still fits.
func (w *worker) open(ctx context.Context, t fold.Thread, turn fold.Turn) (provider.Session, error) {
	cfg, err := w.r.place(t.ID)
	if err != nil {
		return nil, err
	}
	set := turn.Settings
	cfg.Thread, cfg.Model, cfg.Effort, cfg.Profile = t.ID, set.Model, set.Effort, set.Profile
	cfg.Instructions, cfg.Options = set.Instructions, set.Options
	if cfg.Resume = t.NativeID; cfg.Resume == "" && t.Origin != "" {
		cfg.Resume, cfg.Fork = t.Origin, true
	}
	w.mu.Lock()
	s := w.session
	w.mu.Unlock()
	if s != nil && w.fits(cfg) {
		return s, nil
	}
	w.closeSession()
	if s, err = w.r.agent.Open(ctx, cfg); err != nil {
		return nil, err
	}
	w.opened = cfg
	w.mu.Lock()
	w.session = s
	w.mu.Unlock()
	return s, nil
}

// fits reports whether the open session can take a turn with this
// configuration. Model, effort and profile go with the turn.
func (w *worker) fits(cfg provider.SessionConfig) bool {
	o := w.opened
	return o.Dir == cfg.Dir && o.Data == cfg.Data && o.Instructions == cfg.Instructions && maps.Equal(o.Options, cfg.Options)
}

// failure is the last word about a turn that did not begin.
func (w *worker) failure(run thole.TurnID, err error) event.Event {
	w.mu.Lock()
	stopped := w.stopped
	w.mu.Unlock()
	ended := &provider.Ended{Outcome: thole.OutcomeFailed, Error: &thole.TurnError{
		Code: thole.ErrProviderCrashed, Message: err.Error(), Hint: thole.HintOf(err),
	}}
	if stopped || errors.Is(err, context.Canceled) {
		ended = &provider.Ended{Outcome: thole.OutcomeInterrupted}
	}
	return event.Event{
		ID: provider.StableID[thole.EventID]("runner", string(run), "ended"), Kind: event.TurnEnded, Turn: run, Data: ended.Data()}
}

// settle walks the rest of the pipeline, which has no parts here. A turn that
// is parked on an ask lets go of the session.
func (w *worker) settle(ref thread.TurnRef) {
	ctx := context.WithoutCancel(w.r.ctx)
	t, err := w.r.threads.Turn(ctx, thole.SystemActor, ref.Thread, ref.Turn)
	if err != nil {
		return
	}
	if t.Deferred != "" {
		w.closeSession()
	}
	if t.Outcome == "" || t.Phase.Terminal() {
		return
	}
	_ = w.r.threads.SetPhase(ctx, ref, t.Outcome.Phase(), "") // refused only where somebody else was faster
}
