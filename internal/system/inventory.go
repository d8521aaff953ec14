package system

import (
	"context"
	"encoding/json"
	"os"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/daemon/executors"
	"github.com/tholehq/thole/internal/mcp"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/ownconfig"
	"github.com/tholehq/thole/internal/version"
)

// inventory says what agents have: those that run by their own word, others by the
// configuration of the user of this machine.
type inventory struct {
	asked *executors.Service
	own   func(cli, here string) ownconfig.Config // nil: no configuration goes into sessions
}

// newInventory makes one; in a demonstration sessions have nothing of the user's.
func newInventory(cfg *config.Config, demo bool, asked *executors.Service) inventory {
	home, err := os.UserHomeDir()
	if demo || err != nil {
		return inventory{asked: asked}
	}
	return inventory{asked, OwnConfig(cfg, home)}
}

// ownConfig is what the page shows of the user's own configuration; nil: sessions have none.
func ownConfig(o Options) httpapi.OwnConfig {
	own := newInventory(o.Config, o.Demo, nil).own
	if own == nil {
		return nil
	}
	return func(cli string) ownconfig.Config { return own(cli, "") }
}

// Running asks the agent. Of our own server we know more than it does: an agent that looks
// between its turns is turned away there.
func (i inventory) Running(ctx context.Context, id thole.ThreadID) (provider.Inventory, error) {
	has, err := i.asked.Inventory(ctx, id)
	if err != nil {
		return has, err
	}
	for n := range has.Servers {
		if s := &has.Servers[n]; s.Name == provider.ToolsName {
			s.Problem, s.Title, s.Version = "", provider.ToolsName, version.Version
			if s.Tools, err = mcp.Tools(); err != nil {
				return has, err
			}
		}
	}
	return has, nil
}

// Call calls an MCP server of a thread's running agent.
func (i inventory) Call(ctx context.Context, id thole.ThreadID, call provider.ServerCall) (json.RawMessage, error) {
	if call.Server == provider.ToolsName {
		return nil, thole.Errorf(thole.CodeForbidden, "the server %s is for the agent of a thread alone", call.Server)
	}
	return i.asked.CallServer(ctx, id, call)
}

func (i inventory) Laid(providerName, here string) provider.Inventory {
	if i.own == nil {
		return provider.Inventory{}
	}
	return i.own(providerName, here).Inventory(providerName)
}
