package executors

import (
	"context"
	"encoding/json"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
)

// inventoryLimit bounds how long people wait for what an agent says of itself.
const inventoryLimit = 12 * time.Second

// callLimit bounds how long a client waits for an agent's MCP server.
const callLimit = 5 * time.Minute

// CallServer calls an MCP server of a thread's running agent. CodeConflict: none runs, and
// none is started for it.
func (t *Service) CallServer(ctx context.Context, id thole.ThreadID, call provider.ServerCall) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	at, err := t.running(ctx, id)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	return at.CallServer(ctx, id, call)
}

// Inventory asks a thread's running agent what it has. CodeConflict: none runs, and none
// is started for it.
func (t *Service) Inventory(ctx context.Context, id thole.ThreadID) (provider.Inventory, error) {
	ctx, cancel := context.WithTimeout(ctx, inventoryLimit)
	defer cancel()
	at, err := t.running(ctx, id)
	if err != nil {
		return provider.Inventory{}, err
	}
	defer at.Close()
	return at.Inventory(ctx, id)
}
