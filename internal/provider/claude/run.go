package claude

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/strictjson"
)

// followUp is how long a turn waits for the CLI to take up what it still has in
// its own queue.
const followUp = 3 * time.Second

// run is one turn in progress. Everything but lock belongs to whoever acts by it,
// which mostly is the reader of the CLI.
type run struct {
	s    *session
	c    *conn
	em   *provider.Emitter
	d    *decoder
	turn provider.Turn

	lock *provider.TurnLock

	asks    map[thole.AskID]*pending
	calls   map[string]func(*message) // answers to our control requests
	prompt  string                    // uuid of the turn's own message
	waiting map[string]*event.Item    // messages the CLI has not taken up yet, by uuid; nil for the prompt
	result  *message                  // the last one

	stall  *provider.Alarm // a silent model call
	grace  *provider.Alarm // an interrupt that is not obeyed
	linger *provider.Alarm // a result is there, more may follow

	halted   bool // the CLI was told to stop
	stalled  bool
	deferred thole.AskID
	reply    *provider.Reply // not delivered yet
	usage    map[string]modelUsage
}

// Run takes one turn to its end.
func (s *session) Run(ctx context.Context, turn provider.Turn, emit func(event.Event)) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	default:
		return thole.Errorf(thole.CodeBusy, "claude: a turn is running")
	}
	r := &run{
		s: s, turn: turn, lock: provider.NewTurnLock(),
		asks: map[thole.AskID]*pending{}, calls: map[string]func(*message){}, waiting: map[string]*event.Item{},
	}
	r.stall = r.lock.NewAlarm(func() {
		r.stalled = true
		r.interrupt(s.opts.StopGrace)
	})
	r.grace = r.lock.NewAlarm(func() { r.c.kill() })
	r.linger = r.lock.NewAlarm(r.lingered)
	r.em = provider.NewEmitter(turn.ID, emit)
	r.d = newDecoder(r.em, s.cfg.Dir, s.todos)
	var content []any
	var err error
	if turn.Reply == nil {
		if content, err = s.content(turn.Input); err != nil {
			return err
		}
	}
	if err = r.prepare(ctx); err != nil {
		return err
	}
	if err = r.begin(content); err != nil {
		// The process died while idle: one fresh one is a fair try.
		if r.c, err = s.reconnect(ctx); err != nil {
			return err
		}
		r.usage = s.base
		if err = r.begin(content); err != nil {
			return err
		}
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errClosed()
	}
	s.run = r
	s.mu.Unlock()
	r.lock.Act(func() {
		r.em.Session(s.NativeID())
		if r.reply != nil {
			r.linger.Set(followUp)
		}
		for len(s.backlog) > 0 && !r.lock.Ended() {
			m := s.backlog[0]
			s.backlog = s.backlog[1:]
			r.hear(m)
		}
	})
	r.c.listen(listener{r.lock, r.hear})
	ended := r.lock.Wait(ctx, r.c.gone, s.opts.StopGrace, r.halt, r.crashed)
	if ctx.Err() != nil {
		s.drop(0)
	}
	s.mu.Lock()
	s.run = nil
	s.mu.Unlock()
	r.finish(ended)
	return nil
}

// prepare brings the process and its settings to what the turn wants.
func (r *run) prepare(ctx context.Context) error {
	s, t := r.s, r.turn
	profile, model, effort := s.cfg.Profile, s.cfg.Model, s.cfg.Effort
	if t.Profile != "" {
		profile = t.Profile
	}
	if t.Model != "" {
		model = t.Model
	}
	if t.Effort != "" {
		effort = t.Effort
	}
	st, err := stanceOf(profile)
	if err != nil {
		return err
	}
	s.mu.Lock()
	c, closed := s.conn, s.closed
	s.mu.Unlock()
	if closed {
		return errClosed()
	}
	// The CLI switches to bypassPermissions only when it was started for it.
	restart := c == nil || c.dead() || s.parked || st.mode == modeBypass && s.boot.mode != modeBypass
	old := s.stance
	oldModel, oldEffort := s.model, s.effort
	s.stance, s.model, s.effort = st, model, effort
	if restart {
		r.c, err = s.reconnect(ctx)
		r.usage = s.base
		return err
	}
	r.c, r.usage = c, s.base
	if st.mode != old.mode {
		r.control("set_permission_mode", map[string]any{"mode": st.mode})
	}
	if model != oldModel {
		if model == "" {
			model = "default"
		}
		r.control("set_model", map[string]any{"model": model})
	}
	if effort != oldEffort && effort != "" {
		r.control("apply_flag_settings", map[string]any{"settings": map[string]any{"effortLevel": effort}})
	}
	return nil
}

