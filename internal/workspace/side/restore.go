package side

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// Restore implements Side: the layers in order, then cleanup rules, seed files
// and mount points. A restore that was cut off begins again with an empty
// workspace; no agent has run in it yet.
func (l *Local) Restore(ctx context.Context, req workspace.RestoreRequest) (workspace.RestoreResult, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(req.Layers) != len(req.Plan.Entries) {
		return workspace.RestoreResult{}, thole.Errorf(thole.CodeInvalid, "restore plan has %d entries and %d layers", len(req.Plan.Entries), len(req.Layers))
	}
	root, err := l.root()
	if err != nil {
		return workspace.RestoreResult{}, err
	}
	defer root.Close()
	r := &restore{ctx: ctx, local: l, root: root, req: req, readOnly: workspace.ReadOnlyMounts(req.Mounts)}
	for _, p := range req.Plan.ProtectedPaths {
		rel, err := workspace.Relative(p)
		if err != nil || rel == "" {
			return workspace.RestoreResult{}, thole.Errorf(thole.CodeInvalid, "protected path %q is not below %s", p, workspace.Root)
		}
		r.protected = append(r.protected, rel)
	}
	done, err := l.beginRestore(root)
	if err != nil {
		return workspace.RestoreResult{}, err
	}
	if err := r.run(); err != nil {
		return workspace.RestoreResult{}, fmt.Errorf("restore workspace: %w", err)
	}
	return r.result, done(r.result.Files > 0)
}

// beginRestore leaves a mark that done takes away. A mark that is there already
// means that the workspace holds half of something.
func (l *Local) beginRestore(root *beneath.Dir) (done func(flush bool) error, err error) {
	if l.cfg.State == "" {
		return func(bool) error { return nil }, nil
	}
	mark := filepath.Join(l.cfg.State, "restoring")
	if err := os.MkdirAll(l.cfg.State, 0o700); err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "prepare restore: %w", err)
	}
	f, err := os.OpenFile(mark, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		if err := root.Clear(); err != nil {
			return nil, thole.Errorf(thole.CodeUnavailable, "clear what an earlier restore left: %w", err)
		}
	case err != nil:
		return nil, thole.Errorf(thole.CodeUnavailable, "prepare restore: %w", err)
	default:
		f.Close()
	}
	return func(flush bool) error {
		// After a power cut the executor counts as restored; its files must be there.
		if flush {
			if err := root.Flush(); err != nil {
				return thole.Errorf(thole.CodeUnavailable, "flush restored workspace: %w", err)
			}
		}
		return os.Remove(mark)
	}, nil
}

type restore struct {
	ctx       context.Context
	local     *Local
	root      *beneath.Dir
	req       workspace.RestoreRequest
	protected []string
	readOnly  []string
	result    workspace.RestoreResult

	times    []dirTime
	registry map[string]bool // paths of the template
	session  *index          // of the session layer, for the scans to come
}

func (r *restore) run() error {
	rank := map[workspace.Layer]int{workspace.RegistryBase: 0, workspace.SessionOverlay: 1, workspace.KnowledgeOverlay: 2, workspace.UserOverlay: 3}
	last := 0
	for i, e := range r.req.Plan.Entries {
		n, ok := rank[e.Layer]
		if !ok || n < last {
			return thole.Errorf(thole.CodeInvalid, "layer %q is unknown or out of order", e.Layer)
		}
		last = n
		if n > rank[workspace.SessionOverlay] { // it comes to the platform's names, whatever the thread's files have there
			if err := r.claim(); err != nil {
				return err
			}
		}
		if err := r.layer(e, r.req.Layers[i]); err != nil {
			return fmt.Errorf("%s: %w", e.Layer, err)
		}
	}
	for _, c := range r.req.Cleanup {
		if err := r.cleanup(c); err != nil {
			return fmt.Errorf("cleanup %s: %w", c.Path, err)
		}
	}
	for _, s := range r.req.Seeds {
		if err := r.seed(s); err != nil {
			return fmt.Errorf("seed %s: %w", s.To, err)
		}
	}
	if err := r.claim(); err != nil {
		return err
	}
	r.stamp()
	return r.remember()
}

type dirTime struct {
	path  string
	mtime int64
}

// stamp gives directories their times once more, because what came after their layer
// may have moved them. Those that cannot be reached were not changed either.
func (r *restore) stamp() {
	at := &beneath.Cursor{Root: r.root}
	defer at.Close()
	for _, d := range r.times {
		dir, name, err := at.Parent(d.path, false)
		if err != nil {
			continue
		}
		if st, err := dir.Lstat(name); err == nil && st.Kind == beneath.Folder && st.Mtime != d.mtime {
			_ = dir.Chtimes(name, d.mtime)
		}
	}
}

