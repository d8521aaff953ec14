package appserver

import (
	"context"
	"encoding/json"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/serial"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/protocol/app"
)

// registerGoals serves what a thread works at by itself.
func (s *Server) registerGoals() {
	inThread(on(s, "thread/goal/get", s.goalGet), serial.Shared, func(p *app.ThreadParams) string { return p.ThreadID })
	inThread(on(s, "thread/goal/set", s.goalSet), serial.Exclusive, func(p *app.GoalSetParams) string { return p.ThreadID })
	inThread(on(s, "thread/goal/clear", s.goalClear), serial.Exclusive, func(p *app.ThreadParams) string { return p.ThreadID })
}

// goalWords are the statuses by what the contract calls them.
var goalWords = map[string]event.GoalStatus{
	"active": event.GoalActive, "paused": event.GoalPaused, "blocked": event.GoalBlocked,
	"usageLimited": event.GoalUsageLimited, "budgetLimited": event.GoalBudgetLimited, "complete": event.GoalComplete,
}

// goal is the wire form of a thread's goal.
func goal(id thole.ThreadID, g event.Goal) app.Goal {
	out := app.Goal{
		ThreadID: string(id), Objective: g.Objective, Status: string(g.Status), TokensUsed: g.Tokens, TimeUsedSeconds: g.Millis / 1000,
		CreatedAt: g.Created.Unix(), UpdatedAt: g.Updated.Unix(),
	}
	for word, status := range goalWords {
		if status == g.Status {
			out.Status = word
		}
	}
	if g.Budget > 0 {
		out.TokenBudget = &g.Budget
	}
	return out
}

// goalNote announces a goal that changed, in a turn or in none.
func goalNote(at int64, id thole.ThreadID, turn thole.TurnID, g *event.Goal) *frame {
	if g == nil {
		return note("thread/goal/cleared", at, app.ThreadRef{ThreadID: string(id)})
	}
	p := app.GoalUpdated{ThreadID: string(id), Goal: goal(id, *g)}
	if turn != "" {
		p.TurnID = new(string(turn))
	}
	return note("thread/goal/updated", at, p)
}

func (s *Server) goalGet(ctx context.Context, c *conn, p *app.ThreadParams) (answer, error) {
	id, err := threadID(p.ThreadID)
	if err != nil {
		return answer{}, err
	}
	t, err := s.cfg.Threads.Get(ctx, c.who(), id)
	if err == nil && t.Ephemeral {
		err = thread.ErrNoGoals(id)
	}
	out := app.GoalGetResult{}
	if t.Goal != nil {
		out.Goal = new(goal(id, *t.Goal))
	}
	return result(out, err)
}

// goalSet changes a goal. Its origin changes nothing: who sets it here is the user of the
// connection.
func (s *Server) goalSet(ctx context.Context, c *conn, p *app.GoalSetParams) (answer, error) {
	id, err := threadID(p.ThreadID)
	if err != nil {
		return answer{}, err
	}
	change := thread.SetGoal{Objective: p.Objective}
	if p.Status != nil {
		status, ok := goalWords[*p.Status]
		if !ok {
			return answer{}, invalid("unknown variant `%s`, expected one of `active`, `paused`, `blocked`, `usageLimited`, `budgetLimited`, `complete`", *p.Status)
		}
		change.Status = &status
	}
	if o := str(p.Origin); o != "" && o != "user" && o != "automatic" {
		return answer{}, invalid("unknown variant `%s`, expected `user` or `automatic`", o)
	}
	if change.Budget, err = goalBudget(p.TokenBudget); err != nil {
		return answer{}, err
	}
	g, err := s.cfg.Threads.SetGoal(ctx, c.who(), id, change)
	return result(app.GoalSetResult{Goal: goal(id, g)}, err)
}

// goalBudget reads a budget: none is nil, null is 0.
func goalBudget(raw json.RawMessage) (*int64, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var n *int64
	if err := strictjson.Unmarshal(raw, &n); err != nil {
		return nil, invalid("tokenBudget is not a whole number")
	}
	switch {
	case n == nil:
		return new(int64), nil
	case *n <= 0:
		return nil, thole.Errorf(thole.CodeInvalid, "goal budgets must be positive when provided")
	}
	return n, nil
}

func (s *Server) goalClear(ctx context.Context, c *conn, p *app.ThreadParams) (answer, error) {
	id, err := threadID(p.ThreadID)
	if err != nil {
		return answer{}, err
	}
	cleared, err := s.cfg.Threads.ClearGoal(ctx, c.who(), id)
	return result(app.GoalClearResult{Cleared: cleared}, err)
}
