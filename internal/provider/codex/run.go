package codex

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/provider"
)

// run is one turn on its way. Its decoder belongs to Run's goroutine; pending is
// guarded by session.mu.
type run struct {
	*decoder
	mode    mode
	in      chan message  // from the connection and from Answer; read by Run
	done    chan struct{} // closed when Run reads no more
	stop    chan struct{} // holds one: somebody asked to stop
	started chan message  // holds the answer to turn/start
	begun   chan struct{} // closed when the CLI began the turn, as id
	id      string
	pending map[thole.AskID]pending
}

// quietSteer is a message of ours: the client id of a steer that is no input of
// a user's.
const quietSteer = "thole/quietSteer"

// message is one thing that happened, in the order in which it happened.
type message struct {
	method string
	params json.RawMessage
	req    *jsonrpc.Request
	// answered is an ask that was just settled.
	answered thole.AskID
	answer   *thole.Answer
	// turn and err are the answer to turn/start.
	turn string
	err  error
}

// turnID waits until the CLI has begun the turn.
func (r *run) turnID(ctx context.Context) (string, error) {
	select {
	case <-r.begun:
		return r.id, nil
	case <-r.done:
		return "", provider.ErrNoTurn
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// handler feeds the running turn. Without one, news is stale and questions are
// refused: nobody would answer them.
type handler struct{ s *session }

func (h handler) Notification(n *jsonrpc.Notification) {
	if wants(n.Method) {
		h.s.post(message{method: n.Method, params: n.Params})
	}
}

func (h handler) Request(req *jsonrpc.Request) {
	if !h.s.post(message{method: req.Method, req: req}) {
		_ = req.Error(jsonrpc.Errorf(-32603, "no turn is running"))
	}
}

// post hands a message to the running turn, waiting for room: that is the
// back-pressure on the CLI.
func (s *session) post(m message) bool {
	s.mu.Lock()
	r := s.run
	s.mu.Unlock()
	if r == nil {
		return false
	}
	select {
	case r.in <- m:
		return true
	case <-r.done:
		return false
	}
}

// Run implements provider.Session.
func (s *session) Run(ctx context.Context, turn provider.Turn, emit func(provider.Event)) error {
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
		if !s.provider.sandboxWorks(ctx, s.environ()) {
			m = m.guard()
		}
	}
	conn, err := s.alive(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	r := &run{decoder: newDecoder(provider.NewEmitter(turn.ID, emit), s.native, s.cfg.Dir), mode: m,
		in: make(chan message, 64), done: make(chan struct{}), stop: make(chan struct{}, 1), started: make(chan message, 1), begun: make(chan struct{}), pending: map[thole.AskID]pending{}}
	r.model = first(turn.Model, s.cfg.Model, s.model)
	s.run = r
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.run = nil
		s.mu.Unlock()
		close(r.done)
	}()
	_, err = conn.Go(ctx, "turn/start", s.turnStart(turn, r), func(raw json.RawMessage, err error) {
		var res turnResult
		if err == nil {
			err = json.Unmarshal(raw, &res)
		}
		r.started <- message{turn: res.Turn.ID, err: err}
	})
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "start codex turn: %w", err)
	}
	return s.drive(ctx, conn, r)
}

// drive reads messages until the turn is over.
func (s *session) drive(ctx context.Context, conn *jsonrpc.Conn, r *run) error {
	var (
		stopping bool
		grace    <-chan time.Time
		cancel   = ctx.Done()
		ended    = conn.Done()
	)
	stop := func() {
		if !stopping {
			stopping = true
			grace = time.After(stopGrace)
		}
		if r.id != "" {
			s.interrupt(conn, r)
		}
	}
	for {
		select {
		case m := <-r.in:
			if s.apply(r, m) {
				if r.stopped {
					s.cleanTerminals(conn, r)
				}
				return nil
			}
		case m := <-r.started:
			if errors.Is(m.err, jsonrpc.ErrClosed) {
				continue // the end of the connection tells more
			}
			if m.err != nil {
				return thole.Errorf(thole.CodeInvalid, "start codex turn: %w", m.err)
			}
			s.begin(r, m.turn)
			if stopping {
				s.interrupt(conn, r)
			}
		case <-r.stop:
			stop()
		case <-cancel:
			cancel = nil
			stop()
		case <-grace:
			s.kill()
			r.em.End(provider.Ended{Outcome: thole.OutcomeInterrupted})
			return nil
		case <-ended:
			ended = nil
			s.crashed(r, stopping)
			return nil
		}
	}
}

