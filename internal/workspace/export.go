package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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
	return m.export(ctx, id, func(e Entry, body io.Reader) (bool, error) {
		key := prefix + "/" + e.Path
		if objects.CheckKey(key) != nil {
			return false, nil //nolint:nilerr // an object cannot have such a name: counted as left out
		}
		return true, m.cfg.Objects.Put(ctx, key, body, e.Size)
	})
}

// ExportDir writes the files of the snapshot that a thread is at into a directory
// that is empty or not there yet.
func (m *Manager) ExportDir(ctx context.Context, id thole.ThreadID, dir string) (s Snapshot, x Exported, err error) {
	if s, _, err = m.cfg.Rows.Head(ctx, id); err != nil {
		return s, x, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return s, x, thole.Errorf(thole.CodeInvalid, "export: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return s, x, thole.Errorf(thole.CodeInvalid, "export: %w", err)
	}
	defer root.Close()
	if have, err := os.ReadDir(dir); err != nil || len(have) > 0 {
		return s, x, errors.Join(err, thole.Errorf(thole.CodeConflict, "%s is not empty", dir).WithHint("name a directory that is not there yet"))
	}
	x, err = m.export(ctx, s.ID, func(e Entry, body io.Reader) (bool, error) {
		if err := root.MkdirAll(filepath.Dir(e.Path), 0o755); err != nil {
			return false, err
		}
		f, err := root.OpenFile(e.Path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fs.FileMode(e.Mode)&0o777|0o600)
		if err != nil {
			return false, err
		}
		_, err = io.Copy(f, body)
		return true, errors.Join(err, f.Close())
	})
	return s, x, err
}

// export hands every file of a snapshot to put, which says whether it has a place
// for it.
func (m *Manager) export(ctx context.Context, id SnapshotID, put func(e Entry, body io.Reader) (bool, error)) (x Exported, err error) {
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
		if e.Kind != beneath.File || e.Unsettled && !e.Known {
			x.Skipped = append(x.Skipped, e.Path)
			continue
		}
		body, _, err := v.Open(ctx, e.Path, 0, -1)
		if err != nil {
			return x, fmt.Errorf("export %q: %w", e.Path, err)
		}
		ok, err := put(e, body)
		if err := errors.Join(err, body.Close()); err != nil {
			return x, fmt.Errorf("export %q: %w", e.Path, err)
		}
		if !ok {
			x.Skipped = append(x.Skipped, e.Path)
			continue
		}
		x.Files++
		x.Bytes += e.Size
	}
	return x, nil
}
