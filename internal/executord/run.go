package executord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/executord/eventlog"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/provider"
)

// run is one try at a turn and its log. The goroutine of drive is its only writer.
type run struct {
	log    *eventlog.Log
	cancel context.CancelFunc
	done   chan struct{} // closed when drive returned

	mu      sync.Mutex // guards what follows
	info    wire.Run
	session provider.Session // nil until open and after the end
	state   fold.State       // of what the run reported
	steered map[thole.MessageID]bool
	// receipts are of the answers that were given, "" for one that came without.
	receipts map[thole.AskID]thole.EventID
	stopped  bool // a stop was asked for
	closing  bool // executord ends under the run

	replies sync.Mutex // one answer at a time
}

// cut reports whether a run ends only because executord does. Its turn has not
// ended then: the log stays without an end, as after a crash, and another run takes
// the turn up.
func (r *run) cut(end thole.Outcome) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closing && !r.stopped && end == thole.OutcomeInterrupted
}

// goesOn records why a turn has not ended although its run has, if there is a reason: its log
// stays without an end too. Commands of a user are not run twice.
func (r *run) goesOn(why string, req wire.RunRequest) bool {
	if command, _ := thole.TurnCommandOf(req.Turn.Input); why == "" || command != "" {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return false
	}
	r.info.Again = why
	return true
}

// drive takes the turn to its end. Unless executord ends or the turn is to be taken up again,
// the log ends with exactly one EventEnded; it is sealed.
func (r *run) drive(ctx context.Context, s *Server, req wire.RunRequest) {
	defer func() { s.rest.Reset(restTime) }()
	defer r.log.Seal() // last: a client that has read to the end may have the run forgotten
	defer close(r.done)
	ended, began := false, time.Now()
	var broken error // the log, at its first failure
	var emit func(event.Event)
	emit = func(ev event.Event) {
		if ended {
			return
		}
		if ev.Kind == event.TurnEnded && !r.cut(ev.Outcome) {
			if sent, any := s.networkEvent(req.Turn.ID, s.now()); any {
				emit(sent)
			}
		}
		ended = ev.Kind == event.TurnEnded
		if ended && r.cut(ev.Outcome) {
			return
		}
		if why := s.boxes.again(began, ev); ended && r.goesOn(why, req) {
			if err := r.append(ctx, noteEvent(req.Turn.ID, s.now(), "again", why)); err != nil {
				s.logger.Warn("a note was not logged", "turn", req.Turn.ID, "err", err)
			}
			return
		}
		if ended {
			s.boxes.explain(began, &ev)
		}
		if ended && broken != nil {
			ev = endEvent(req.Turn.ID, s.now(), broken, false)
		}
		r.note(&ev)
		if err := r.append(ctx, ev); err != nil && broken == nil {
			// The log is the only record of this turn. Without it nothing the agent
			// does may count, so it stops.
			s.logger.Error("event log failed", "turn", req.Turn.ID, "err", err)
			broken = fmt.Errorf("what the agent did could not be recorded: %w", err)
			r.cancel()
		}
	}
	err := r.runTurn(ctx, s, req, emit)
	if !ended {
		emit(endEvent(req.Turn.ID, s.now(), err, ctx.Err() != nil))
	}
	r.mu.Lock()
	r.info.State, r.session = wire.RunEnded, nil
	r.mu.Unlock()
}

