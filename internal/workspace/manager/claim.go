package manager

import (
	"context"

	"github.com/tholehq/thole/internal/workspace"
)

// claim has a side take the platform's names back before a sync. It keeps no sync
// from being made: one is worth more than order.
func (m *Manager) claim(ctx context.Context, t Target, side workspace.Side, mounts []workspace.MountPoint) {
	res, err := side.Claim(ctx, workspace.ClaimRequest{Paths: workspace.Owned(mounts)})
	if err != nil && ctx.Err() == nil {
		m.cfg.Log.Warn("take back the platform's names", "thread", t.Thread, "executor", t.Executor, "err", err)
	}
	m.reportMoved(t, res.Moved)
}

func (m *Manager) reportMoved(t Target, moved []workspace.Moved) {
	for _, x := range moved {
		m.cfg.Log.Warn("moved aside what stood at a name of the platform", "thread", t.Thread, "executor", t.Executor, "from", x.From, "to", x.To)
	}
}
