package side

import (
	"context"
	"slices"

	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// Claim implements Side. Names that are not there it leaves to the next restore.
func (l *Local) Claim(_ context.Context, req workspace.ClaimRequest) (workspace.ClaimResult, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	root, err := l.root()
	if err != nil {
		return workspace.ClaimResult{}, err
	}
	defer root.Close()
	moved, err := claim(root, req.Paths, 0)
	return workspace.ClaimResult{Moved: moved}, err
}

func claim(root *beneath.Dir, paths []string, perm uint32) (moved []workspace.Moved, err error) {
	for _, p := range paths {
		pairs, err := root.Claim(p, perm)
		for _, m := range pairs {
			moved = append(moved, workspace.Moved{From: m[0], To: m[1]})
		}
		if err != nil {
			return moved, refused(p, err)
		}
	}
	return slices.Clip(moved), nil
}