func (r *run) runTurn(ctx context.Context, s *Server, req wire.RunRequest, emit func(event.Event)) error {
	command, line := thole.TurnCommandOf(req.Turn.Input)
	switch {
	case command == thole.TurnCommandSetup:
		return s.setUpByHand(ctx, req.Turn.ID, emit)
	case command == "" && req.Turn.Reply == nil:
		told, err := r.setUp(ctx, s, req, emit)
		if err != nil {
			return err
		}
		input, err := layFiles(s.cfg.Dirs.Workspace, req.Turn.Input)
		if err != nil {
			return err
		}
		req.Turn.Input = append(told, input...)
	case command == thole.TurnCommandShell:
		in, err := s.boxes.shared()
		if err == nil {
			provider.RunShell(ctx, req.Turn.ID, line, s.cfg.Dirs.work(), s.environ(), in, emit)
		}
		return err
	}
	opened, err := s.sessions.open(ctx, req)
	if err != nil {
		return err
	}
	session := opened.session
	r.mu.Lock()
	r.session = session
	stopped := r.stopped
	if id := session.NativeID(); id != "" {
		r.info.NativeID = id
	}
	native := r.info.NativeID
	r.mu.Unlock()
	if stopped {
		s.sessions.finished(req, opened, nil)
		return context.Canceled
	}
	if native != "" {
		emit(event.Event{ID: sessionEventID(req.Turn.ID, native), Kind: event.ThreadUpdated, Turn: req.Turn.ID, Time: s.now(), Data: event.Data{NativeID: native}})
	}
	if s.cfg.Note != "" {
		emit(noteEvent(req.Turn.ID, s.now(), "note", s.cfg.Note))
	}
	err = session.Run(ctx, req.Turn, emit)
	s.sessions.finished(req, opened, err)
	return err
}

// note keeps what status and the ask and todo endpoints show, and says of an answer
// with which receipt it came.
func (r *run) note(ev *event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ev.Kind == event.AskResolved && ev.Answer != nil && ev.Receipt == "" {
		ev.Receipt = r.receipts[ev.AskID]
	}
	r.state.Follow(*ev)
	switch {
	case ev.Kind == event.ThreadUpdated:
		r.info.NativeID = ev.NativeID
	case len(r.state.Asks) > 0:
		r.info.State = wire.RunWaiting
	case r.info.State == wire.RunWaiting:
		r.info.State = wire.RunRunning
	}
}

// append logs one event. Deltas are repeated by their item's final form, so only
// they go without an fsync.
func (r *run) append(ctx context.Context, ev event.Event) error {
	data, err := json.Marshal(ev)
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	// The end of a turn is recorded also when its context is cancelled.
	if ev.Kind == event.TurnEnded || ev.Kind == event.NetworkUpdated {
		ctx = context.WithoutCancel(ctx)
	}
	return r.log.Append(ctx, ev.Kind != event.ItemDelta, data)
}

func (r *run) current() provider.Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.session
}

func (r *run) snapshot() wire.Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	info := r.info
	info.Cursor, _ = r.log.End()
	info.Acked = r.log.Acked()
	return info
}

func sessionEventID(turn thole.TurnID, native string) thole.EventID {
	return thole.EventID(string(turn) + "/session/" + native)
}

// noteEvent sends a turn's readers a note of thole's. Each of a turn has a key.
func noteEvent(turn thole.TurnID, now time.Time, key, text string) event.Event {
	item := event.Item{
		ID: provider.StableID[thole.ItemID](key, string(turn)), Kind: event.ItemSystem, State: event.StateCompleted,
		Text: text, Stamp: thole.Stamp{Started: now, Ended: now},
	}
	return event.Event{ID: thole.EventID(string(turn) + "/" + key), Kind: event.ItemCompleted, Turn: turn, Time: now, Data: event.Data{Item: &item, ItemID: item.ID}}
}

// endEvent ends a turn whose provider did not.
func endEvent(turn thole.TurnID, now time.Time, err error, cancelled bool) event.Event {
	ended := &provider.Ended{Outcome: thole.OutcomeInterrupted}
	if !cancelled && !errors.Is(err, context.Canceled) {
		ended = &provider.Ended{Outcome: thole.OutcomeFailed, Error: openError(err)}
	}
	return event.Event{ID: thole.EventID(string(turn) + "/ended"), Kind: event.TurnEnded, Turn: turn, Time: now, Data: ended.Data()}
}

func openError(err error) *thole.TurnError {
	te := &thole.TurnError{Code: thole.ErrProviderCrashed, Hint: thole.HintOf(err), Message: "the provider returned without ending the turn"}
	if err == nil {
		return te
	}
	te.Message = err.Error()
	switch {
	case errors.Is(err, provider.ErrMissing):
		te.Code = thole.ErrBadRequest
	case errors.Is(err, provider.ErrSessionLost):
		te.Code, te.Hint = thole.ErrBadRequest, "start a new thread; the agent's own record of this one is gone"
	case errors.Is(err, provider.ErrUnsupported):
		te.Code = thole.ErrBadRequest
	}
	return te
}
