package opencode

import (
	"context"
	"net/http"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/strictjson"
)

// hear handles one event of the server. It reports all sessions in the directory;
// unknown kinds and other sessions are ignored.
func (r *run) hear(e serverEvent) {
	r.doubt.Set(doubtful)
	if e.Type == resync {
		r.resync()
		return
	}
	p := decodeProps(e.Properties)
	if e.Type == "session.created" {
		r.d.born(p.Info)
		return
	}
	if !r.d.ours(p.SessionID) {
		return
	}
	main := p.SessionID == r.d.session
	if r.Stall.On() {
		r.Listen(0)
	}
	switch e.Type {
	case "message.updated":
		r.message(p.Info)
	case "message.part.updated":
		if p.Part != nil {
			if p.Part.Type == "step-finish" && r.s.windows == nil { // after a call the server has read all of its settings
				r.s.windows = windows(r.srv)
			}
			r.d.windows = r.s.windows
			r.d.part(p.Part)
		}
	case "message.part.delta":
		r.d.delta(p)
	case "todo.updated":
		if main {
			r.d.todos(p.Todos)
		}
	case "permission.asked", "question.asked":
		var a nativeAsk
		if strictjson.Unmarshal(e.Properties, &a) == nil {
			r.asked(a, e.Type == "question.asked")
		}
	case "permission.replied", "question.replied", "question.rejected":
		r.settledElsewhere(p.RequestID, p.Reply, e.Type == "question.replied")
	case "session.status":
		if main && p.Status != nil {
			r.status(p.Status)
		}
	case "session.idle":
		if main {
			r.idle()
		}
	case "session.error":
		if main && r.begun && p.Error != nil {
			r.failure(p.Error)
		}
	}
}

// message takes in a message and notes which of the driver's the server took up.
func (r *run) message(i info) {
	m := r.d.message(i)
	if m == nil || i.SessionID != r.d.session {
		return
	}
	r.begun = true
	if i.Role != "assistant" {
		return
	}
	if item := r.steers[i.ParentID]; item != nil {
		delete(r.steers, i.ParentID)
		r.Em.Steered(*item)
	}
	if r.quiet.On() && r.d.settled() {
		r.conclude()
	}
}

func (r *run) status(s *status) {
	switch s.Type {
	case "busy":
		r.quiet.Off()
		r.Listen(0)
	case "retry":
		wait := time.Until(time.UnixMilli(s.Next))
		r.d.retry()
		f := retryOf(s, wait)
		if wait > r.s.opts.RetryLimit {
			f.Retrying = false
			r.late = f
			r.Abort(r.s.opts.StopGrace)
			return
		}
		r.Em.Error(*f)
		r.Listen(wait)
	}
}

// failure is an error of the session. One that belongs to a message is reported by
// the message; without a message there may be no word of idleness either.
func (r *run) failure(e *nativeError) {
	r.failed = e
	if e.Name == "ContextOverflowError" {
		// The server may shorten its context and go on.
		f, _ := failureOf(e)
		f.Retrying = true
		r.Em.Error(*f)
	}
	if len(r.d.order) == 0 {
		r.quiet.Set(settle)
	}
}

// resync reads again what the event stream may have missed.
func (r *run) resync() {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	id := r.d.session
	var all []stored
	if r.srv.call(ctx, http.MethodGet, "/session/"+id+"/message", nil, &all) != nil {
		return // the next reconnect or the server's end shows it
	}
	for _, m := range all {
		r.message(m.Info)
		for i := range m.Parts {
			r.d.part(&m.Parts[i])
		}
	}
	var todos []nativeTodo
	if r.srv.call(ctx, http.MethodGet, "/session/"+id+"/todo", nil, &todos) == nil && len(todos) > 0 {
		r.d.todos(todos)
	}
	for path, question := range map[string]bool{"/permission": false, "/question": true} {
		var asks []nativeAsk
		if r.srv.call(ctx, http.MethodGet, path, nil, &asks) != nil {
			continue
		}
		for _, a := range asks {
			if r.d.ours(a.SessionID) {
				r.asked(a, question)
			}
		}
	}
	var busy map[string]status
	if r.srv.call(ctx, http.MethodGet, "/session/status", nil, &busy) == nil {
		if _, ok := busy[id]; !ok && r.begun && r.d.settled() {
			r.conclude()
		}
	}
}

