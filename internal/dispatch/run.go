package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/measure"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/thread"
)

// maxRecoveries is how often one worker takes a turn up again after its provider
// was lost with its executor.
const maxRecoveries = 3

// maxMoves is how often it does because a person changed what is guarded.
const maxMoves = 20

// run takes a turn to its outcome, or to where it is parked.
func (w *worker) run(ctx context.Context, th fold.Thread, t fold.Turn) error {
	ctx, cancel := context.WithTimeoutCause(ctx, w.cfg.TurnTimeout, errTooLong)
	defer cancel()
	var unread error
	moves := 0
	for n := 0; n < maxRecoveries; {
		err := w.runOnce(ctx, th, t)
		if errors.Is(err, errInterrupted) {
			return w.endUnstarted(ctx, t)
		}
		if !errors.Is(err, errLost) {
			return tooLong(ctx, err)
		}
		w.log.Info("provider lost", "turn", t.ID, "thread", th.ID, "err", err)
		lost := err
		if !errors.Is(err, errDiedBeforeOutput) {
			w.forget(th.ID) // what was lost is looked at from the beginning
		}
		if errors.Is(err, errDead) && unread == nil {
			unread = err // its log may hold more than we have read, even the turn's end
		} else if err = w.again(ctx, t, cmp.Or(unread, err)); err != nil {
			return err
		} else if unread = nil; errors.As(lost, new(*movedError)) && moves < maxMoves {
			moves++
		} else {
			n++
		}
		if th, err = w.cfg.Threads.Get(ctx, thole.SystemActor, th.ID); err != nil {
			return err
		}
		if t, err = w.cfg.Threads.Turn(ctx, thole.SystemActor, th.ID, t.ID); err != nil || t.Outcome != "" {
			return err
		}
	}
	return thole.Errorf(thole.CodeGone, "the executor was lost %d times while this turn ran", maxRecoveries).
		WithHint("look at the agent's last command; it may need more memory than the executor has")
}

// again takes a lost turn back to the start of the pipeline: what was open is
// closed with the text it has, and the next run is distinguished by its number.
func (w *worker) again(ctx context.Context, t fold.Turn, lost error) error {
	why := "the executor was lost; taking the turn up again"
	var moved *movedError
	switch {
	case errors.As(lost, &moved):
		why = moved.why
	case errors.Is(lost, errOutOfMemory):
		why = "the executor went beyond its memory limit and was lost; taking the turn up again"
	case errors.Is(lost, errDiedBeforeOutput):
		why = "the agent ended before it began; taking the turn up again"
	}
	// What went straight to a warm executor may still be queued, and only what has
	// left the queue can go back to it.
	if err := w.phase(ctx, t.Executor, thole.PhaseClaimed); err != nil {
		return err
	}
	return w.cfg.Threads.SetPhase(ctx, w.ref(t.Executor), thole.PhaseQueued, why)
}

var (
	errTooLong = thole.Errorf(thole.CodeGone, "the turn ran longer than it may").WithHint("raise turns.timeout, or split the work")
	// errInterrupted: the turn is to stop, and no agent works on it.
	errInterrupted = errors.New("dispatch: turn interrupted while no agent works on it")
	// errDeaf: the same, because its executor, which did not end it, was stopped: its
	// executord hangs, or its agent has taken it over.
	errDeaf = fmt.Errorf("%w: the executor did not end it", errInterrupted)
	// errLost: the run's provider is gone and its end will never come.
	errLost = errors.New("dispatch: run lost")
	// errDead: the same, and its executor with it.
	errDead = fmt.Errorf("%w with its executor", errLost)
	// errDiedBeforeOutput: the same, and the agent had shown nothing.
	errDiedBeforeOutput = fmt.Errorf("%w before its agent showed anything", errLost)
	// errOutOfMemory: the same, beyond its memory limit.
	errOutOfMemory = fmt.Errorf("%w beyond its memory limit", errLost)
)

// endUnstarted ends a turn that was interrupted while no agent works on it.
func (w *worker) endUnstarted(ctx context.Context, t fold.Turn) error {
	return w.cfg.Threads.Apply(ctx, w.ref(t.Executor), []event.Event{{
		ID: provider.StableID[thole.EventID]("interrupted", string(t.ID)), Kind: event.TurnEnded, Turn: t.ID, Time: w.cfg.Now().UTC(), Data: provider.Ended{Outcome: thole.OutcomeInterrupted}.Data()}})
}

// tooLong names the reason when a turn's time is over.
func tooLong(ctx context.Context, err error) error {
	if err == nil || !errors.Is(context.Cause(ctx), errTooLong) {
		return err
	}
	return errTooLong
}

// runOnce runs a turn in its executor, or follows the run that is already there.
func (w *worker) runOnce(ctx context.Context, th fold.Thread, t fold.Turn) error {
	if command, turn := thole.TurnCommandOf(t.Input); command == thole.TurnCommandUndo {
		return w.undo(ctx, th, t, turn)
	}
	if th.Titles() {
		return w.title(ctx, t)
	}
	if t.Phase == thole.PhaseWaitingHuman {
		w.withdraw(ctx) // calls of tools that waited in another process
	}
	req, err := w.request(ctx, th, t, runID(t))
	if err != nil {
		return err
	}
	p, run, err := w.place(ctx, th, t, req)
	if err != nil {
		return err
	}
	if w.cfg.Scope == executor.ScopeTurn {
		defer p.client.Close()
	}
	err = w.step(ctx, measure.Run, func(ctx context.Context) error { return w.follow(ctx, p, run, t.Run) })
	if errors.Is(err, errLost) && w.starved(p) {
		err = errors.Join(errOutOfMemory, err)
	}
	return err
}

