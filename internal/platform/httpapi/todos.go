package httpapi

import (
	"context"
	"strconv"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/platform/view"
)

// todoEvent is one change of a todo list.
type todoEvent struct {
	ID    string      `json:"id"`
	Seq   uint64      `json:"seq"`
	RunID string      `json:"run_id"`
	TS    time.Time   `json:"ts"`
	Type  string      `json:"type" enum:"todo.snapshot,todo.update"`
	Todos []view.Todo `json:"todos"`
	event event.Event
}

const (
	logPage  = 500
	logPages = 40 // bounds what one request reads
)

// todoEvents reads the changes after a position, of one turn if it is named.
// next is where to go on, 0 at the end.
func (s *Server) todoEvents(ctx context.Context, id thole.ThreadID, turn thole.TurnID, after uint64, limit int) (out []todoEvent, next uint64, err error) {
	out = []todoEvent{}
	for range logPages {
		events, err := s.cfg.Threads.Events(ctx, actorOf(ctx), id, after, logPage)
		if err != nil {
			return out, 0, err
		}
		for _, e := range events {
			after = e.Seq
			if turn != "" && e.Turn == turn && e.Kind == event.TurnEnded {
				return out, 0, nil
			}
			if e.Kind != event.TodoSnapshot && e.Kind != event.TodoUpdate || turn != "" && e.Turn != turn {
				continue
			}
			out = append(out, todoEvent{string(e.ID), e.Seq, string(e.Turn), e.Time, view.TypeOf(e.Kind), append([]view.Todo{}, view.OfTodos(e.Todos)...), e})
			if len(out) == limit {
				return out, after, nil
			}
		}
		if len(events) < logPage {
			return out, 0, nil
		}
	}
	return out, after, nil
}

func (s *Server) todoList(ctx context.Context, id thole.ThreadID, turn thole.TurnID, floor uint64, p PageIn) (*body[list[todoEvent]], error) {
	after := floor
	if p.Cursor != "" {
		n, err := strconv.ParseUint(p.Cursor, 10, 63)
		if err != nil {
			return nil, thole.Errorf(thole.CodeInvalid, "invalid cursor: %s", p.Cursor)
		}
		after = max(n, floor)
	}
	out, next, err := s.todoEvents(ctx, id, turn, after, p.params().Limit)
	l := list[todoEvent]{Items: out}
	if next > 0 {
		l.Next = strconv.FormatUint(next, 10)
	}
	return answer(l, err)
}

// runTodos folds a run's list from its changes.
func (s *Server) runTodos(ctx context.Context, t fold.Turn) (list[view.Todo], error) {
	var state fold.State
	after := t.Seq - 1
	for {
		changes, next, err := s.todoEvents(ctx, t.Thread, t.ID, after, 1000)
		if err != nil {
			return list[view.Todo]{}, err
		}
		for _, c := range changes {
			state.Follow(c.event)
		}
		if after = next; next == 0 {
			return list[view.Todo]{Items: append([]view.Todo{}, view.OfTodos(state.Todos)...)}, nil
		}
	}
}

func (s *Server) todoRoutes() {
	op(s, "GET", "/sessions/{session_id}/todos", "The current todo list", 200, func(ctx context.Context, in *SessionID) (*body[list[view.Todo]], error) {
		todos, err := s.cfg.Threads.Todos(ctx, actorOf(ctx), in.thread())
		return listed(view.OfTodos(todos), err)
	})
	op(s, "GET", "/sessions/{session_id}/todos/events", "How the todo list changed, oldest first", 200, func(ctx context.Context, in *struct {
		SessionID
		PageIn
	}) (*body[list[todoEvent]], error) {
		t, err := s.cfg.Threads.Get(ctx, actorOf(ctx), in.thread())
		if err != nil {
			return nil, err
		}
		return s.todoList(ctx, t.ID, "", t.Floor, in.PageIn)
	})
	op(s, "GET", "/runs/{run_id}/todos", "The todo list of a run", 200, func(ctx context.Context, in *RunID) (*body[list[view.Todo]], error) {
		t, err := s.run(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		return answer(s.runTodos(ctx, t))
	})
	op(s, "GET", "/runs/{run_id}/todos/events", "How the todo list of a run changed", 200, func(ctx context.Context, in *struct {
		RunID
		PageIn
	}) (*body[list[todoEvent]], error) {
		t, err := s.run(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		return s.todoList(ctx, t.Thread, t.ID, t.Seq-1, in.PageIn)
	})
}
