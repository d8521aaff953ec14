package manager

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// Exported says what an export wrote and what has no place in its layout.
type Exported struct {
	Files   int
	Links   int
	Bytes   int64
	Skipped []string // what has no place there, and files that never held still
	// Stripped would have run a program of the agent's on this machine.
	Stripped []string
}

// Export writes a snapshot's files below a prefix, one object each, under their
// paths: the layout that other tools read, and that restores as a plain layer.
// Modes and links have no place in it.
func (m *Manager) Export(ctx context.Context, id workspace.SnapshotID, prefix string) (x Exported, err error) {
	prefix = strings.TrimSuffix(prefix, "/")
	if err := objects.CheckKey(prefix); err != nil {
		return x, err
	}
	return m.export(ctx, id, func(*workspace.Tree) {}, func(e workspace.Entry, body io.Reader) (bool, error) {
		if e.Kind != beneath.File {
			return e.Kind == beneath.Folder, nil // keys imply directories
		}
		key := prefix + "/" + e.Path
		if objects.CheckKey(key) != nil {
			return false, nil //nolint:nilerr // an object cannot have such a name: counted as left out
		}
		return true, m.cfg.Objects.Put(ctx, key, body, e.Size)
	})
}

// ExportDir writes the files of the snapshot that a thread is at into a directory
// that is empty or not there yet, links as they are. It follows none: directories
// and files come first, opened name by name, and links last. No file is set-id, and
// unless raw is set no repository has hooks or a configuration that runs something.
func (m *Manager) ExportDir(ctx context.Context, id thole.ThreadID, dir string, raw bool) (s workspace.Snapshot, x Exported, err error) {
	if s, _, err = m.cfg.Rows.Head(ctx, id); err != nil {
		return s, x, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return s, x, thole.Errorf(thole.CodeInvalid, "export: %w", err)
	}
	root, err := beneath.Open(dir)
	if err != nil {
		return s, x, thole.Errorf(thole.CodeInvalid, "export: %w", err)
	}
	defer root.Close()
	if have, err := root.Names(); err != nil || len(have) > 0 {
		return s, x, errors.Join(err, thole.Errorf(thole.CodeConflict, "%s is not empty", dir).WithHint("name a directory that is not there yet"))
	}
	at := &beneath.Cursor{Root: root}
	defer at.Close()
	var links []workspace.Entry
	var caught *traps
	x, err = m.export(ctx, s.ID, func(t *workspace.Tree) { caught = findTraps(t) }, func(e workspace.Entry, body io.Reader) (bool, error) {
		if !raw && caught.drops(e) {
			return true, nil
		}
		if e.Kind == beneath.Link {
			links = append(links, e)
			return true, nil
		}
		in, name, err := at.Parent(e.Path, true)
		if err != nil {
			return false, err
		}
		if e.Kind == beneath.Folder {
			return true, in.Mkdir(name, e.Mode&0o777|0o700)
		}
		if !raw && caught.rewrites(e) {
			if body, err = caught.config(e, body); err != nil {
				return false, err
			}
		}
		f, err := in.Create(name, e.Mode&0o777|0o600)
		if err != nil {
			return false, err
		}
		_, err = io.Copy(f, body)
		return true, errors.Join(err, f.Close())
	})
	if err != nil {
		return s, x, err
	}
	x.Stripped, x.Files, x.Links = caught.Stripped, x.Files-caught.files, x.Links-caught.links
	for _, e := range links {
		in, name, err := at.Parent(e.Path, true)
		if err == nil {
			err = in.Symlink(e.Link, name)
		}
		if err != nil {
			return s, x, fmt.Errorf("export %q: %w", e.Path, err)
		}
	}
	return s, x, nil
}

// export hands every entry of a snapshot to put, directories before what is in them,
// which says whether it has a place for it. Before that look sees them all.
func (m *Manager) export(ctx context.Context, id workspace.SnapshotID, look func(*workspace.Tree), put func(e workspace.Entry, body io.Reader) (bool, error)) (x Exported, err error) {
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
	look(v.tree)
	for _, e := range v.tree.Entries {
		if e.Kind == beneath.File && e.Unsettled && !e.Known {
			x.Skipped = append(x.Skipped, e.Path)
			continue
		}
		body := io.NopCloser(strings.NewReader(""))
		if e.Kind == beneath.File {
			if body, _, err = v.Open(ctx, e.Path, 0, -1); err != nil {
				return x, fmt.Errorf("export %q: %w", e.Path, err)
			}
		}
		ok, err := put(e, body)
		if err := errors.Join(err, body.Close()); err != nil {
			return x, fmt.Errorf("export %q: %w", e.Path, err)
		}
		switch {
		case !ok:
			x.Skipped = append(x.Skipped, e.Path)
			continue
		case e.Kind == beneath.Link:
			x.Links++
			continue
		case e.Kind == beneath.Folder:
			continue
		}
		x.Files++
		x.Bytes += e.Size
	}
	return x, nil
}
