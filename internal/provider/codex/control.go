package codex

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/provider"
)

// active returns the running turn with its connection and the CLI's turn id.
func (s *session) active() (*run, *client, error) {
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
	turn, err := r.turnID(ctx)
	if err != nil {
		return err
	}
	err = conn.Call(ctx, "turn/steer", steerParams(r.thread, turn, s.input(input), clientID, ""), nil)
	var refused *jsonrpc.Error
	switch {
	case errors.As(err, &refused), errors.Is(err, errGone):
		return thole.Errorf(thole.CodeConflict, "%w: %w", provider.ErrNoTurn, err)
	case err != nil:
		return thole.Errorf(thole.CodeUnavailable, "steer codex: %w", err)
	}
	return nil
}

// Answer implements provider.Session.
func (s *session) Answer(ctx context.Context, id thole.AskID, answer event.Answer) error {
	s.mu.Lock()
	r, conn := s.run, s.conn
	if r == nil {
		s.mu.Unlock()
		return provider.ErrNoTurn
	}
	p, ok := r.pending[id]
	if ok {
		delete(r.pending, id)
		r.answered[id] = answer
	}
	s.mu.Unlock()
	if !ok {
		return provider.ErrSettled
	}
	// Codex takes no words with a denial; they follow as input of the turn, sent
	// before the denial so that the next model call has both.
	if answer.Decision == event.DecisionDeny && answer.Message != "" && p.ask.Kind != event.AskInput {
		if turn, err := r.turnID(ctx); err == nil {
			_ = conn.Go("turn/steer", steerParams(r.thread, turn, []userInput{{Type: "text", Text: "About the denied request: " + answer.Message}},
				thole.NewID[string](time.Now()), quiet), func(json.RawMessage, error) {})
		}
	}
	if err := conn.Reply(p.id, p.reply(answer), nil); err != nil {
		return thole.Errorf(thole.CodeUnavailable, "answer codex: %w", err)
	}
	return nil
}

func steerParams(thread, turn string, input []userInput, clientID, prefix string) map[string]any {
	return map[string]any{"threadId": thread, "expectedTurnId": turn, "input": input, "clientUserMessageId": prefix + clientID}
}

// Defer implements provider.Session: codex forgets its questions with its process.
func (s *session) Defer(context.Context, thole.AskID) error { return provider.ErrUnsupported }

// Stop implements provider.Session.
func (s *session) Stop(context.Context) error {
	r, _, err := s.active()
	if err != nil {
		return err
	}
	r.em.Interrupt()
	select {
	case r.stop <- struct{}{}:
	default: // somebody asked already
	}
	return nil
}
