package httpapi

import (
	"context"
	"encoding/json"
	"slices"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/platform/view"
)

// maxWaiting bounds the threads that one list of questions looks into.
const maxWaiting = 200

type StateIn struct {
	State string `query:"state" enum:"pending,all" doc:"all when absent"`
}

// questions lists a thread's asks, of one turn if it is named.
func (s *Server) questions(ctx context.Context, id thole.ThreadID, turn thole.TurnID, state string) (list[view.Question], error) {
	asks, err := s.cfg.Threads.Asks(ctx, actorOf(ctx), id, state == "pending")
	if turn != "" {
		asks = slices.DeleteFunc(slices.Clone(asks), func(r fold.AskRecord) bool { return r.Turn != turn })
	}
	return list[view.Question]{Items: view.Each(asks, view.OfAsk)}, err
}

func (s *Server) humanLoopRoutes() {
	op(s, "GET", "/human-loop", "List the questions that wait for this user", 200, func(ctx context.Context, _ *struct{}) (*body[list[view.Question]], error) {
		ids, err := s.cfg.Index.Waiting(ctx, actorOf(ctx).User, maxWaiting)
		if err != nil {
			return nil, err
		}
		out := list[view.Question]{Items: []view.Question{}}
		for _, id := range ids {
			of, err := s.questions(ctx, id, "", "pending")
			if thole.CodeOf(err) == thole.CodeNotFound {
				continue
			}
			if err != nil {
				return nil, err
			}
			out.Items = append(out.Items, of.Items...)
		}
		slices.SortStableFunc(out.Items, func(a, b view.Question) int { return a.AskedAt.Compare(b.AskedAt) })
		return answer(out, nil)
	})
	op(s, "GET", "/sessions/{session_id}/human-loop", "List the questions of a session", 200, func(ctx context.Context, in *struct {
		SessionID
		StateIn
	}) (*body[list[view.Question]], error) {
		return answer(s.questions(ctx, in.thread(), "", in.State))
	})
	op(s, "GET", "/runs/{run_id}/human-loop", "List the questions of a run", 200, func(ctx context.Context, in *struct {
		RunID
		StateIn
	}) (*body[list[view.Question]], error) {
		t, err := s.run(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		return answer(s.questions(ctx, t.Thread, t.ID, in.State))
	})
	op(s, "POST", "/runs/{run_id}/human-loop/{question_id}/reply", "Answer a question; the first answer wins", 200, func(ctx context.Context, in *struct {
		RunID
		Question string `path:"question_id"`
		Body     struct {
			Decision  string              `json:"decision,omitempty" enum:"allow,always,deny,cancel"`
			Message   string              `json:"message,omitempty" doc:"goes to the agent with a denial"`
			Answers   map[string][]string `json:"answers,omitempty" doc:"by question id"`
			Input     json.RawMessage     `json:"input,omitempty" doc:"replaces the tool's input where the provider can"`
			Amendment json.RawMessage     `json:"amendment,omitempty"`
			Result    json.RawMessage     `json:"result,omitempty"`
		}
	}) (*body[view.Question], error) {
		t, err := s.run(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		if err := s.asksThis(ctx, t, in.Question); err != nil {
			return nil, err
		}
		b := in.Body
		r, err := s.cfg.Threads.Answer(ctx, actorOf(ctx), t.Thread, thole.AskID(in.Question), event.Answer{
			Decision: event.Decision(b.Decision), Message: b.Message, Answers: b.Answers, Input: b.Input, Amendment: b.Amendment, Result: b.Result,
		})
		return answer(view.OfAsk(r), err)
	})
}

// asksThis checks that the question is one of this run's.
func (s *Server) asksThis(ctx context.Context, t fold.Turn, question string) error {
	asks, err := s.cfg.Threads.Asks(ctx, actorOf(ctx), t.Thread, false)
	if err != nil {
		return err
	}
	for _, a := range asks {
		if string(a.Ask.ID) == question && a.Turn == t.ID {
			return nil
		}
	}
	return thole.Errorf(thole.CodeNotFound, "run %s has no question %s", t.ID, question)
}
