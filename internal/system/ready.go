package system

import (
	"context"
	"errors"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/roster"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
)

// readyParts are what a server needs to take work. Logins help only: without one the page
// is where to look, and a supervisor must not keep people from it.
func readyParts(db *store.DB, roles config.Server, dispatcher func() error, agents func() []provider.Info, connections httpapi.Connections) []httpapi.Part {
	return []httpapi.Part{
		{Name: "store", Check: func(ctx context.Context) error {
			return db.View(ctx, func(tx *sqldb.Tx) error {
				var users int64
				return tx.QueryRow(`select count(*) from users`).Scan(&users)
			})
		}},
		{Name: "dispatcher", Check: func(context.Context) error {
			if !roles.Has(roster.Dispatcher) {
				return nil
			}
			return dispatcher()
		}},
		{Name: "logins", Helps: true, Check: func(ctx context.Context) error {
			return anyLogin(ctx, agents(), connections)
		}},
	}
}

// anyLogin is nil if an agent that is here has a credential for its models. No service is
// asked whether it takes it.
func anyLogin(ctx context.Context, agents []provider.Info, connections httpapi.Connections) error {
	var none error = thole.Errorf(thole.CodeUnavailable, "no agent that is installed reaches a model")
	who := thole.Owner{App: thole.DefaultApp, Project: thole.DefaultProject, User: thole.LocalUser}
	for _, agent := range agents {
		if !agent.Available {
			continue
		}
		if agent.Name == "test" { // has no model
			return nil
		}
		sources, err := connections(ctx, who, agent.Name, false)
		if err == nil && len(sources) > 0 {
			return nil
		}
		none = errors.Join(none, err)
	}
	return none
}
