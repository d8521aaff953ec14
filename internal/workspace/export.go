package workspace

import (
	"context"
	"fmt"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// Exported says what an export wrote and what has no place in its layout.
type Exported struct {
	Files   int
	Bytes   int64
	Skipped []string // links, and names that no object key can have
}

// Export writes a snapshot's files below a prefix, one object each, under their
// paths: the layout that other tools read, and that restores as a plain layer.
// Modes and links have no place in it.
func (m *Manager) Export(ctx context.Context, id SnapshotID, prefix string) (x Exported, err error) {
	prefix = strings.TrimSuffix(prefix, "/")
	if err := objects.CheckKey(prefix); err != nil {
		return x, err
	}
	holder := "export " + thole.NewID[string](m.cfg.Now())
	if err := m.cfg.Rows.Pin(ctx, holder, id, m.cfg.Now().Add(restoreTime)); err != nil {
		return x, err
	}
	defer func() {
		if err := m.cfg.Rows.Unpin(context.WithoutCancel(ctx), holder); err != nil {
			m.cfg.Log.Warn("let go of snapshot", "err", err)
		}
	}()
	v, err := m.ViewSnapshot(ctx, id)
	if err != nil {
		return x, err
	}
	for _, e := range v.tree.Entries {
		if e.Kind == beneath.Folder {
			continue
		}
		key := prefix + "/" + e.Path
		if e.Kind != beneath.File || e.Unsettled && !e.Known || objects.CheckKey(key) != nil {
			x.Skipped = append(x.Skipped, e.Path)
			continue
		}
		if err := v.export(ctx, e, key); err != nil {
			return x, fmt.Errorf("export %q: %w", e.Path, err)
		}
		x.Files++
		x.Bytes += e.Size
	}
	return x, nil
}

func (v *View) export(ctx context.Context, e Entry, key string) error {
	body, _, err := v.Open(ctx, e.Path, 0, -1)
	if err != nil {
		return err
	}
	defer body.Close()
	return v.store.Put(ctx, key, body, e.Size)
}
