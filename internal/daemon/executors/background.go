package executors

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/executord/wire"
)

// Background asks what a thread's agent left running, and may end it. Where no executor
// runs nothing does. The caller has judged who asks.
func (t *Service) Background(ctx context.Context, actor thole.Actor, action authz.Action, req wire.BackgroundRequest) (wire.Background, error) {
	if _, err := t.cfg.Threads.Get(authz.Doing(ctx, action), actor, req.Thread); err != nil {
		return wire.Background{}, err
	}
	at, err := t.running(ctx, req.Thread)
	if thole.CodeOf(err) == thole.CodeConflict {
		return wire.Background{Known: true}, nil
	}
	if err != nil {
		return wire.Background{}, err
	}
	defer at.Close()
	b, err := at.Background(ctx, req)
	if thole.CodeOf(err) == thole.CodeNotFound {
		return wire.Background{}, nil
	}
	return b, err
}
