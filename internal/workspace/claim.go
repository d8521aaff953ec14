package workspace

import (
	"context"
	"slices"

	"github.com/tholehq/thole/internal/provider/table"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// Names that belong to the platform: mount points and what the CLIs' data is
// linked to. An agent can put anything there. It would not be followed, so what
// it put there would keep every later restore from succeeding. The platform
// therefore takes the name back: what stood there is moved beside it, under a
// name that says so, and stays part of the thread's files.

// dataLinks are the CLIs' data directories: names in the home, and where in the
// workspace they lead.
func dataLinks() (out [][2]string) {
	for _, c := range table.CLIs {
		if c.Home != "" {
			out = append(out, [2]string{c.Home, AgentData + "/" + c.Data})
		}
	}
	return out
}

// owned are the platform's directories in a workspace with these mount points.
func owned(mounts []MountPoint) (out []string) {
	for _, m := range mounts {
		if rel, err := relative(m.TargetPath); err == nil && rel != "" {
			out = append(out, rel)
		}
	}
	for _, l := range dataLinks() {
		out = append(out, l[1])
	}
	return out
}

// ClaimRequest names directories of the platform, from the workspace down.
type ClaimRequest struct {
	Paths []string `json:"paths"`
}

// ClaimResult says what had to be moved.
type ClaimResult struct {
	Moved []Moved `json:"moved,omitempty"`
}

// Moved is something that stood at a name of the platform and is called otherwise
// now.
type Moved struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Claim implements Side. Names that are not there it leaves to the next restore.
func (l *Local) Claim(_ context.Context, req ClaimRequest) (ClaimResult, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	root, err := l.root()
	if err != nil {
		return ClaimResult{}, err
	}
	defer root.Close()
	moved, err := claim(root, req.Paths, 0)
	return ClaimResult{Moved: moved}, err
}

func claim(root *beneath.Dir, paths []string, perm uint32) (moved []Moved, err error) {
	for _, p := range paths {
		pairs, err := root.Claim(p, perm)
		for _, m := range pairs {
			moved = append(moved, Moved{m[0], m[1]})
		}
		if err != nil {
			return moved, refused(p, err)
		}
	}
	return slices.Clip(moved), nil
}

// claim has a side take the platform's names back before a sync. It keeps no sync
// from being made: one is worth more than order.
func (m *Manager) claim(ctx context.Context, t Target, side Side, mounts []MountPoint) {
	res, err := side.Claim(ctx, ClaimRequest{Paths: owned(mounts)})
	if err != nil && ctx.Err() == nil {
		m.cfg.Log.Warn("take back the platform's names", "thread", t.Thread, "executor", t.Executor, "err", err)
	}
	m.tellMoved(t, res.Moved)
}

func (m *Manager) tellMoved(t Target, moved []Moved) {
	for _, x := range moved {
		m.cfg.Log.Warn("moved aside what stood at a name of the platform", "thread", t.Thread, "executor", t.Executor, "from", x.From, "to", x.To)
	}
}
