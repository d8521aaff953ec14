package runner

import (
	"context"
	"errors"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/thread"
)

// worker runs one thread's turns, one after another, and keeps the session for
// the next.
type worker struct {
	r      *Runner
	thread thole.ThreadID
	wake   chan struct{} // holds one token when there may be work
	quit   chan struct{} // closed: end after the turn that runs

	// Used by loop's goroutine only.
	opened provider.SessionConfig // of session

	mu      sync.Mutex // guards what follows
	turn    thole.TurnID
	session provider.Session
	stop    context.CancelFunc // ends the turn by force
	running bool               // the agent has the turn
	// steerable: what came before has been handed over, so order is kept.
	steerable bool
	stopped   bool    // somebody asked for its end
	waiting   []steer // given before the agent had the turn
	quitted   bool
}

type steer struct {
	input    []thole.Input
	clientID string
}

func newWorker(r *Runner, id thole.ThreadID) *worker {
	w := &worker{r: r, thread: id, wake: make(chan struct{}, 1), quit: make(chan struct{})}
	w.again()
	return w
}

func (w *worker) again() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// loop runs open turns until the thread is idle, then keeps the session for a
// while.
func (w *worker) loop() {
	defer w.closeSession()
	timer := time.NewTimer(idle)
	defer timer.Stop()
	for {
		select {
		case <-w.wake:
			for w.once() {
			}
			timer.Reset(idle)
			continue
		default:
		}
		select {
		case <-w.wake:
			w.again()
		case <-w.quit:
			w.r.retire(w)
			return
		case <-timer.C:
			if w.r.retire(w) {
				return
			}
			timer.Reset(idle)
		}
	}
}

// once runs the thread's open turn, if it has one to run, and reports whether
// to look again.
func (w *worker) once() bool {
	select {
	case <-w.quit:
		return false
	default:
	}
	ctx := w.r.ctx
	t, err := w.r.threads.Get(ctx, thole.SystemActor, w.thread)
	if err != nil || t.Open == "" {
		return false
	}
	turn, err := w.r.threads.Turn(ctx, thole.SystemActor, w.thread, t.Open)
	if err != nil || turn.Outcome != "" || turn.Deferred != "" {
		return false
	}
	return w.run(t, turn)
}

func (w *worker) steer(ctx context.Context, turn thole.TurnID, input []thole.Input, clientID string) error {
	w.mu.Lock()
	if w.turn != turn {
		w.mu.Unlock()
		return thread.ErrNoTurn
	}
	if !w.steerable {
		w.waiting = append(w.waiting, steer{input, clientID})
		w.mu.Unlock()
		return nil
	}
	s := w.session
	w.mu.Unlock()
	err := s.Steer(ctx, input, clientID)
	switch {
	case errors.Is(err, provider.ErrUnsupported):
		return thread.ErrNotSteerable
	case errors.Is(err, provider.ErrNoTurn):
		return thread.ErrNoTurn
	}
	return err
}

func (w *worker) answer(ctx context.Context, turn thole.TurnID, ask thole.AskID, a event.Answer) error {
	w.mu.Lock()
	s, ok := w.session, w.turn == turn && w.running
	w.mu.Unlock()
	if !ok {
		return thread.ErrNoTurn
	}
	return s.Answer(ctx, ask, a)
}

// interrupt stops the turn gracefully, and by force when the agent does not
// listen. A session that is only being opened is given up at once.
func (w *worker) interrupt(ctx context.Context, turn thole.TurnID) error {
	w.mu.Lock()
	if w.turn != turn {
		w.mu.Unlock()
		return thread.ErrNoTurn
	}
	w.stopped = true
	s, running, stop := w.session, w.running, w.stop
	w.mu.Unlock()
	if !running {
		stop()
		return nil
	}
	force := time.AfterFunc(stopGrace, stop)
	context.AfterFunc(w.r.ctx, func() { force.Stop() })
	return s.Stop(ctx)
}

func (w *worker) close(ctx context.Context) {
	w.mu.Lock()
	if !w.quitted {
		w.quitted = true
		close(w.quit)
	}
	turn := w.turn
	w.mu.Unlock()
	if turn != "" {
		_ = w.interrupt(ctx, turn)
	}
}

func (w *worker) closeSession() {
	w.mu.Lock()
	s := w.session
	w.session = nil
	w.mu.Unlock()
	if s != nil {
		_ = s.Close()
	}
}

func (w *worker) ref(turn thole.TurnID) thread.TurnRef {
	return thread.TurnRef{Thread: w.thread, Turn: turn, Executor: w.r.instance}
}