// claim makes the mount points directories.
func (r *restore) claim() error {
	for _, m := range r.req.Mounts {
		rel, err := workspace.Relative(m.TargetPath)
		if err != nil {
			return err
		}
		if !r.local.has(rel) {
			continue
		}
		moved, err := claim(r.root, []string{rel}, 0o755)
		if r.result.Moved = append(r.result.Moved, moved...); err != nil {
			return fmt.Errorf("mount point %s: %w", m.TargetPath, err)
		}
	}
	return nil
}

// layer lays one layer.
func (r *restore) layer(e workspace.PlanEntry, c workspace.LayerContent) error {
	to, err := workspace.Relative(e.ToPath)
	if err != nil || to != "" && !r.local.has(to) {
		return err
	}
	t := c.Plain
	if c.Stored != nil {
		if t, err = r.local.fetchTree(r.ctx, *c.Stored); err != nil {
			return err
		}
	} else if t != nil {
		if err := t.Check(); err != nil {
			return err
		}
	}
	if t == nil {
		if !e.Optional {
			return thole.Errorf(thole.CodeNotFound, "%s has nothing", e.FromPrefix)
		}
		return nil
	}
	a := &laying{restore: r, layer: e.Layer, to: to, tree: t, links: c.Links, mirror: e.Layer != workspace.SessionOverlay && beneath.Within(to, r.readOnly...)}
	if err := a.run(); err != nil {
		return err
	}
	if e.Layer == workspace.RegistryBase {
		r.registry = make(map[string]bool, len(t.Entries))
		for _, e := range t.Entries {
			r.registry[a.path(e)] = true
		}
	}
	if e.Layer == workspace.SessionOverlay && c.Stored != nil {
		r.session = newIndex(t, c.Stored.Sum, nil)
	}
	return nil
}

// remember makes the index of what was restored, so that the first sync need not
// read it. Files stamped just now are left out: a write could hide behind that.
func (r *restore) remember() error {
	if r.session == nil || r.local.cfg.State == "" {
		return nil
	}
	x := r.session
	x.stats = make(map[string]beneath.Stat, len(x.tree.Entries))
	recent := r.local.cfg.Now().Add(-2e9).UnixNano()
	at := &beneath.Cursor{Root: r.root}
	defer at.Close()
	for _, e := range x.tree.Entries {
		if e.Kind != beneath.File || e.Unsettled || e.Mtime > recent {
			continue
		}
		dir, name, err := at.Parent(e.Path, false)
		if err != nil {
			continue
		}
		if st, err := dir.Lstat(name); err == nil && st.Kind == beneath.File && st.Size == e.Size && st.Mtime == e.Mtime && st.Mode == e.Mode {
			x.stats[e.Path] = st
		}
	}
	encoded, sum, err := x.tree.Encode()
	if err != nil {
		return err
	}
	r.local.index = x
	if sum != x.name {
		return nil // written by another version; the index in memory serves
	}
	return x.save(r.local.cfg.State, encoded, x.name)
}

func (r *restore) makeDir(rel string) error {
	dir, name, err := r.root.Parent(rel, true)
	if err != nil {
		return refused(rel, err)
	}
	defer dir.Close()
	if err := dir.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	st, err := dir.Lstat(name)
	if err == nil && st.Kind != beneath.Folder {
		return refused(rel, fs.ErrExist)
	}
	return err
}

// refused explains a path that cannot be opened without leaving the workspace.
func refused(rel string, err error) error {
	if gone(err) || errors.Is(err, fs.ErrExist) {
		return thole.Errorf(thole.CodeInvalid, "%q leads through a symbolic link or a file: %w", rel, err)
	}
	return err
}

func (r *restore) cleanup(c workspace.CleanupRule) error {
	rel, err := workspace.Relative(c.Path)
	if err != nil || rel == "" || workspace.Overlaps(rel, r.protected) {
		return thole.Errorf(thole.CodeInvalid, "%q is outside the workspace or protected", c.Path)
	}
	if !r.local.has(rel) {
		return nil
	}
	if err := r.root.OpenUp(parentOf(rel)); err != nil {
		return err
	}
	dir, name, err := r.root.Parent(rel, false)
	if gone(err) {
		return nil // the thread's files have a link or a file on the way: what the rule means is not there
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	switch c.Action {
	case workspace.RemoveIfExists:
		return dir.RemoveAll(name)
	case workspace.TruncateIfExists:
		st, err := dir.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) || err == nil && st.Kind != beneath.File {
			return nil
		}
		if err == nil && st.Mode&0o200 == 0 {
			err = dir.Chmod(name, st.Mode|0o200)
		}
		if err != nil {
			return err
		}
		f, err := dir.OpenWrite(name)
		if err != nil {
			return refused(rel, err)
		}
		return errors.Join(f.Truncate(0), f.Close())
	}
	return thole.Errorf(thole.CodeInvalid, "cleanup action %q is unknown", c.Action)
}

// parentOf is the directory that holds a path, "" for the workspace.
func parentOf(rel string) string { return rel[:max(0, strings.LastIndexByte(rel, '/'))] }
