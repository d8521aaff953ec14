package thread

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
)

// guest is a subscriber who reads another's thread by a grant, which may end before the
// subscription does.
type guest struct {
	actor thole.Actor
	owner thole.Owner
	id    thole.ThreadID
	sub   *subscriber
}

// welcome remembers a subscriber whose right to read must be looked at again.
func (m *Machine) welcome(actor thole.Actor, owner thole.Owner, id thole.ThreadID, s *subscriber) {
	if actor.User == owner.User || actor.Via == thole.SystemActor.Via {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.guests[s] = guest{actor, owner, id, s}
}

func (m *Machine) leave(s *subscriber) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.guests, s)
}

// dismiss ends the subscriptions of those who may not read any more, and leaves those of
// whom nothing can be learned.
func (m *Machine) dismiss(ctx context.Context) {
	m.mu.Lock()
	all := make([]guest, 0, len(m.guests))
	for _, g := range m.guests {
		all = append(all, g)
	}
	m.mu.Unlock()
	for _, g := range all {
		if g.sub.over() {
			m.leave(g.sub)
		} else if err := m.may(authz.Sifting(ctx), g.actor, authz.ViewThread, g.owner, g.id); thole.CodeOf(err) == thole.CodeNotFound {
			g.sub.end(err, false)
			m.leave(g.sub)
		}
	}
}