// control sends a setting; a refusal becomes a note in the turn.
func (r *run) control(subtype string, fields map[string]any) {
	id, err := r.c.control(subtype, fields)
	if err != nil {
		return // the turn's own message fails next
	}
	r.calls[id] = func(m *message) {
		if m.Response.Subtype == "error" {
			r.em.Note(subtype + ": " + m.Response.Error)
		}
	}
}

// begin hands the turn to the CLI. An answer to a deferred question waits for
// the CLI to ask again, which a resumed process does by itself.
func (r *run) begin(content []any) error {
	if r.turn.Reply != nil {
		r.reply = r.turn.Reply
		return nil
	}
	r.prompt = uuid.NewString()
	r.waiting[r.prompt] = nil
	return r.say(r.prompt, content)
}

func (r *run) say(id string, content []any) error {
	return r.c.send(map[string]any{
		"type": "user", "session_id": "", "parent_tool_use_id": nil, "uuid": id,
		"message": map[string]any{"role": "user", "content": content},
	})
}

// halt stops the turn because somebody asked for it.
func (r *run) halt(grace time.Duration) {
	r.em.Interrupt()
	r.halted = true
	r.interrupt(grace)
}

// interrupt asks the CLI to stop, and kills it when it does not within grace. A
// turn that has its result and only waits for more ends by it. Messages the CLI
// has queued would start a turn of their own afterwards, so they are taken back.
func (r *run) interrupt(grace time.Duration) {
	if r.result != nil && r.linger.On() {
		r.conclude()
		return
	}
	for id := range r.waiting {
		call, err := r.c.control("cancel_async_message", map[string]any{"message_uuid": id})
		if err == nil && id == r.prompt {
			r.calls[call] = r.takenBack
		}
	}
	_, _ = r.c.control("interrupt", nil)
	r.grace.Set(grace)
}

// takenBack ends a turn whose own message never began.
func (r *run) takenBack(m *message) {
	var b struct {
		Cancelled bool `json:"cancelled"`
	}
	if strictjson.Unmarshal(m.Response.Response, &b) == nil && b.Cancelled {
		r.lock.End(provider.Ended{Outcome: thole.OutcomeInterrupted})
	}
}

// lingered is the end of a wait for more.
func (r *run) lingered() {
	if r.reply == nil {
		r.conclude()
		return
	}
	// The CLI does not hold the question any more: say the answer in prose.
	reply := r.reply
	r.reply = nil
	r.em.Ask(reply.Ask)
	r.em.Resolve(reply.Ask.ID, &reply.Answer)
	r.prompt = uuid.NewString()
	r.waiting[r.prompt] = nil
	if r.say(r.prompt, []any{map[string]any{"type": "text", "text": reply.Prose()}}) != nil {
		r.crashed()
	}
}

// crashed ends the turn after the end of stdout. A CLI that lives on without it is
// of no use.
func (r *run) crashed() {
	r.c.proc.Finish(closeGrace)
	why := r.c.proc.Diagnosis()
	if r.c.long != nil {
		why = r.c.long.Error() + "; " + why
	}
	r.s.drop(0)
	switch {
	case r.stalled:
		r.lock.End(r.stallEnd())
	case r.result != nil && r.linger.On():
		r.conclude()
	default:
		r.lock.End(provider.Ended{Outcome: thole.OutcomeFailed, Error: failure(thole.ErrProviderCrashed, 0, why)})
	}
}

func (r *run) stallEnd() provider.Ended {
	return provider.Ended{Outcome: thole.OutcomeFailed, Error: failure(thole.ErrNetwork, 0,
		fmt.Sprintf("the model sent nothing for %v in the middle of an answer", r.s.opts.Stall))}
}

// conclude ends the turn by its last result.
func (r *run) conclude() {
	var ended provider.Ended
	ended.Outcome, ended.Error = verdict(r.result, r.d.lastError)
	switch {
	case r.result.Deferred != nil && r.deferred != "":
		ended = provider.Ended{Outcome: thole.OutcomeCompleted, Deferred: r.deferred}
		r.s.parked = true
	case r.stalled:
		ended = r.stallEnd()
	}
	r.lock.End(ended)
}

// finish tells the end: calls that wait for a human first, then what was used.
func (r *run) finish(ended provider.Ended) {
	r.stall.Off()
	r.grace.Off()
	r.linger.Off()
	for id, p := range r.asks {
		if t := r.d.tools[p.toolUse]; t != nil && id != ended.Deferred {
			r.d.decline(p.toolUse)
			r.d.toolResult(p.toolUse, true, "The turn ended before this was answered.", nil)
		}
	}
	if r.result != nil {
		r.em.Usage(since(r.result.ModelUsage, r.usage, r.d.model))
		r.s.base = r.result.ModelUsage
	} else {
		r.em.Usage(r.d.usage.total(r.d.model))
	}
	r.em.End(ended)
}
