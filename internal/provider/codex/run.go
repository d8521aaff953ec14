package codex

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/strictjson"
)

// run is one turn on its way. Its decoder belongs to the connection's reader.
type run struct {
	*decoder
	mode     mode
	compacts bool          // the turn is a compaction
	begun    chan struct{} // closed when the CLI began the turn, as id
	id       string
	refused  chan error    // holds the error answer to turn/start
	finished chan struct{} // closed behind the last event
	stop     chan struct{} // holds one: somebody asked to stop

	asked    map[string]thole.AskID       // by request id; the reader's own
	pending  map[thole.AskID]pending      // guarded by session.mu
	answered map[thole.AskID]event.Answer // guarded by session.mu: told when codex confirms
}

// turnID waits until the CLI has begun the turn.
func (r *run) turnID(ctx context.Context) (string, error) {
	select {
	case <-r.begun:
		return r.id, nil
	case <-r.finished:
		return "", provider.ErrNoTurn
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// handle feeds the running turn, on the connection's reader. Without one, news is
// stale and questions are refused: nobody would answer them.
func (s *session) handle(conn *client, m *jsonrpc.Message) {
	if m.Kind == jsonrpc.KindNotification && !wants(m.Method) {
		return
	}
	s.mu.Lock()
	r := s.run
	s.mu.Unlock()
	switch {
	case m.Kind == jsonrpc.KindRequest && r == nil:
		_ = conn.Reply(m.ID, nil, jsonrpc.Errorf(-32603, "no turn is running"))
	case m.Kind == jsonrpc.KindRequest:
		s.ask(conn, r, m)
	case r == nil && m.Method == "thread/tokenUsage/updated":
		s.told(conn, m.Params)
	case r == nil || r.em.Ended():
	case m.Method == "serverRequest/resolved":
		s.resolved(r, m.Params)
	default:
		if m.Method == "turn/completed" {
			s.tellAnswers(r)
		}
		over := r.notification(m.Method, m.Params)
		if r.compacts && r.id == "" && r.turn != "" { // the answer did not name the turn
			s.begin(r, r.turn)
		}
		if over {
			close(r.finished)
		}
	}
}

// told notes what the thread has used, as codex says when it takes one up.
func (s *session) told(conn *client, params json.RawMessage) {
	var n note
	if strictjson.Unmarshal(params, &n) == nil && n.Usage != nil && n.ThreadID == s.NativeID() {
		conn.totals = n.Usage.Total
	}
}

// Run implements provider.Session.
func (s *session) Run(ctx context.Context, turn provider.Turn, emit func(event.Event)) error {
	if turn.Reply != nil {
		return thole.Errorf(thole.CodeUnsupported, "%w: a codex question does not survive its process", provider.ErrUnsupported)
	}
	if !s.runMu.TryLock() {
		return thole.Errorf(thole.CodeBusy, "a turn is running in this session")
	}
	defer s.runMu.Unlock()
	m := s.mode
	if turn.Profile != "" {
		var err error
		if m, err = parseMode(turn.Profile); err != nil {
			return err
		}
		if !s.provider.sandboxWorks(ctx, s.binary, s.environ()) {
			m = m.guard()
		}
	}
	conn, err := s.alive(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	r := &run{decoder: newDecoder(provider.NewEmitter(turn.ID, emit), s.native, s.cfg.Dir), mode: m, compacts: turn.Compacts(),
		begun: make(chan struct{}), refused: make(chan error, 1), finished: make(chan struct{}), stop: make(chan struct{}, 1),
		asked: map[string]thole.AskID{}, pending: map[thole.AskID]pending{}, answered: map[thole.AskID]event.Answer{}}
	r.totals = &conn.totals
	r.model = first(turn.Model, s.cfg.Model, s.model)
	s.run = r
	served := s.served
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.run = nil
		s.mu.Unlock()
	}()
	start := s.turnStart(turn, r)
	collab := start.CollaborationMode
	if collab.same(conn.collab) {
		start.CollaborationMode = nil
	}
	method, params := "turn/start", any(start)
	if r.compacts {
		method, params = "thread/compact/start", map[string]string{"threadId": r.thread}
	}
	err = conn.Go(method, params, func(raw json.RawMessage, err error) {
		var res turnResult
		if err == nil {
			err = strictjson.Unmarshal(raw, &res)
		}
		if err != nil {
			r.refused <- err
			return
		}
		if !r.compacts {
			conn.collab = collab
			s.begin(r, res.Turn.ID)
		}
	})
	if err != nil {
		r.refused <- errGone
	}
	return s.drive(ctx, conn, r, served)
}

// drive waits for the end of the turn and stops it when it is told to.
func (s *session) drive(ctx context.Context, conn *client, r *run, served chan struct{}) error {
	var grace <-chan time.Time
	cancel, begun := ctx.Done(), r.begun
	stop := func() {
		if grace != nil {
			return
		}
		r.em.Interrupt()
		grace = time.After(stopGrace)
		if begun == nil {
			s.interrupt(conn, r)
		}
	}
	for {
		select {
		case <-r.finished:
			if r.em.Interrupted() && conn.alive() {
				s.cleanTerminals(conn, r)
			}
			return nil
		case err := <-r.refused:
			if !errors.Is(err, errGone) {
				return thole.Errorf(thole.CodeInvalid, "start codex turn: %w", err)
			}
			<-served // by then the turn was ended, if it was known in time
			select {
			case <-r.finished:
				return nil
			default:
				return thole.Errorf(thole.CodeUnavailable, "start codex turn: %w", err)
			}
		case <-begun:
			begun = nil
			if grace != nil {
				s.interrupt(conn, r)
			}
		case <-r.stop:
			stop()
		case <-cancel:
			cancel = nil
			stop()
		case <-grace:
			s.kill() // the reader sees the end and tells it
		}
	}
}

// begin records that the CLI took the turn.
func (s *session) begin(r *run, id string) {
	r.id, r.turn = id, id
	s.mu.Lock()
	s.begun = true
	native := s.native
	s.mu.Unlock()
	r.em.Session(native)
	close(r.begun)
}

// ask puts a server request to a human, unless the host's policy answers it.
func (s *session) ask(conn *client, r *run, m *jsonrpc.Message) {
	p, ok := r.newAsk(m.ID, m.Method, m.Params)
	if !ok || p.params.ThreadID != "" && p.params.ThreadID != r.thread && p.ask.Kind == event.AskInput {
		_ = conn.Reply(m.ID, nil, jsonrpc.Errorf(-32601, "thole does not answer %s", m.Method))
		return
	}
	if d := r.mode.verdict(p.ask.Kind, p.ask.Changes); d != "" {
		_ = conn.Reply(m.ID, p.reply(event.Answer{Decision: d}), nil)
		return
	}
	s.mu.Lock()
	r.pending[p.ask.ID] = p
	s.mu.Unlock()
	r.asked[m.ID.String()] = p.ask.ID
	r.em.Ask(p.ask)
}

// resolved tells how an ask was settled: by our answer, or withdrawn by codex.
func (s *session) resolved(r *run, params json.RawMessage) {
	var n struct {
		RequestID jsonrpc.ID `json:"requestId"`
	}
	if strictjson.Unmarshal(params, &n) != nil {
		return
	}
	if ask := r.asked[n.RequestID.String()]; ask != "" {
		r.em.Resolve(ask, s.settle(r, ask))
	}
}

// settle takes an ask off the list and returns its answer, nil when it had none.
func (s *session) settle(r *run, ask thole.AskID) *event.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(r.pending, ask)
	if a, ok := r.answered[ask]; ok {
		return &a
	}
	return nil
}

// tellAnswers reports answers that codex did not confirm before the end.
func (s *session) tellAnswers(r *run) {
	for _, ask := range r.asked {
		if a := s.settle(r, ask); a != nil {
			r.em.Resolve(ask, a)
		}
	}
}

// lost ends a turn whose process is gone, on the connection's reader.
func (s *session) lost(conn *client, proc *process.Process) {
	s.mu.Lock()
	r, closed := s.run, s.closed
	if s.conn != conn {
		r = nil // it never got ready, or another took its place
	}
	s.mu.Unlock()
	proc.Kill() // returns when nothing of its tree is left
	if r == nil || r.em.Ended() {
		return
	}
	s.tellAnswers(r)
	if closed {
		r.em.Interrupt()
	}
	if r.em.Interrupted() {
		r.em.End(provider.Ended{Outcome: thole.OutcomeInterrupted})
	} else {
		te := provider.Failure(thole.ErrProviderCrashed, "codex ended in the middle of the turn: "+proc.Diagnosis(), 0)
		r.em.Error(*te)
		r.em.End(provider.Ended{Outcome: thole.OutcomeFailed, Error: te})
	}
	close(r.finished)
}

func (s *session) kill() {
	s.mu.Lock()
	proc := s.proc
	s.mu.Unlock()
	proc.Kill()
}

// interrupt asks codex to stop. Its answer is not waited for: codex may owe it
// until some later turn ends.
func (s *session) interrupt(conn *client, r *run) {
	_ = conn.Go("turn/interrupt", map[string]string{"threadId": r.thread, "turnId": r.id}, func(json.RawMessage, error) {})
}

// cleanTerminals ends commands that codex would keep running behind an
// interrupted turn.
func (s *session) cleanTerminals(conn *client, r *run) {
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	_ = conn.Call(ctx, "thread/backgroundTerminals/clean", map[string]string{"threadId": r.thread}, nil)
}

// turnStart is the whole of a turn's settings: codex keeps what it was told by
// an earlier turn, so nothing may be left unsaid. Only the collaboration mode is,
// when this process was told the same before: hearing it again costs codex a third
// of the start of a turn.
func (s *session) turnStart(turn provider.Turn, r *run) turnStartParams {
	approval, policy := r.mode.wire()
	if v := s.cfg.Options["network"]; v != "" && policy.Type == "workspaceWrite" {
		on := v == "true"
		policy.NetworkAccess = &on
	}
	p := turnStartParams{
		ThreadID: r.thread, Input: s.input(turn.Input), ClientUserMessageID: turn.ClientID,
		ApprovalPolicy: approval, SandboxPolicy: policy,
		Model: r.model, Effort: first(turn.Effort, s.cfg.Effort), Summary: s.cfg.Options["summary"],
	}
	if r.model != "" {
		collab := &collaborationMode{Mode: "default", Settings: collaborationSettings{Model: r.model}}
		if r.mode.plan {
			collab.Mode = "plan"
		}
		if p.Effort != "" {
			collab.Settings.ReasoningEffort = &p.Effort
		}
		if s.cfg.Instructions != "" && !r.mode.plan {
			collab.Settings.DeveloperInstructions = &s.cfg.Instructions
		}
		p.CollaborationMode = collab
	}
	return p
}

func (s *session) input(in []thole.Input) []userInput {
	out := make([]userInput, 0, len(in))
	for _, i := range in {
		switch {
		case i.Type != "image":
			out = append(out, userInput{Type: "text", Text: i.Text})
		case strings.Contains(i.URL, ":"):
			out = append(out, userInput{Type: "image", URL: i.URL})
		case filepath.IsAbs(i.URL):
			out = append(out, userInput{Type: "localImage", Path: i.URL})
		default:
			out = append(out, userInput{Type: "localImage", Path: filepath.Join(s.cfg.Dir, i.URL)})
		}
	}
	return out
}
