package codex

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/base"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/app"
)

// run is one turn on its way, mostly on the connection's handler.
type run struct {
	*base.Turn
	*decoder
	s      *session
	link   *link
	mode   mode
	begun  chan struct{} // closed when the CLI began the turn, as id
	id     string
	halted bool // it is to be interrupted as soon as it has begun

	asked    map[string]thole.AskID // by request id
	pending  map[thole.AskID]pending
	answered map[thole.AskID]event.Answer // emitted when codex confirms
}

// Prepare brings a server and what the turn is to be sent.
func (s *session) Prepare(ctx context.Context, t *base.Turn) (base.Running, error) {
	m, err := s.modeOf(ctx, t.Profile)
	if err != nil {
		return nil, err
	}
	l, err := s.Alive(ctx)
	if err != nil {
		return nil, err
	}
	r := &run{Turn: t, decoder: newDecoder(t.Em, s.NativeID(), s.Cfg.Dir), s: s, link: l, mode: m, begun: make(chan struct{}),
		asked: map[string]thole.AskID{}, pending: map[thole.AskID]pending{}, answered: map[thole.AskID]event.Answer{}}
	r.totals, r.commandBegan = &l.totals, l.commands.begun
	r.model = first(t.Model, s.model)
	return r, nil
}

// Begin sends the turn; codex's answer, or the first news of it, names it.
func (r *run) Begin(ctx context.Context) error {
	start := r.turnStart()
	collab := start.CollaborationMode
	if collab != nil && reflect.DeepEqual(collab, r.link.collab) {
		start.CollaborationMode = nil
	}
	method, params := "turn/start", any(start)
	if r.Compacts() {
		method, params = "thread/compact/start", app.ThreadParams{ThreadID: r.thread}
	}
	err := r.link.client.Go(ctx, method, params, func(raw json.RawMessage, err error) {
		r.Lock.Act(func() {
			var res app.TurnResult
			if err == nil {
				err = strictjson.Unmarshal(raw, &res)
			}
			switch {
			case errors.Is(err, appclient.ErrClosed): // it is lost with all it has begun
			case err != nil:
				r.Refuse(thole.Errorf(thole.CodeInvalid, "start codex turn: %w", err))
			case !r.Compacts():
				r.link.collab = collab
				r.begin(res.Turn.ID)
			}
		})
	})
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "start codex turn: %w", err)
	}
	return nil
}

// begin records that the CLI took the turn.
func (r *run) begin(id string) {
	if r.id != "" {
		return
	}
	r.id, r.turn = id, id
	r.s.begun = true
	r.Em.Session(r.thread)
	r.Replied()
	close(r.begun)
	if r.halted {
		r.Interrupt(0)
	}
}

// heard takes a notification to the running turn. Without one, news is stale but for
// what the thread has used, as codex says when it takes one up.
func (s *session) heard(l *link, n appclient.Notification) {
	if !wants(n.Method) {
		return
	}
	if r, ok := s.Running().(*run); ok {
		r.Lock.Act(func() { r.hear(n) })
		return
	}
	var u app.UsageUpdated
	if n.Method == "thread/tokenUsage/updated" && strictjson.Unmarshal(n.Params, &u) == nil && u.ThreadID == s.NativeID() {
		l.totals = u.TokenUsage.Total
	}
}

func (r *run) hear(n appclient.Notification) {
	if n.Method == "serverRequest/resolved" {
		r.resolved(n.Params)
		return
	}
	ended := r.notification(n.Method, n.Params)
	if r.turn != "" {
		r.begin(r.turn) // the answer did not name the turn
	}
	if ended != nil {
		r.reportAnswers()
		r.Lock.End(*ended)
	}
}

// asked puts a server request to a human, unless the host's policy answers it.
// Without a turn it is refused: nobody would answer it.
func (s *session) asked(q *appclient.Request) {
	r, ok := s.Running().(*run)
	if !ok || !r.Lock.Act(func() { r.ask(q) }) {
		_ = q.Refuse(-32603, "no turn is running")
	}
}

func (r *run) ask(q *appclient.Request) {
	p, ok := r.newAsk(string(q.ID()), q.Method, q.Params)
	if p.request = q; !ok || p.thread != "" && p.thread != r.thread && p.ask.Kind == event.AskInput {
		_ = q.Refuse(-32601, "thole does not answer "+q.Method)
		return
	}
	if d := r.mode.verdict(p.ask.Kind, p.ask.Changes); d != "" {
		_ = q.Reply(p.reply(event.Answer{Decision: d}))
		return
	}
	if answer, ok := r.Settled(p.ask); ok {
		_ = q.Reply(p.reply(answer))
		return
	}
	r.pending[p.ask.ID] = p
	r.asked[string(q.ID())] = p.ask.ID
	r.Em.Ask(p.ask)
}

// Answer implements base.Running. Codex takes no words with a denial; they follow
// as input of the turn, sent before the denial so that the next model call has both.
func (r *run) Answer(ctx context.Context, id thole.AskID, answer event.Answer) error {
	p, ok := r.pending[id]
	if !ok {
		return provider.ErrSettled
	}
	delete(r.pending, id)
	r.answered[id] = answer
	if answer.Decision == event.DecisionDeny && answer.Message != "" && p.ask.Kind != event.AskInput {
		words := r.steering(thole.Text("About the denied request: "+answer.Message), quiet+thole.NewID[string](time.Now()))
		_ = r.link.client.Go(ctx, "turn/steer", words, func(json.RawMessage, error) {})
	}
	if err := p.request.Reply(p.reply(answer)); err != nil {
		return thole.Errorf(thole.CodeUnavailable, "answer codex: %w", err)
	}
	return nil
}