// asked decides a permission by the turn's stance, or shows it to a human.
func (r *run) asked(a nativeAsk, question bool) {
	if r.seen[a.ID] {
		return
	}
	r.seen[a.ID] = true
	key := callKey(a.Tool.MessageID, a.Tool.CallID)
	item := r.Em.ItemID(key)
	if question {
		r.put(&pending{ask: questionAsk(item, a), native: a})
		return
	}
	if a.Permission == "edit" {
		r.d.change(a)
	}
	ruling := r.stance.decide(&a)
	if ruling == rulingAsk && r.s.allowed.cover(&a) {
		ruling = rulingAllow
	}
	switch ruling {
	case rulingAllow:
		_ = r.reply(context.Background(), a.ID, "once", "")
	case rulingDeny:
		r.d.declined[key] = true
		_ = r.reply(context.Background(), a.ID, "reject", planDenial)
	default:
		p := &pending{ask: permissionAsk(item, r.s.Cfg.Dir, a), native: a}
		if answer, ok := r.Settled(p.ask); ok {
			_ = r.deliver(context.Background(), p, answer)
			return
		}
		r.put(p)
	}
}

func (r *run) put(p *pending) {
	r.asks[p.ask.ID] = p
	r.Em.Ask(p.ask)
}

func (r *run) reply(ctx context.Context, id, word, message string) error {
	body := map[string]any{"reply": word}
	if message != "" {
		body["message"] = message
	}
	return r.srv.call(ctx, http.MethodPost, "/permission/"+id+"/reply", body, nil)
}

// Answer settles an ask by a human's word.
func (r *run) Answer(ctx context.Context, id thole.AskID, a event.Answer) error {
	p := r.asks[id]
	if p == nil {
		return provider.ErrSettled
	}
	if err := r.deliver(ctx, p, a); err != nil {
		if isStatus(err, http.StatusNotFound) {
			r.resolve(id, nil)
			return provider.ErrSettled
		}
		return err
	}
	if a.Decision == event.DecisionDeny || a.Decision == event.DecisionCancel {
		r.d.declined[callKey(p.native.Tool.MessageID, p.native.Tool.CallID)] = true
	}
	if a.Decision == event.DecisionAlways {
		for _, pattern := range p.native.Always {
			r.s.allowed = append(r.s.allowed, allowance{p.native.Permission, pattern})
		}
	}
	r.resolve(id, &a)
	if a.Decision == event.DecisionCancel {
		r.Cancel()
	}
	return nil
}

// deliver sends it to the server. A rejection without words would end the turn
// quietly, so a denial always says something.
func (r *run) deliver(ctx context.Context, p *pending, a event.Answer) error {
	id := p.native.ID
	switch {
	case p.question() && a.Decision == event.DecisionCancel:
		return r.srv.call(ctx, http.MethodPost, "/question/"+id+"/reject", nil, nil)
	case p.question():
		return r.srv.call(ctx, http.MethodPost, "/question/"+id+"/reply", map[string]any{"answers": p.answersOf(a)}, nil)
	case a.Decision == event.DecisionCancel:
		return r.reply(ctx, id, "reject", "")
	case a.Decision == event.DecisionDeny:
		msg := a.Message
		if msg == "" {
			msg = "The user denied this."
		}
		return r.reply(ctx, id, "reject", msg)
	}
	return r.reply(ctx, id, "once", "")
}

func (r *run) resolve(id thole.AskID, a *event.Answer) {
	delete(r.asks, id)
	r.Em.Resolve(id, a)
}

// settledElsewhere is the server's word that an ask is over; for those we
// answered it is an echo. The server withdraws by a rejection; a yes that is not
// ours was given to it by another client.
func (r *run) settledElsewhere(native, word string, replied bool) {
	id := askID(native)
	switch {
	case r.asks[id] == nil:
	case replied || word == "once":
		r.resolve(id, &event.Answer{Decision: event.DecisionAllow})
	case word == "always":
		r.resolve(id, &event.Answer{Decision: event.DecisionAlways})
	default:
		r.resolve(id, nil)
	}
}

// Steer adds input to the turn.
func (r *run) Steer(ctx context.Context, input []thole.Input, clientID string) error {
	parts, err := r.s.parts(input)
	if err != nil {
		return err
	}
	return r.Lock.Do(ctx, func() error {
		id := r.s.messageID()
		r.steers[id] = r.Message(id, input, clientID)
		if err := r.send(ctx, id, parts); err != nil {
			delete(r.steers, id)
			return err
		}
		return nil
	})
}
