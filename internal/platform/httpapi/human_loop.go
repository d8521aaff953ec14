package httpapi

import (
	"context"
	"encoding/json"
	"slices"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/platform/view"
	"github.com/tholehq/thole/internal/thread"
)

// InboxIn is how the questions of all sessions are walked.
type InboxIn struct {
	Cursor string `query:"cursor" doc:"from a list's next"`
	Limit  int    `query:"limit" minimum:"0" maximum:"200" doc:"50 when absent"`
}

// waiting lists the pending asks of all threads.
func (s *Server) waiting(ctx context.Context, in *InboxIn) (thread.Page[thread.Waiting], error) {
	return s.cfg.Threads.Waiting(ctx, actorOf(ctx), PageIn{Cursor: in.Cursor, Limit: in.Limit}.params())
}

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

func inboxEntry(w thread.Waiting) view.InboxEntry {
	title := w.Name
	if title == "" {
		title = w.Preview
	}
	return view.OfWaiting(w.Ask, view.InboxSession{ID: string(w.Ask.Thread), Title: title, Provider: w.Provider, Archived: w.Archived, ParentID: string(w.Parent)})
}

func (s *Server) humanLoopRoutes() {
	op(s, "GET", "/human-loop", "List the questions that wait for this user, oldest first", 200, func(ctx context.Context, in *InboxIn) (*body[list[view.Question]], error) {
		page, err := s.waiting(ctx, in)
		return answer(paged(page, func(w thread.Waiting) view.Question { return view.OfAsk(w.Ask) }), err)
	})
	op(s, "GET", "/inbox", "List the questions that wait for this user with their sessions, oldest first", 200, func(ctx context.Context, in *InboxIn) (*body[list[view.InboxEntry]], error) {
		page, err := s.waiting(ctx, in)
		return answer(paged(page, inboxEntry), err)
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
			Amendment json.RawMessage     `json:"amendment,omitempty" doc:"the agent's own rule to remember with always; the one it offered when absent"`
			Result    json.RawMessage     `json:"result,omitempty"`
		}
	}) (*body[view.Question], error) {
		t, err := s.run(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		ask, err := s.askOf(ctx, t, in.Question)
		if err != nil {
			return nil, err
		}
		b := in.Body
		if b.Decision == string(event.DecisionAlways) && len(b.Amendment) == 0 {
			b.Amendment = ask.Amendment
		}
		r, err := s.cfg.Threads.Answer(ctx, actorOf(ctx), t.Thread, thole.AskID(in.Question), event.Answer{
			Decision: event.Decision(b.Decision), Message: b.Message, Answers: b.Answers, Input: b.Input, Amendment: b.Amendment, Result: b.Result,
		})
		return answer(view.OfAsk(r), err)
	})
}

// askOf finds a question of this run.
func (s *Server) askOf(ctx context.Context, t fold.Turn, question string) (event.Ask, error) {
	asks, err := s.cfg.Threads.Asks(ctx, actorOf(ctx), t.Thread, false)
	if err != nil {
		return event.Ask{}, err
	}
	for _, a := range asks {
		if string(a.Ask.ID) == question && a.Turn == t.ID {
			return a.Ask, nil
		}
	}
	return event.Ask{}, thole.Errorf(thole.CodeNotFound, "run %s has no question %s", t.ID, question)
}
