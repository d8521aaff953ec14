package claude

import (
	"bytes"
	"cmp"
	"context"
	"time"

	"github.com/google/uuid"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/base"
	"github.com/tholehq/thole/internal/strictjson"
)

// followUp is how long a turn waits for the CLI to take up what it still has in
// its own queue.
const followUp = 3 * time.Second

// run is one turn in progress, mostly on the reader of the CLI.
type run struct {
	*base.Turn
	s *session
	c *conn
	d *decoder

	asks    map[thole.AskID]*pending
	calls   map[string]func(*message) // answers to our control requests
	content []any                     // of the turn's own message
	prompt  string                    // its uuid
	waiting map[string]*event.Item    // messages the CLI has not taken up yet, by uuid; nil for the prompt
	result  *message                  // the last one

	linger *base.Alarm // a result is there, more may follow

	deferred thole.AskID
	reply    *provider.Reply // not delivered yet
	usage    map[string]modelUsage
}

// Prepare brings the process and its settings to what the turn wants.
func (s *session) Prepare(ctx context.Context, t *base.Turn) (base.Running, error) {
	r := &run{Turn: t, s: s, d: newDecoder(t.Em, s.Cfg.Dir, s.todos),
		asks: map[thole.AskID]*pending{}, calls: map[string]func(*message){}, waiting: map[string]*event.Item{}}
	r.d.client, r.d.structured = provider.ClientTools(s.Cfg.Tools), t.Schema != nil
	r.linger = t.Lock.NewAlarm(r.lingered)
	st, err := stanceOf(t.Profile)
	if err == nil && (t.Reply == nil || t.Reply.Ask.Kind != event.AskInput) {
		r.content, err = s.content(t.Words())
	}
	if err != nil {
		return nil, err
	}
	// The CLI switches to bypassPermissions only when it was started for it.
	// It takes a schema only when it starts.
	live := s.Live() && !s.parked && (st.mode != modeBypass || s.boot.mode == modeBypass) && bytes.Equal(s.schema, t.Schema)
	oldModel, oldEffort := s.model, s.effort
	s.stance, s.model, s.effort, s.schema = st, t.Model, t.Effort, t.Schema
	if !live {
		s.Drop(0)
	}
	r.c, err = s.Alive(ctx)
	if r.usage = s.base; err != nil || !live {
		return r, err
	}
	// Always: that it is in this mode already it may have been made to say.
	r.control("set_permission_mode", map[string]any{"mode": st.mode})
	if s.model != oldModel {
		r.control("set_model", map[string]any{"model": cmp.Or(s.model, "default")})
	}
	if s.effort != oldEffort && s.effort != "" {
		r.control("apply_flag_settings", map[string]any{"settings": map[string]any{"effortLevel": s.effort}})
	}
	return r, nil
}

// Begin hands the turn to the CLI and listens to it.
func (r *run) Begin(ctx context.Context) error {
	s := r.s
	err := r.begin()
	if err != nil { // the process died while idle: one fresh one is a fair try
		s.Drop(0)
		if r.c, err = s.Alive(ctx); err != nil {
			return err
		}
		r.usage = s.base
		if err = r.begin(); err != nil {
			return err
		}
	}
	r.Em.Session(s.NativeID())
	if r.reply != nil {
		r.linger.Set(followUp)
	} else {
		r.Replied()
	}
	for len(s.backlog) > 0 && !r.Lock.Ended() {
		m := s.backlog[0]
		s.backlog = s.backlog[1:]
		r.hear(m)
	}
	r.c.listen(listener{r.Lock, r.hear})
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
			r.Em.Note(subtype + ": " + m.Response.Error)
		}
	}
}

// begin says the turn's own message. An answer to a deferred question waits for
// the CLI to ask again, which a resumed process does by itself.
func (r *run) begin() error {
	if r.Reply != nil && r.Reply.Ask.Kind == event.AskInput {
		r.reply = r.Reply
		return nil
	}
	r.prompt = uuid.NewString()
	r.waiting[r.prompt] = nil
	return r.say(r.prompt, r.content)
}

func (r *run) say(id string, content []any) error {
	return r.c.send(map[string]any{
		"type": "user", "session_id": "", "parent_tool_use_id": nil, "uuid": id,
		"message": map[string]any{"role": "user", "content": content},
	})
}

// Interrupt asks the CLI to stop. A turn that has its result and only waits for
// more ends by it. Messages the CLI has queued would start a turn of their own
// afterwards, so they are taken back.
func (r *run) Interrupt(time.Duration) {
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
}

// takenBack ends a turn whose own message never began.
func (r *run) takenBack(m *message) {
	var b struct {
		Cancelled bool `json:"cancelled"`
	}
	if strictjson.Unmarshal(m.Response.Response, &b) == nil && b.Cancelled {
		r.Lock.End(provider.Ended{Outcome: thole.OutcomeInterrupted})
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
	r.Em.Ask(reply.Ask)
	r.Em.Resolve(reply.Ask.ID, &reply.Answer)
	r.prompt = uuid.NewString()
	r.waiting[r.prompt] = nil
	if r.say(r.prompt, []any{map[string]any{"type": "text", "text": reply.Prose()}}) != nil {
		r.Kill()
	}
}

// Kill ends the process; what it said before stays readable.
func (r *run) Kill() { r.c.Kill() }

// Gone is closed when the CLI says no more.
func (r *run) Gone() <-chan struct{} { return r.c.Read }

// Lost says why stdout ended. A CLI that lives on without it is of no use.
func (r *run) Lost() string {
	r.c.Finish(closeGrace)
	if r.result != nil && r.linger.On() {
		r.conclude()
	}
	if r.c.long != nil {
		return r.c.long.Error() + "; " + r.c.Diagnosis()
	}
	return r.c.Diagnosis()
}

// conclude ends the turn by its last result.
func (r *run) conclude() {
	var ended provider.Ended
	ended.Outcome, ended.Error = verdict(r.result, r.d.lastError)
	switch {
	case r.result.Deferred != nil && r.deferred != "":
		ended = provider.Ended{Outcome: thole.OutcomeCompleted, Deferred: r.deferred}
		r.s.parked = true
	case r.Stalled:
		ended = r.StallEnd()
	case r.Schema != nil && ended.Outcome == thole.OutcomeCompleted && !r.Compacts():
		ended = r.Structured(r.result.UUID, r.result.Structured)
	}
	r.Lock.End(ended)
}

// Finish emits calls that wait for a human, then what was used.
func (r *run) Finish(ended provider.Ended) {
	for id, p := range r.asks {
		if t := r.d.tools[p.toolUse]; t != nil && id != ended.Deferred {
			r.d.decline(p.toolUse)
			r.d.toolResult(p.toolUse, true, "The turn ended before this was answered.", nil)
		}
	}
	used := r.d.usage.total(r.d.model)
	if r.result != nil {
		last := used.Last
		used = since(r.result.ModelUsage, r.usage, r.d.model)
		used.Last = last
		r.s.base = r.result.ModelUsage
	}
	r.Em.Usage(used)
}
