package codex

import (
	"context"
	"errors"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/provider"
)

// active returns the running turn with its connection and the CLI's turn id.
func (s *session) active() (*run, *jsonrpc.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == nil {
		return nil, nil, provider.ErrNoTurn
	}
	return s.run, s.conn, nil
}

// Steer implements provider.Session.
func (s *session) Steer(ctx context.Context, input []thole.Input, clientID string) error {
	r, conn, err := s.active()
	if err != nil {
		return err
	}
	return s.steer(ctx, conn, r, s.input(input), clientID)
}

func (s *session) steer(ctx context.Context, conn *jsonrpc.Conn, r *run, input []userInput, clientID string) error {
	turn, err := r.turnID(ctx)
	if err != nil {
		return err
	}
	err = conn.Call(ctx, "turn/steer", map[string]any{
		"threadId": r.thread, "expectedTurnId": turn, "input": input, "clientUserMessageId": clientID,
	}, nil)
	var refused *jsonrpc.Error
	switch {
	case errors.As(err, &refused), errors.Is(err, jsonrpc.ErrClosed):
		return thole.Errorf(thole.CodeConflict, "%w: %w", provider.ErrNoTurn, err)
	case err != nil:
		return thole.Errorf(thole.CodeUnavailable, "steer codex: %w", err)
	}
	return nil
}

// Answer implements provider.Session.
func (s *session) Answer(ctx context.Context, id thole.AskID, answer thole.Answer) error {
	s.mu.Lock()
	r, conn := s.run, s.conn
	if r == nil {
		s.mu.Unlock()
		return provider.ErrNoTurn
	}
	p, ok := r.pending[id]
	delete(r.pending, id)
	s.mu.Unlock()
	if !ok {
		return provider.ErrSettled
	}
	// Codex takes no words with a denial; they follow as input of the turn, told
	// before the denial so that the next model call has both.
	if answer.Decision == thole.DecisionDeny && answer.Message != "" && p.ask.Kind != thole.AskInput {
		clientID := thole.NewID[string](time.Now())
		s.post(message{method: quietSteer, params: []byte(clientID)})
		_ = s.steer(ctx, conn, r, []userInput{{Type: "text", Text: "About the denied request: " + answer.Message}}, clientID)
	}
	if err := p.req.Reply(p.reply(answer)); err != nil {
		return thole.Errorf(thole.CodeUnavailable, "answer codex: %w", err)
	}
	s.post(message{answered: id, answer: &answer})
	return nil
}

// Defer implements provider.Session: codex forgets its questions with its process.
func (s *session) Defer(context.Context, thole.AskID) error { return provider.ErrUnsupported }

// Stop implements provider.Session.
func (s *session) Stop(context.Context) error {
	r, _, err := s.active()
	if err != nil {
		return err
	}
	select {
	case r.stop <- struct{}{}:
	default: // somebody asked already
	}
	return nil
}
