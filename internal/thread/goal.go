package thread

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
)

// Limits of goals. maxAlone turns may begin for a goal without a word from a person: an
// agent that goes in circles stops there.
const (
	maxObjective = 4000 // characters
	maxGoalNote  = 4 << 10
	maxAlone     = 20
)

// ErrNoGoals refuses goals of an ephemeral thread.
func ErrNoGoals(id thole.ThreadID) error {
	return thole.Errorf(thole.CodeInvalid, "ephemeral thread does not support goals: %s", id)
}

// SetGoal implements Service. Wording as clients of the contract know it.
func (m *Machine) SetGoal(ctx context.Context, actor thole.Actor, id thole.ThreadID, p SetGoal) (event.Goal, error) {
	if p.Objective != nil {
		text := strings.TrimSpace(*p.Objective)
		switch {
		case text == "":
			return event.Goal{}, thole.Errorf(thole.CodeInvalid, "goal objective must not be empty")
		case utf8.RuneCountInString(text) > maxObjective:
			return event.Goal{}, thole.Errorf(thole.CodeInvalid, "goal objective must be at most %d characters", maxObjective)
		}
		if err := checkText("goal objective", text, 4*maxObjective); err != nil {
			return event.Goal{}, err
		}
		p.Objective = &text
	}
	if p.Budget != nil && *p.Budget < 0 {
		return event.Goal{}, thole.Errorf(thole.CodeInvalid, "goal budgets must be positive when provided")
	}
	if p.Status != nil && !slices.Contains(event.GoalStatuses, *p.Status) {
		return event.Goal{}, thole.Errorf(thole.CodeInvalid, "unknown goal status %q", *p.Status)
	}
	var g event.Goal
	err := m.change(ctx, actor, id, "thread.set_goal", func(l *live, w *writer) (err error) {
		l.attached.Store(true)
		g, err = w.setGoal(p)
		return err
	})
	return g, err
}

// ReportGoal implements Service.
func (m *Machine) ReportGoal(ctx context.Context, actor thole.Actor, id thole.ThreadID, turn thole.TurnID, status event.GoalStatus, note string) (event.Goal, error) {
	if status != event.GoalComplete && status != event.GoalBlocked {
		return event.Goal{}, thole.Errorf(thole.CodeInvalid, "a goal is reported complete or blocked, not %.32q", status)
	}
	if err := checkText("note", note, maxGoalNote); err != nil {
		return event.Goal{}, err
	}
	var g event.Goal
	err := m.change(ctx, actor, id, "thread.report_goal", func(_ *live, w *writer) error {
		now := w.s.Row.Thread.Goal
		switch {
		case w.s.OpenID() != turn:
			return thole.Errorf(thole.CodeGone, "the turn is over")
		case now == nil:
			return thole.Errorf(thole.CodeNotFound, "this thread has no goal")
		case now.Status == status:
			g = *now
			return nil
		}
		g = *now
		g.Status = status
		w.goal(turn, &g)
		if status == event.GoalBlocked && note != "" {
			w.add(event.NoteReported, turn, event.Data{Text: "the goal is blocked: " + note})
		}
		return w.err
	})
	return g, err
}

// ClearGoal implements Service. A turn that works at the goal goes on to its end.
func (m *Machine) ClearGoal(ctx context.Context, actor thole.Actor, id thole.ThreadID) (bool, error) {
	cleared := false
	err := m.change(ctx, actor, id, "thread.clear_goal", func(_ *live, w *writer) error {
		if cleared = w.s.Row.Thread.Goal != nil; cleared {
			w.add(event.GoalUpdated, "", event.Data{})
		}
		return w.err
	})
	return cleared && err == nil, err
}

// setGoal changes the goal and begins to work at it.
func (w *writer) setGoal(p SetGoal) (event.Goal, error) {
	g := event.Goal{Status: event.GoalActive, Created: w.now}
	if now := w.s.Row.Thread.Goal; now != nil {
		g = *now
	} else if p.Objective == nil {
		return g, thole.Errorf(thole.CodeInvalid, "cannot update goal for thread %s: no goal exists", w.s.Row.Thread.ID)
	}
	if w.s.Row.Thread.Ephemeral {
		return g, ErrNoGoals(w.s.Row.Thread.ID)
	}
	if p.Objective != nil {
		g.Objective = *p.Objective
	}
	if p.Status != nil {
		g.Status = *p.Status
	}
	if p.Budget != nil {
		g.Budget = *p.Budget
	}
	if g.Status == event.GoalActive && g.Spent() {
		g.Status = event.GoalBudgetLimited
	}
	if w.actor.Person() {
		g.Alone = 0
	}
	w.goal("", &g)
	w.drain()
	return *w.s.Row.Thread.Goal, w.err
}

func (w *writer) goal(turn thole.TurnID, g *event.Goal) {
	g.Updated = w.now
	w.add(event.GoalUpdated, turn, event.Data{Goal: g})
}

// settleGoal counts the turn that ends for the goal, and stops a goal that must not go on by
// itself: after a turn that did not complete, without budget, or too long alone.
func (w *writer) settleGoal(o thole.Outcome, why *thole.TurnError) {
	t, now := w.s.Open, w.s.Row.Thread.Goal
	if now == nil || now.Status != event.GoalActive && now.Updated.Before(t.Created) {
		return // nobody worked at it
	}
	g, note := *now, ""
	command, _ := thole.TurnCommandOf(t.Input)
	if !t.Created.Before(g.Created) && command.AgentRuns() {
		g.Tokens += t.Usage.Input + t.Usage.Output
		if !t.Stamp.Started.IsZero() {
			g.Millis += max(0, w.now.Sub(t.Stamp.Started).Milliseconds())
		}
	}
	if g.Status == event.GoalActive {
		switch {
		case o == thole.OutcomeInterrupted:
			g.Status = event.GoalPaused
		case o == thole.OutcomeFailed && command.AgentRuns():
			g.Status = event.GoalPaused
			if why != nil && (why.Code == thole.ErrRateLimit || why.Code == thole.ErrBudget) {
				g.Status = event.GoalUsageLimited
			}
		case g.Spent():
			g.Status = event.GoalBudgetLimited
		case g.Alone >= maxAlone:
			g.Status, note = event.GoalPaused, fmt.Sprintf("the goal is paused: the agent worked at it for %d turns without a word from you; resume it when it should go on", g.Alone)
		}
	}
	w.goal(t.ID, &g)
	if note != "" {
		w.add(event.NoteReported, t.ID, event.Data{Text: note})
	}
}

// pursue begins a turn for an active goal on a thread that has nothing else to do: what is
// queued went first, or waits for a person. It is in the transaction that made the thread
// idle, so there is never none and never two. A goal that cannot go on says so.
func (w *writer) pursue() {
	th := w.s.Row.Thread
	if w.err != nil || th.Goal == nil || th.Goal.Status != event.GoalActive || w.s.Open != nil || th.Archived {
		return
	}
	actor := w.actor
	w.actor = thole.SystemActor
	_, err := w.startTurn(StartTurn{Thread: th.ID, Input: thole.Goal(th.Goal.Objective)})
	w.actor = actor
	if err != nil && w.err == nil {
		g := *th.Goal
		g.Status = event.GoalUsageLimited
		w.goal("", &g)
		w.add(event.NoteReported, "", event.Data{Text: "the goal waits: " + err.Error()})
	}
}
