package identity

import (
	"context"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
)

// remembered is how long rights are believed without asking the store: a change is heard
// of at once, and a word that was lost costs no more than this.
const remembered = 5 * time.Second

// agentScope is the line of the table with what agents do for their users.
const agentScope = "agent"

// rights are the subjects of users that were asked for lately. mu guards all but cancel.
type rights struct {
	cancel func()
	mu     sync.Mutex
	round  int // of what was forgotten: a reading that began before is not kept
	by     map[thole.UserID]known
}

type known struct {
	subject authz.Subject
	until   time.Time
}

// forget is called after every change of this process, and when another's is heard of.
func (r *rights) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.round++
	clear(r.by)
}

// Subject is who decisions about an actor are about. What is not a user may do nothing.
func (m *Machine) Subject(ctx context.Context, actor thole.Actor) (authz.Subject, error) {
	switch {
	case actor.Via == thole.SystemActor.Via && actor.User == thole.SystemUser:
		return authz.Subject{User: actor.User, Program: true}, nil
	case actor.Via == thole.SystemActor.Via && actor.Valid(): // the program for a user: no more than the user
	case !actor.Person():
		return authz.Subject{}, nil
	}
	now := m.now()
	m.rights.mu.Lock()
	have, ok := m.rights.by[actor.User]
	round := m.rights.round
	m.rights.mu.Unlock()
	if ok && now.Before(have.until) {
		return have.subject, nil
	}
	f, err := m.facts(ctx, actor.User)
	if err != nil {
		return authz.Subject{}, err
	}
	have = known{f.Subject(), now.Add(remembered)}
	for _, g := range f.Grants {
		if !g.Expires.IsZero() && g.Expires.Before(have.until) {
			have.until = g.Expires
		}
	}
	m.rights.mu.Lock()
	defer m.rights.mu.Unlock()
	if m.rights.round == round {
		if m.rights.by == nil || len(m.rights.by) > 10_000 {
			m.rights.by = map[thole.UserID]known{}
		}
		m.rights.by[actor.User] = have
	}
	return have.subject, nil
}

// read is Subject without memory.
func (m *Machine) read(ctx context.Context, actor thole.Actor) (authz.Subject, error) {
	if !actor.Person() && actor.Via != thole.SystemActor.Via || actor.User == thole.SystemUser {
		return m.Subject(ctx, actor)
	}
	f, err := m.facts(ctx, actor.User)
	return f.Subject(), err
}

func (m *Machine) facts(ctx context.Context, user thole.UserID) (Facts, error) {
	f, _, err := m.cfg.Store.Facts(ctx, user, m.now()) // nobody has the zero facts: nothing
	if err != nil {
		return Facts{}, thole.Errorf(thole.CodeOf(err), "read rights of %s: %w", user, err)
	}
	return f, nil
}

// Access says to which users' things an actor may do something. An agent has what its user
// owns, for what the table lets agents do: no grant of the user's is the agent's.
func (m *Machine) Access(ctx context.Context, actor thole.Actor, action authz.Action) (authz.Scope, error) {
	if actor.Via == thole.AgentActor.Via && actor.User != "" {
		s, err := m.Subject(ctx, thole.Actor{User: actor.User, Via: "run"})
		if err != nil {
			return authz.Scope{}, err
		}
		s.Token = agentScope
		return authz.ScopeOf(s, action).Mine(actor), nil
	}
	s, err := m.Subject(ctx, actor)
	if err != nil {
		return authz.Scope{}, err
	}
	return authz.ScopeOf(s, action), nil
}

// Can decides about one thing.
func (m *Machine) Can(ctx context.Context, actor thole.Actor, action authz.Action, on authz.Resource) (bool, error) {
	s, err := m.Subject(ctx, actor)
	if err != nil {
		return false, err
	}
	ok, _ := authz.Can(s, action, on)
	return ok, nil
}
