package appserver

import (
	"context"
	"encoding/json"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/serial"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/protocol/app"
)

func (s *Server) registerTurns() {
	byThread := func(p *app.TurnStartParams) string { return p.ThreadID }
	start := inThread(on(s, "turn/start", s.turnStart), serial.Exclusive, byThread)
	start.gated = map[string]bool{"permissions": false, "collaborationMode": false}
	inThread(on(s, "thole/turn/startIfIdle", s.startIfIdle), serial.Exclusive, byThread)
	inThread(on(s, "turn/steer", s.turnSteer), serial.Exclusive, func(p *app.TurnSteerParams) string { return p.ThreadID })
	inThread(on(s, "turn/interrupt", s.turnInterrupt), serial.Exclusive, func(p *app.TurnInterruptParams) string { return p.ThreadID })
}

// begin reads a turn's params. Nothing of them counts before the turn starts.
func (s *Server) begin(ctx context.Context, c *conn, p *app.TurnStartParams) (thread.StartTurn, error) {
	out := thread.StartTurn{ClientID: str(p.ClientUserMessageID), Idempotency: p.IdempotencyKey, Schema: compact(p.OutputSchema)}
	var err error
	if out.Thread, err = threadID(p.ThreadID); err != nil {
		return out, err
	}
	if p.ToolOutput != nil && len(p.Input) > 0 {
		return out, thole.Errorf(thole.CodeInvalid, "toolOutput cannot be combined with input")
	}
	if out.Input, err = s.inputs(ctx, c, out.Thread, p.Input); err != nil {
		return out, err
	}
	if p.ToolOutput != nil {
		if out.Input, err = toolOutput(p.ToolOutput); err != nil {
			return out, err
		}
	}
	set, plan, err := s.wanted(ctx, c, out.Thread, wish{Settings: p.Settings, effort: p.Effort, summary: p.Summary, mode: p.CollaborationMode}, p.SandboxPolicy)
	out.Settings = set
	if plan {
		out.Once = &event.Settings{Profile: thole.ProfilePlan}
	}
	return out, err
}

// toolOutput is the result of something that ran outside, given to the agent in
// words: threads have no other form for it.
func toolOutput(o *app.ToolOutput) ([]thole.Input, error) {
	var text string
	var body []struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	switch {
	case len(o.Output) == 0 || string(o.Output) == "null":
		return nil, invalid("missing field `output`")
	case strictjson.Unmarshal(o.Output, &text) == nil:
	case strictjson.Unmarshal(o.Output, &body) == nil:
		for _, b := range body {
			if b.Text == nil {
				return nil, thole.Errorf(thole.CodeUnsupported, "toolOutput: a part of type %q; agents here take texts", b.Type)
			}
			text += *b.Text
		}
	default:
		return nil, invalid("data did not match any variant of untagged enum FunctionCallOutputBody")
	}
	if text == "" {
		return nil, thole.Errorf(thole.CodeInvalid, "toolOutput.output must not be empty")
	}
	return thole.Text("Result of " + o.Name + ":\n\n" + text), nil
}

// turnStart starts a turn, or gives the input to the running one as upstream does. A
// steer is answered when it is recorded; the record reaches the agent.
func (s *Server) turnStart(ctx context.Context, c *conn, p *app.TurnStartParams) (answer, error) {
	in, err := s.begin(ctx, c, p)
	if err != nil {
		return answer{}, err
	}
	for range maxRaces {
		t, err := s.cfg.Threads.StartTurn(ctx, c.who(), in)
		if thole.CodeOf(err) != thole.CodeBusy {
			return result(app.TurnResult{Turn: accepted(t)}, err)
		}
		if a, again, err := s.steerInstead(ctx, c, in); !again {
			return a, err
		}
	}
	return answer{}, thole.Errorf(thole.CodeBusy, "the thread's turns change too fast")
}

// steerInstead gives the input to the running turn; again says that it ended
// meanwhile.
func (s *Server) steerInstead(ctx context.Context, c *conn, in thread.StartTurn) (a answer, again bool, err error) {
	now, err := s.cfg.Threads.Get(ctx, c.who(), in.Thread)
	if err != nil || now.Open == "" {
		return answer{}, err == nil, err
	}
	if err := s.steerable(ctx, c, now.Open, in); err != nil {
		return answer{}, false, err
	}
	steer := thread.Steer{Thread: in.Thread, Expected: now.Open, Input: in.Input, ClientID: in.ClientID, Back: c.isTerminal()}
	t, err := s.cfg.Threads.Steer(ctx, c.who(), steer)
	switch thole.CodeOf(err) {
	case thole.CodeConflict: // another turn runs, or none
		return answer{}, true, nil
	case thole.CodeUnsupported:
		if t, err = s.waits(ctx, c, steer); thole.CodeOf(err) == thole.CodeConflict {
			return answer{}, true, nil
		}
	}
	if err == nil { // from the next turn on
		err = s.change(ctx, c, in.Thread, in.Settings)
	}
	a, err = result(app.TurnResult{Turn: accepted(t)}, err)
	return a, false, err
}