// Steer implements base.Running.
func (r *run) Steer(ctx context.Context, input []thole.Input, clientID string) error {
	select {
	case <-r.begun:
	case <-r.Lock.Over():
		return provider.ErrNoTurn
	case <-ctx.Done():
		return ctx.Err()
	}
	err := r.link.client.Steer(ctx, r.steering(input, clientID))
	var refused *appclient.Error
	switch {
	case errors.As(err, &refused), errors.Is(err, appclient.ErrClosed):
		return thole.Errorf(thole.CodeConflict, "%w: %w", provider.ErrNoTurn, err)
	case err != nil:
		return thole.Errorf(thole.CodeUnavailable, "steer codex: %w", err)
	}
	return nil
}

func (r *run) steering(input []thole.Input, clientID string) app.TurnSteerParams {
	return app.TurnSteerParams{ThreadID: r.thread, ExpectedTurnID: r.id, Input: r.input(input), ClientUserMessageID: &clientID}
}

// resolved emits how an ask was settled: by our answer, or withdrawn by codex.
func (r *run) resolved(params json.RawMessage) {
	var n app.Resolved
	if strictjson.Unmarshal(params, &n) != nil {
		return
	}
	if ask := r.asked[string(n.RequestID)]; ask != "" {
		r.Em.Resolve(ask, r.settle(ask))
	}
}

// settle takes an ask off the list and returns its answer, nil when it had none.
func (r *run) settle(ask thole.AskID) *event.Answer {
	delete(r.pending, ask)
	if a, ok := r.answered[ask]; ok {
		return &a
	}
	return nil
}

// reportAnswers reports answers that codex did not confirm before the end.
func (r *run) reportAnswers() {
	for _, ask := range r.asked {
		if a := r.settle(ask); a != nil {
			r.Em.Resolve(ask, a)
		}
	}
}

// Interrupt asks codex to stop. Its answer is not waited for: codex may owe it
// until some later turn ends.
func (r *run) Interrupt(time.Duration) {
	if r.halted = true; r.id != "" {
		_ = r.link.client.Go(context.Background(), "turn/interrupt", app.TurnInterruptParams{ThreadID: r.thread, TurnID: r.id}, func(json.RawMessage, error) {})
	}
}

// Kill implements base.Running.
func (r *run) Kill() { r.link.Kill() }

// Gone implements base.Running.
func (r *run) Gone() <-chan struct{} { return r.link.Read }

// Lost implements base.Running.
func (r *run) Lost() string {
	r.link.Kill() // returns when nothing of its tree is left
	r.reportAnswers()
	return r.link.Diagnosis()
}

// Finish ends commands that codex would keep running after an interrupted turn.
func (r *run) Finish(provider.Ended) {
	if r.Em.Interrupted() && !r.link.Dead() {
		ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
		defer cancel()
		_ = r.link.client.Call(ctx, "thread/backgroundTerminals/clean", app.ThreadParams{ThreadID: r.thread}, nil)
	}
}

// turnStart is the whole of a turn's settings: codex keeps what it was sent by
// an earlier turn, so nothing may be left unsaid. Only the collaboration mode is,
// when this process was sent the same before: receiving it again costs codex a third
// of the start of a turn.
func (r *run) turnStart() app.TurnStartParams {
	cfg := r.s.Cfg
	approval, policy := r.mode.wire()
	if v := r.Options[provider.OptionNetwork]; v != "" && policy.Type == "workspaceWrite" {
		policy.NetworkAccess = json.RawMessage(strconv.FormatBool(v == "true"))
	}
	p := app.TurnStartParams{
		ThreadID: r.thread, Input: r.input(r.Words()), ClientUserMessageID: opt(r.clientID()), SandboxPolicy: &policy,
		Settings: app.Settings{Model: opt(r.model), ApprovalPolicy: quoted(approval), ServiceTier: opt(r.Options[provider.OptionServiceTier])}, Effort: opt(r.Effort), Summary: opt(r.Options[provider.OptionSummary]), OutputSchema: r.Schema,
	}
	if r.model != "" {
		collab := &app.CollaborationMode{Mode: "default", Settings: app.ModeSettings{Model: r.model, Effort: p.Effort}}
		if r.mode.plan {
			collab.Mode = "plan"
		} else {
			collab.Settings.Instructions = opt(cfg.Instructions)
		}
		p.CollaborationMode = collab
	}
	return p
}

// clientID is how the user's message is called; words of a reply are not shown as one.
func (r *run) clientID() string {
	if r.Reply != nil {
		return quiet + thole.NewID[string](time.Now())
	}
	return r.ClientID
}

func (r *run) input(in []thole.Input) []app.UserInput {
	out := make([]app.UserInput, 0, len(in))
	for _, i := range in {
		switch {
		case i.Type != "image":
			out = append(out, app.UserInput{Type: "text", Text: i.Text})
		case strings.Contains(i.URL, ":"):
			out = append(out, app.UserInput{Type: "image", URL: i.URL})
		case filepath.IsAbs(i.URL):
			out = append(out, app.UserInput{Type: "localImage", Path: i.URL})
		default:
			out = append(out, app.UserInput{Type: "localImage", Path: filepath.Join(r.s.Cfg.Dir, i.URL)})
		}
	}
	return out
}
