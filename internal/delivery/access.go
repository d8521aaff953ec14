package delivery

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
)

// Access says to which users' jobs and batches an actor may do something.
type Access func(ctx context.Context, actor thole.Actor, action authz.Action) (authz.Scope, error)

func ownDeliveries(_ context.Context, a thole.Actor, _ authz.Action) (authz.Scope, error) {
	return authz.Own(a), nil
}

// reach is what an actor may do something to. It is read before a transaction begins.
type reach struct {
	actor thole.Actor
	scope authz.Scope
}

func (m *Machine) reach(ctx context.Context, actor thole.Actor, action authz.Action) (reach, error) {
	scope, err := m.access(ctx, actor, action)
	if err != nil {
		err = thole.Errorf(thole.CodeOf(err), "read rights: %w", err)
	}
	return reach{actor, scope}, err
}

// to reports whether a thing of that owner is inside. The program keeps the books of a user
// also when the user may do nothing any more.
func (r reach) to(o thole.Owner) bool {
	return r.scope.Sees(o) || r.actor.Via == thole.SystemActor.Via && r.actor.User == o.User
}
