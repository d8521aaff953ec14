package system

import (
	"context"
	"log/slog"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/gateway"
	"github.com/tholehq/thole/internal/mcp"
	"github.com/tholehq/thole/internal/provider/registry"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/thread"
)

// agentTools is the tool server that every agent has, nil where agents.mcp is off. The
// dispatcher is made after it.
func agentTools(cfg *config.Config, db *store.DB, threads *thread.Machine, jobs *delivery.Machine, agents *registry.Registry, dispatcher func() *dispatch.Dispatcher, log *slog.Logger) gateway.Tools {
	if !cfg.Agents.MCP {
		return nil
	}
	return mcp.New(mcp.Config{
		Threads: threads, Jobs: jobs, Children: db.Index().Children, Providers: agents.All, Inside: executor.Scope(cfg.Executor.Scope) == executor.ScopeThread, Log: log,
		Ask: func(ctx context.Context, turn thole.TurnID, ask event.Ask) (event.Answer, error) {
			return dispatcher().Ask(ctx, turn, ask)
		},
	})
}
