package side

import (
	"context"
	"fmt"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// Compare implements Side: it reads every file again, whatever an index says,
// and names the first difference.
func (l *Local) Compare(ctx context.Context, req workspace.CompareRequest) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	want, err := l.fetchTree(ctx, req.Tree)
	if err != nil {
		return err
	}
	s := newScan(ctx, l, workspace.ScanRequest{Quiet: true, Exclude: req.Exclude}, nil)
	if err := s.run(); err != nil {
		return err
	}
	differs := func(path, how string) error {
		return thole.Errorf(thole.CodeConflict, "the workspace is not what was stored: %q %s", path, how)
	}
	stored := newIndex(want, req.Tree.Sum, nil)
	for _, have := range s.tree.Entries {
		i, ok := stored.at[have.Path]
		if !ok {
			return differs(have.Path, "is not stored")
		}
		e := want.Entries[i]
		switch {
		case e.Unsettled:
			return differs(have.Path, "changed while it was stored")
		case e.Kind != have.Kind, e.Link != have.Link:
			return differs(have.Path, "is something else")
		case e.Kind != beneath.Link && e.Mode != have.Mode:
			return differs(have.Path, fmt.Sprintf("has mode %o, stored is %o", have.Mode, e.Mode))
		case e.Size != have.Size, e.Sum != have.Sum, want.Version > 1 && !e.SameData(have):
			return differs(have.Path, "has other content")
		}
		delete(stored.at, have.Path)
	}
	for path := range stored.at {
		return differs(path, "is stored and gone from it")
	}
	return nil
}