// steerable refuses a message that asks for what only the beginning of a turn can give.
func (s *Server) steerable(ctx context.Context, c *conn, running thole.TurnID, in thread.StartTurn) error {
	switch {
	case in.Schema != nil:
		return errOtherSchema(running)
	case in.Idempotency != "":
		// A turn keeps the key that it began with, a steer none: a repeat would say it twice.
		return thole.Errorf(thole.CodeBusy, "idempotencyKey: turn %s is running, and a message to it cannot be repeated safely", running).
			WithHint("wait for its end, or queue the message with thread/queue/add and a clientUserMessageId")
	case in.Once == nil:
		return nil
	}
	t, err := s.cfg.Threads.Turn(ctx, c.who(), in.Thread, running)
	if err != nil || t.Settings.Profile == in.Once.Profile {
		return err
	}
	return thole.Errorf(thole.CodeBusy, "plan mode: turn %s is running without it", running).
		WithHint("wait for its end, interrupt it, or leave plan mode to steer it")
}

// maxRaces bounds how often a start is tried again because turns came and went.
const maxRaces = 16

func (s *Server) startIfIdle(ctx context.Context, c *conn, p *app.TurnStartParams) (answer, error) {
	in, err := s.begin(ctx, c, p)
	if err != nil {
		return answer{}, err
	}
	t, err := s.cfg.Threads.StartTurn(ctx, c.who(), in)
	return result(app.TurnResult{Turn: accepted(t)}, err)
}

func (s *Server) turnSteer(ctx context.Context, c *conn, p *app.TurnSteerParams) (answer, error) {
	id, err := threadID(p.ThreadID)
	if err != nil {
		return answer{}, err
	}
	if p.ExpectedTurnID == "" {
		return answer{}, thole.Errorf(thole.CodeInvalid, "expectedTurnId must not be empty")
	}
	in, err := s.inputs(ctx, c, id, p.Input)
	if err != nil {
		return answer{}, err
	}
	steer := thread.Steer{Thread: id, Expected: thole.TurnID(p.ExpectedTurnID), Input: in, ClientID: str(p.ClientUserMessageID), Back: c.isTerminal()}
	t, err := s.cfg.Threads.Steer(ctx, c.who(), steer)
	if thole.CodeOf(err) == thole.CodeUnsupported {
		t, err = s.steerLater(ctx, c, steer)
	}
	return result(app.TurnSteerResult{TurnID: string(t.ID)}, err)
}

// steerLater takes a message for a turn that takes none. Upstream's answer to a
// compaction or a review makes the client keep the message; every other turn takes
// messages there, and a TUI ends on an error that it does not know. So the message
// becomes the next turn.
func (s *Server) steerLater(ctx context.Context, c *conn, p thread.Steer) (fold.Turn, error) {
	t, err := s.cfg.Threads.Turn(ctx, c.who(), p.Thread, p.Expected)
	if err != nil {
		return t, err
	}
	switch command, _ := thole.TurnCommandOf(t.Input); command {
	case thole.TurnCommandCompact, thole.TurnCommandReview:
		return t, notSteerable(string(command))
	}
	return s.waits(ctx, c, p)
}

// waits gives a turn a message that it does not take: it becomes the next turn.
func (s *Server) waits(ctx context.Context, c *conn, p thread.Steer) (fold.Turn, error) {
	p.Waits = true
	return s.cfg.Threads.Steer(ctx, c.who(), p)
}

// notSteerable is upstream's refusal to steer a turn of a kind: compact or review.
func notSteerable(kind string) error {
	message := "cannot steer a " + kind + " turn"
	info, _ := json.Marshal(map[string]any{"activeTurnNotSteerable": map[string]string{"turnKind": kind}})
	data, _ := json.Marshal(app.TurnError{Message: message, Info: info})
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: message, Data: data}
}

// turnInterrupt answers when the wish is recorded; the turn's end is notified. An
// empty turn id means whatever runs, and nothing running is fine then.
func (s *Server) turnInterrupt(ctx context.Context, c *conn, p *app.TurnInterruptParams) (answer, error) {
	id, err := threadID(p.ThreadID)
	if err != nil {
		return answer{}, err
	}
	expected := thole.TurnID(p.TurnID)
	if expected == "" {
		t, err := s.cfg.Threads.Get(ctx, c.who(), id)
		if err != nil || t.Open == "" {
			return result(app.Empty{}, err)
		}
		expected = t.Open
	}
	return result(app.Empty{}, s.cfg.Threads.Interrupt(ctx, c.who(), id, expected))
}
