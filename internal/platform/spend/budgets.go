package spend

import (
	"context"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/budget"
)

// Amount is in millionths of a US dollar and in tokens.
type Amount struct {
	Micros int64 `json:"micros"`
	Tokens int64 `json:"tokens"`
}

// State is what a subject has used of a budget in this period.
type State struct {
	Subject  string `json:"subject"`
	Spent    Amount `json:"spent"`
	Reserved Amount `json:"reserved" doc:"the most that calls may use that run now"`
	Unpriced int64  `json:"unpriced" doc:"charges without a price: they count tokens only"`
	Level    string `json:"level" enum:"ok,soft,spent"`
}

// Budget is a limit and how much of it is used.
type Budget struct {
	ID          string    `json:"id"`
	Scope       string    `json:"scope" enum:"user,project,app,thread,turn"`
	Subject     string    `json:"subject,omitempty" doc:"id of the user, project, app or session; absent: each one by itself"`
	Period      string    `json:"period" enum:"day,month,total" doc:"UTC"`
	LimitMicros int64     `json:"limit_micros,omitempty"`
	LimitTokens int64     `json:"limit_tokens,omitempty"`
	Soft        int64     `json:"soft_pct"`
	Action      string    `json:"action" enum:"warn,block_new,interrupt"`
	Version     int64     `json:"version"`
	CreatedBy   string    `json:"created_by"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
	ResetsAt    time.Time `json:"resets_at,omitzero"`
	// States are the subjects' that the caller may see, the most first.
	States []State `json:"states"`
	// Changes are in the view of one budget alone, the newest first.
	Changes []Change `json:"changes,omitempty"`
}

// Change is who changed a budget.
type Change struct {
	Action      string    `json:"action" enum:"set,remove"`
	Actor       string    `json:"actor"`
	Via         string    `json:"via"`
	LimitMicros int64     `json:"limit_micros,omitempty"`
	LimitTokens int64     `json:"limit_tokens,omitempty"`
	At          time.Time `json:"at"`
}

// SetParams makes or changes a budget.
type SetParams struct {
	Scope       string `json:"scope" enum:"user,project,app,thread,turn"`
	Subject     string `json:"subject,omitempty" doc:"absent: each one of the scope by itself"`
	Period      string `json:"period,omitempty" enum:"day,month,total" doc:"month when absent, total for threads and turns"`
	LimitMicros int64  `json:"limit_micros,omitempty" minimum:"0"`
	LimitTokens int64  `json:"limit_tokens,omitempty" minimum:"0"`
	Soft        *int64 `json:"soft_pct,omitempty" minimum:"0" maximum:"100" doc:"80 when absent"`
	Action      string `json:"action,omitempty" enum:"warn,block_new,interrupt" doc:"interrupt when absent"`
}

func (p SetParams) budget() budget.Budget {
	b := budget.Budget{
		Scope: budget.Scope(p.Scope), Subject: p.Subject, Period: budget.Period(p.Period), Micros: p.LimitMicros, Tokens: p.LimitTokens, Soft: 80, Action: budget.Action(p.Action),
	}
	if p.Soft != nil {
		b.Soft = *p.Soft
	}
	if b.Action == "" {
		b.Action = budget.ActionInterrupt
	}
	if b.Period == "" {
		b.Period = budget.PeriodMonth
		if b.Scope == budget.ScopeThread || b.Scope == budget.ScopeTurn {
			b.Period = budget.PeriodTotal
		}
	}
	return b
}

// Any and None are versions that Set expects: whichever there is, and that there is none.
const (
	Any  int64 = 0
	None int64 = -1
)

// Set makes a budget, or replaces the limits of the one of the same scope, subject and
// period, by who manages budgets there: one limits others too.
func (s *Service) Set(ctx context.Context, actor thole.Actor, p SetParams, expect int64) (Budget, error) {
	b := p.budget()
	if err := s.manages(ctx, actor, b); err != nil {
		return Budget{}, err
	}
	if err := b.Check(); err != nil {
		return Budget{}, err
	}
	now := s.cfg.Now()
	b.ID = budget.ID(s.cfg.NewID(now))
	b, err := s.cfg.Budgets.Set(ctx, b, expect, actor, now)
	if err != nil {
		return Budget{}, err
	}
	return s.show(ctx, actor, b)
}

// manages refuses who may not change a budget. One of a project or an app is theirs who manage
// that; all others, which concern everybody or another user, are the platform's.
func (s *Service) manages(ctx context.Context, actor thole.Actor, b budget.Budget) error {
	on := authz.Resource{}
	if b.Subject != "" {
		switch b.Scope {
		case budget.ScopeProject:
			on.Project = thole.ProjectID(b.Subject)
		case budget.ScopeApp:
			on.App = thole.AppID(b.Subject)
		case budget.ScopeUser, budget.ScopeThread, budget.ScopeTurn:
		}
	}
	ok, err := s.cfg.Can(ctx, actor, authz.ManageBudget, on)
	if err == nil && !ok {
		err = thole.Errorf(thole.CodeForbidden, "this needs the right to %s", authz.ManageBudget).WithHint("ask who runs this server")
	}
	return err
}

// everybodys reports whether an actor sees what everybody uses.
func (s *Service) everybodys(ctx context.Context, actor thole.Actor) (bool, error) {
	return s.cfg.Can(ctx, actor, authz.ManageBudget, authz.Resource{})
}

// Remove takes a budget away.
func (s *Service) Remove(ctx context.Context, actor thole.Actor, id string, expect int64) error {
	b, err := s.find(ctx, actor, id)
	if err == nil {
		err = s.manages(ctx, actor, b)
	}
	if err != nil {
		return err
	}
	return s.cfg.Budgets.Remove(ctx, budget.ID(id), expect, actor, s.cfg.Now())
}

// List shows the budgets that concern an actor.
func (s *Service) List(ctx context.Context, actor thole.Actor) ([]Budget, error) {
	all, err := s.cfg.Budgets.List(ctx)
	out := []Budget{}
	for _, b := range all {
		ok, err := s.sees(ctx, actor, b)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		shown, err := s.show(ctx, actor, b)
		if err != nil {
			return nil, err
		}
		out = append(out, shown)
	}
	return out, err
}

// Show shows one budget with its history.
func (s *Service) Show(ctx context.Context, actor thole.Actor, id string) (Budget, error) {
	b, err := s.find(ctx, actor, id)
	if err != nil {
		return Budget{}, err
	}
	out, err := s.show(ctx, actor, b)
	if err != nil || s.manages(ctx, actor, b) != nil { // who changed it is for those who may
		return out, err
	}
	changes, err := s.cfg.Budgets.Changes(ctx, b.ID, 50)
	for _, c := range changes {
		out.Changes = append(out.Changes, Change{c.Action, c.Actor.Who(), c.Actor.Via, c.Budget.Micros, c.Budget.Tokens, c.At})
	}
	return out, err
}

func (s *Service) find(ctx context.Context, actor thole.Actor, id string) (budget.Budget, error) {
	b, err := s.cfg.Budgets.Get(ctx, budget.ID(id))
	if err != nil {
		return b, err
	}
	ok, err := s.sees(ctx, actor, b)
	if err == nil && !ok {
		err = budget.NotFound(b.ID)
	}
	return b, err
}

// sees reports whether a budget concerns an actor.
func (s *Service) sees(ctx context.Context, actor thole.Actor, b budget.Budget) (bool, error) {
	if b.Subject == "" {
		return true, nil
	}
	if all, err := s.everybodys(ctx, actor); all || err != nil {
		return all, err
	}
	switch b.Scope {
	case budget.ScopeUser:
		return b.Subject == string(actor.User), nil
	case budget.ScopeThread:
		_, err := s.cfg.Thread(authz.Sifting(ctx), actor, thole.ThreadID(b.Subject))
		return err == nil, nil
	case budget.ScopeProject, budget.ScopeApp, budget.ScopeTurn:
	}
	return b.Scope != budget.ScopeTurn, nil
}

// maxStates bounds how many subjects one view shows.
const maxStates = 20

func (s *Service) show(ctx context.Context, actor thole.Actor, b budget.Budget) (Budget, error) {
	now := s.cfg.Now()
	_, next := b.Period.Bounds(now)
	out := Budget{
		ID: string(b.ID), Scope: string(b.Scope), Subject: b.Subject, Period: string(b.Period), LimitMicros: b.Micros, LimitTokens: b.Tokens, Soft: b.Soft, Action: string(b.Action),
		Version: b.Version, CreatedBy: string(b.By), CreatedAt: b.Created, UpdatedAt: b.Updated, ResetsAt: next, States: []State{},
	}
	all, err := s.everybodys(ctx, actor)
	if err != nil {
		return out, err
	}
	if !all && b.Subject == "" {
		if b.Scope != budget.ScopeUser {
			return out, nil // the subjects are other people's too
		}
		b.Subject = string(actor.User)
	}
	states, err := s.cfg.Budgets.States(ctx, b, now, maxStates)
	if one := b.SubjectOf(budget.Place{Owner: thole.DefaultOwner}); len(states) == 0 && one != "" && err == nil {
		b.Subject = one // what was used before anything asked the budget
		states, err = s.cfg.Budgets.States(ctx, b, now, maxStates)
	}
	for _, st := range states {
		level := map[budget.Level]string{budget.LevelOK: "ok", budget.LevelSoft: "soft", budget.LevelSpent: "spent"}[b.Level(st)]
		out.States = append(out.States, State{st.Subject, Amount(st.Spent), Amount(st.Reserved), st.Unpriced, level})
	}
	return out, err
}