// begin records that the CLI took the turn.
func (s *session) begin(r *run, id string) {
	r.id, r.turn = id, id
	close(r.begun)
	s.mu.Lock()
	s.begun = true
	s.mu.Unlock()
	r.em.Session(s.NativeID())
}

// apply handles one message; it reports whether the turn is over.
func (s *session) apply(r *run, m message) bool {
	switch {
	case m.answered != "":
		r.em.Resolve(m.answered, m.answer)
	case m.req != nil:
		s.asked(r, m.req)
	case m.method == quietSteer:
		r.quiet[string(m.params)] = true
	case m.method == "serverRequest/resolved":
		s.resolved(r, m.params)
	default:
		return r.notification(m.method, m.params)
	}
	return false
}

// asked puts a server request to a human, unless the host's policy answers it.
func (s *session) asked(r *run, req *jsonrpc.Request) {
	p, ok := r.newAsk(req)
	if !ok || p.params.ThreadID != "" && p.params.ThreadID != r.thread && p.ask.Kind == thole.AskInput {
		_ = req.Error(jsonrpc.Errorf(-32601, "thole does not answer %s", req.Method))
		return
	}
	if d := r.mode.verdict(p.ask.Kind, p.ask.Changes); d != "" {
		_ = req.Reply(p.reply(thole.Answer{Decision: d}))
		return
	}
	s.mu.Lock()
	r.pending[p.ask.ID] = p
	s.mu.Unlock()
	r.em.Ask(p.ask)
}

// resolved cancels an ask that codex itself withdrew.
func (s *session) resolved(r *run, params json.RawMessage) {
	var n note
	if json.Unmarshal(params, &n) != nil {
		return
	}
	s.mu.Lock()
	var gone thole.AskID
	for id, p := range r.pending {
		if raw, _ := p.req.ID.MarshalJSON(); string(raw) == string(n.RequestID) {
			gone = id
			delete(r.pending, id)
		}
	}
	s.mu.Unlock()
	if gone != "" {
		r.em.Resolve(gone, nil)
	}
}

// crashed ends a turn whose process is gone.
func (s *session) crashed(r *run, stopping bool) {
	s.mu.Lock()
	proc, closed := s.proc, s.closed
	s.mu.Unlock()
	proc.Kill() // returns when nothing of its tree is left
	if stopping || closed {
		r.em.End(provider.Ended{Outcome: thole.OutcomeInterrupted})
		return
	}
	te := provider.Failure(thole.ErrProviderCrashed, "codex ended in the middle of the turn: "+proc.Diagnosis(), 0)
	r.em.Error(*te)
	r.em.End(provider.Ended{Outcome: thole.OutcomeFailed, Error: te})
}

func (s *session) kill() {
	s.mu.Lock()
	proc := s.proc
	s.mu.Unlock()
	proc.Kill()
}

// interrupt asks codex to stop. Its answer is not waited for: codex may owe it
// until some later turn ends.
func (s *session) interrupt(conn *jsonrpc.Conn, r *run) {
	r.stopped = true
	_, _ = conn.Go(context.Background(), "turn/interrupt", map[string]string{"threadId": r.thread, "turnId": r.id}, func(json.RawMessage, error) {})
}

// cleanTerminals ends commands that codex would keep running behind an
// interrupted turn.
func (s *session) cleanTerminals(conn *jsonrpc.Conn, r *run) {
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	_ = conn.Call(ctx, "thread/backgroundTerminals/clean", map[string]string{"threadId": r.thread}, nil)
}

// turnStart is the whole of a turn's settings: codex keeps what it was told by
// an earlier turn, so nothing may be left unsaid.
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
