package opencode

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
)

// settle is how long the end of a turn may lag behind the server's word that it
// is idle: after an abort the last updates come later.
const settle = 2 * time.Second

// doubtful is how long a turn goes without an event before it reads again how
// things stand.
const doubtful = 20 * time.Second

// run is one turn in progress. Everything but lock belongs to whoever acts by it,
// which mostly is the reader of the event stream.
type run struct {
	s      *session
	srv    *server
	feed   *feed
	em     *provider.Emitter
	d      *decoder
	turn   provider.Turn
	stance stance
	model  *modelRef
	effort string

	lock *provider.TurnLock

	asks   map[thole.AskID]*pending
	seen   map[string]bool        // permissions and questions that were handled
	steers map[string]*event.Item // steering messages not taken up yet, by id

	stall *provider.Alarm // a silent model call
	grace *provider.Alarm // an abort that is not obeyed
	quiet *provider.Alarm // idle, but not everything has settled
	doubt *provider.Alarm // no event for long: the stream is not trusted to be complete

	stalled bool
	begun   bool         // the server has the turn's message
	failed  *nativeError // a session.error that belongs to no message
	late    *thole.TurnError
}

// Run takes one turn to its end.
func (s *session) Run(ctx context.Context, turn provider.Turn, emit func(event.Event)) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	default:
		return thole.Errorf(thole.CodeBusy, "opencode: a turn is running")
	}
	r := &run{
		s: s, turn: turn, lock: provider.NewTurnLock(), em: provider.NewEmitter(turn.ID, emit),
		asks: map[thole.AskID]*pending{}, seen: map[string]bool{}, steers: map[string]*event.Item{},
	}
	r.stall = r.lock.NewAlarm(func() {
		if !r.d.busyTools() && len(r.asks) == 0 {
			r.stalled = true
			r.abort(s.opts.StopGrace)
		}
	})
	r.grace = r.lock.NewAlarm(func() { r.srv.close(0) })
	r.quiet = r.lock.NewAlarm(r.conclude)
	r.doubt = r.lock.NewAlarm(func() {
		r.doubt.Set(doubtful)
		r.resync()
	})
	input := turn.Input
	if turn.Reply != nil {
		input = thole.Text(turn.Reply.Prose())
	}
	parts, err := s.parts(input)
	if err != nil {
		return err
	}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	prompt := s.messageID()
	r.d = newDecoder(r.em, s.cfg.Dir, s.NativeID(), prompt)
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errClosed()
	}
	s.run = r
	s.mu.Unlock()
	defer r.feed.to(nil)
	stop := func() {}
	r.lock.Act(func() {
		r.feed.to(r)
		if turn.Compacts() {
			stop, err = r.compact(ctx)
		} else {
			err = r.send(ctx, prompt, parts)
		}
		if err != nil {
			r.lock.End(provider.Ended{})
			return
		}
		r.em.Session(s.NativeID())
		if turn.Reply != nil {
			r.em.Ask(turn.Reply.Ask)
			r.em.Resolve(turn.Reply.Ask.ID, &turn.Reply.Answer)
		}
		r.stall.Set(s.opts.Stall)
		r.doubt.Set(doubtful)
	})
	ended := r.lock.Wait(ctx, r.srv.proc.Done(), s.opts.StopGrace, r.halt, r.crashed)
	if ctx.Err() != nil {
		s.drop(0)
	}
	s.mu.Lock()
	s.run = nil
	s.mu.Unlock()
	if err != nil {
		return err
	}
	stop()
	r.finish(ended)
	return nil
}

// prepare resolves the turn's settings and brings a server.
func (r *run) prepare(ctx context.Context) error {
	s, t := r.s, r.turn
	profile, model := s.cfg.Profile, s.cfg.Model
	if t.Profile != "" {
		profile = t.Profile
	}
	if t.Model != "" {
		model = t.Model
	}
	if r.effort = s.cfg.Effort; t.Effort != "" {
		r.effort = t.Effort
	}
	var err error
	if r.model, err = modelOf(model); err != nil {
		return err
	}
	if r.stance, err = stanceOf(profile, s.agents); err != nil {
		return err
	}
	r.srv, r.feed, err = s.alive(ctx)
	return err
}

