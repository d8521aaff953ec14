package appserver

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/serial"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/protocol/app"
)

func (s *Server) registerTurns() {
	byThread := func(p *app.TurnStartParams) string { return p.ThreadID }
	start := inThread(on(s, "turn/start", s.turnStart), serial.Exclusive, byThread)
	start.gated = map[string]bool{"permissions": false, "collaborationMode": false}
	idle := inThread(on(s, "thole/turn/startIfIdle", s.startIfIdle), serial.Exclusive, byThread)
	idle.causes = true
	inThread(on(s, "turn/steer", s.turnSteer), serial.Exclusive, func(p *app.TurnSteerParams) string { return p.ThreadID })
	inThread(on(s, "turn/interrupt", s.turnInterrupt), serial.Exclusive, func(p *app.TurnInterruptParams) string { return p.ThreadID })
}

// begin reads a turn's params and makes its settings the thread's.
func (s *Server) begin(ctx context.Context, c *conn, p *app.TurnStartParams) (thread.StartTurn, error) {
	out := thread.StartTurn{ClientID: str(p.ClientUserMessageID), Idempotency: p.IdempotencyKey}
	var err error
	if out.Thread, err = threadID(p.ThreadID); err != nil {
		return out, err
	}
	if p.ToolOutput != nil && len(p.Input) > 0 {
		return out, thole.Errorf(thole.CodeInvalid, "toolOutput cannot be combined with input")
	}
	if out.Input, err = inputs(p.Input); err != nil {
		return out, err
	}
	if p.ToolOutput != nil {
		out.Input = toolOutput(p.ToolOutput)
	}
	sandbox, err := sandboxWord(p.SandboxPolicy)
	if err != nil {
		return out, err
	}
	plan, err := s.change(ctx, c, out.Thread, wish{Settings: p.Settings, sandbox: sandbox, effort: p.Effort, mode: p.CollaborationMode})
	if plan {
		out.Settings, out.Once = &event.Settings{Profile: thole.ProfilePlan}, true
	}
	return out, err
}

// toolOutput is the result of something that ran outside, given to the agent in
// words: threads have no other form for it.
func toolOutput(o *app.ToolOutput) []thole.Input {
	text := plainText(o.Output)
	var body []struct {
		Text string `json:"text"`
	}
	if strictjson.Unmarshal(o.Output, &body) == nil {
		text = ""
		for _, b := range body {
			text += b.Text
		}
	}
	return thole.Text("Result of " + o.Name + ":\n\n" + text)
}

// turnStart starts a turn, or gives the input to the running one as upstream does.
// The answer to a start precedes what it causes; a steer may wait for the agent, so
// there the connection's notifications go on meanwhile.
func (s *Server) turnStart(ctx context.Context, c *conn, p *app.TurnStartParams) (answer, error) {
	c.order.RLock()
	in, err := s.begin(ctx, c, p)
	if err != nil {
		return answer{held: true}, err
	}
	for range maxRaces {
		t, err := s.cfg.Threads.StartTurn(ctx, c.who(), in)
		if thole.CodeOf(err) != thole.CodeBusy {
			return answer{result: app.TurnResult{Turn: accepted(t)}, held: true}, err
		}
		c.order.RUnlock()
		a, again, err := s.steerInstead(ctx, c, in)
		if !again {
			return a, err
		}
		c.order.RLock()
	}
	return answer{held: true}, thole.Errorf(thole.CodeBusy, "the thread's turns change too fast")
}

// steerInstead gives the input to the running turn; again says that it ended
// meanwhile.
func (s *Server) steerInstead(ctx context.Context, c *conn, in thread.StartTurn) (a answer, again bool, err error) {
	now, err := s.cfg.Threads.Get(ctx, c.who(), in.Thread)
	if err != nil || now.Open == "" {
		return answer{}, err == nil, err
	}
	t, err := s.cfg.Threads.Steer(ctx, c.who(), thread.Steer{Thread: in.Thread, Expected: now.Open, Input: in.Input, ClientID: in.ClientID})
	switch thole.CodeOf(err) {
	case thole.CodeConflict: // another turn runs, or none
		return answer{}, true, nil
	case thole.CodeUnsupported:
		a, err = s.enqueueInstead(ctx, c, in, now.Open)
		return a, false, err
	}
	return answer{result: app.TurnResult{Turn: accepted(t)}}, false, err
}

// maxRaces bounds how often a start is tried again because turns came and went.
const maxRaces = 16

// enqueueInstead keeps the message of a client that cannot know whether an agent
// can be steered: it becomes the next turn.
func (s *Server) enqueueInstead(ctx context.Context, c *conn, in thread.StartTurn, running thole.TurnID) (answer, error) {
	if _, err := s.cfg.Threads.Enqueue(ctx, c.who(), thread.Enqueue{Thread: in.Thread, Input: in.Input, ClientID: in.ClientID, Start: true}); err != nil {
		return answer{}, err
	}
	t, err := s.cfg.Threads.Turn(ctx, c.who(), in.Thread, running)
	return result(app.TurnResult{Turn: accepted(t)}, err)
}

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
	in, err := inputs(p.Input)
	if err != nil {
		return answer{}, err
	}
	t, err := s.cfg.Threads.Steer(ctx, c.who(), thread.Steer{
		Thread: id, Expected: thole.TurnID(p.ExpectedTurnID), Input: in, ClientID: str(p.ClientUserMessageID),
	})
	return result(app.TurnSteerResult{TurnID: string(t.ID)}, err)
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