// runID names a run: the turn's own id the first time, another one each time the
// turn is taken up again, because providers derive event ids from it.
func runID(t fold.Turn) thole.TurnID {
	if t.Run == 0 {
		return t.ID
	}
	return provider.StableID[thole.TurnID]("run", string(t.ID), strconv.Itoa(t.Run))
}

// request says what to run. A turn that is taken up again after a loss resumes
// the agent's own session and asks it to go on.
func (w *worker) request(ctx context.Context, th fold.Thread, t fold.Turn, id thole.TurnID) (wire.RunRequest, error) {
	s := t.Settings
	s.Network = th.Settings.Network // as it is now, not as it was when the turn was sent
	w.network = s.Network
	req := wire.RunRequest{
		Turn: provider.Turn{ID: id, Input: t.Input, ClientID: t.ClientID, Settings: s, Schema: t.Schema},
		For:  t.ID, Thread: th.ID, Provider: s.Provider,
		Session: wire.SessionSettings{Resume: th.NativeID, Tools: th.Tools, Settings: s},
	}
	if th.NativeID == "" && th.Origin != "" {
		req.Session.Resume, req.Session.Fork = th.Origin, true
	}
	input := t.Input
	switch command, objective := thole.TurnCommandOf(input); command {
	case thole.TurnCommandReview:
		input = thole.Text(thole.ReviewPrompt(input))
	case thole.TurnCommandGoal:
		input = thole.Text(goalPrompt(objective, th.Goal))
	}
	if command, _ := thole.TurnCommandOf(input); command != "" {
		return req, w.turnCommand(ctx, command, th, t, &req)
	}
	var err error
	if t.Reply != "" {
		req.Turn.Input = nil
		req.Turn.Reply, req.Receipt, err = w.reply(ctx, th, t.Reply)
		if r := req.Turn.Reply; err == nil && ours(r.Ask) { // the CLI knows nothing of it
			req.Turn.Input, req.Turn.Reply, req.Receipt = retell(r.Ask, r.Answer), nil, ""
		}
		return req, err
	}
	if t.Run > 0 && th.NativeID != "" {
		if begun, err := w.begun(ctx, shows); err != nil || begun {
			req.Turn.Input = thole.Text(resumePrompt)
			return req, err
		}
		if err := w.startNewSession(ctx, t, &req); err != nil {
			return req, err
		}
	}
	if th.Retell {
		req.Session.Resume, req.Session.Fork, req.Session.Fresh = "", false, true
		told, err := w.retold(ctx, th, t)
		req.Turn.Input = before(told, input)
		return req, err
	}
	heard, err := w.heard(ctx, th, t)
	req.Turn.Input = append(heard, input...)
	return req, err
}

// startNewSession lets a thread's first turn that was lost before its agent showed or asked
// anything begin with a new session: agents write their record when they begin to
// work, so there may be none to resume.
func (w *worker) startNewSession(ctx context.Context, t fold.Turn, req *wire.RunRequest) error {
	if t.Number != 1 {
		return nil
	}
	asks, err := w.cfg.Threads.Asks(ctx, thole.SystemActor, t.Thread, false)
	if len(asks) == 0 {
		req.Session.Resume = ""
	}
	return err
}

// resumePrompt is sent to an agent that lost its process in the middle of a turn.
const resumePrompt = "Your process was restarted in the middle of the last request. Look at what is already done, then go on with it from there."

// begun reports whether an item of the turn says that it had begun before it was lost; if
// not, the agent hears the request again.
func (w *worker) begun(ctx context.Context, says func(event.Item) bool) (bool, error) {
	page, err := w.cfg.Threads.Items(ctx, thole.SystemActor, w.lease.Thread, w.lease.Turn, thread.PageParams{Limit: 20})
	return slices.ContainsFunc(page.Items, func(it fold.ItemRecord) bool { return says(it.Item) }), err
}

// begins reports whether an item is of what a turn does.
func begins(it event.Item) bool {
	return it.Kind != event.ItemUserMessage && it.Kind != event.ItemSystem
}

// shows reports whether an item is an agent's own, which the setup before it is not.
func shows(it event.Item) bool {
	return begins(it) && (it.Command == nil || !it.Command.User)
}

func (w *worker) reply(ctx context.Context, th fold.Thread, id thole.AskID) (*provider.Reply, thole.EventID, error) {
	asks, err := w.cfg.Threads.Asks(ctx, thole.SystemActor, th.ID, false)
	if err != nil {
		return nil, "", err
	}
	for _, a := range asks {
		if a.Ask.ID == id && a.State == event.AskAnswered {
			return &provider.Reply{Ask: a.Ask, Answer: *a.Answer}, a.Receipt, nil
		}
	}
	return nil, "", thole.Errorf(thole.CodeInternal, "ask %s has no answer", id)
}