// letters are those of the server's ids.
const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// messageID makes an id of the server's own form: time first, so that messages
// sort, and never the same twice.
func (s *session) messageID() string {
	id := time.Now().UnixMilli() * 0x1000
	if id <= s.lastID {
		id = s.lastID + 1
	}
	s.lastID = id
	var b [14]byte
	rand.Read(b[:])
	for i := range b {
		b[i] = letters[int(b[i])%len(letters)]
	}
	return fmt.Sprintf("msg_%012x%s", uint64(id)&(1<<48-1), b[:])
}

// send hands a message to the server, which answers before it acts on it.
func (r *run) send(ctx context.Context, id string, parts []any) error {
	body := map[string]any{"messageID": id, "parts": parts, "agent": r.stance.agent}
	if r.model != nil {
		body["model"] = r.model
	}
	if r.effort != "" {
		body["variant"] = r.effort
	}
	if r.s.cfg.Instructions != "" {
		body["system"] = r.s.cfg.Instructions
	}
	return r.srv.call(ctx, http.MethodPost, "/session/"+r.s.NativeID()+"/prompt_async", body, nil)
}

// halt stops the turn because somebody asked for it.
func (r *run) halt(grace time.Duration) {
	r.em.Interrupt()
	r.abort(grace)
}

// abort asks the server to stop, and kills it when it does not within grace.
func (r *run) abort(grace time.Duration) {
	r.grace.Set(grace)
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	_ = r.srv.call(ctx, http.MethodPost, "/session/"+r.s.NativeID()+"/abort", nil, nil) // the grace ends it otherwise
}

func (r *run) crashed() {
	why := r.srv.proc.Diagnosis()
	r.s.drop(0)
	switch {
	case r.stalled:
		r.lock.End(r.stallEnd())
	default:
		r.lock.End(provider.Ended{Outcome: thole.OutcomeFailed, Error: provider.Failure(thole.ErrProviderCrashed, why, 0)})
	}
}

func (r *run) stallEnd() provider.Ended {
	return provider.Ended{Outcome: thole.OutcomeFailed, Error: provider.Failure(thole.ErrNetwork,
		fmt.Sprintf("the model sent nothing for %v", r.s.opts.Stall), 0)}
}

// idle is the server's word that it has nothing to do. It is the end when the
// turn's messages are over; after an abort it comes once too early.
func (r *run) idle() {
	if !r.begun {
		return // of an earlier turn
	}
	if r.d.settled() {
		r.conclude()
	} else {
		r.quiet.Set(settle)
	}
}

// conclude ends the turn by the main agent's last message.
func (r *run) conclude() {
	ended := provider.Ended{Outcome: thole.OutcomeCompleted}
	native := r.failed
	last := r.d.last()
	if last != nil {
		native = last.info.Error
	}
	switch {
	case r.late != nil:
		ended = provider.Ended{Outcome: thole.OutcomeFailed, Error: r.late}
	case r.stalled:
		ended = r.stallEnd()
	case r.em.Interrupted() && (native != nil || last == nil || !last.over() || last.info.Finish != "stop"):
		ended.Outcome = thole.OutcomeInterrupted
	case native != nil:
		f, real := failureOf(native)
		if !real {
			ended.Outcome = thole.OutcomeInterrupted
		} else {
			ended = provider.Ended{Outcome: thole.OutcomeFailed, Error: f}
		}
	case last == nil:
		ended = provider.Ended{Outcome: thole.OutcomeFailed, Error: provider.Failure(thole.ErrProviderCrashed, "opencode ended the turn without an answer", 0)}
	}
	r.lock.End(ended)
}

func (r *run) finish(ended provider.Ended) {
	r.stall.Off()
	r.grace.Off()
	r.quiet.Off()
	r.doubt.Off()
	r.em.Usage(r.d.total())
	r.em.End(ended)
}
