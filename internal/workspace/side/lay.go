package side

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/beneath"
	"golang.org/x/sync/errgroup"
)

// laying puts one layer into the workspace: directories, then files pack by
// pack, then links, then the modes of directories.
type laying struct {
	*restore
	layer  workspace.Layer
	to     string
	tree   *workspace.Tree
	links  map[string]objects.Link
	mirror bool // the place belongs to this layer alone

	modes map[string]uint32 // what directories get in the end
	mu    sync.Mutex        // guards result while packs are read at once
}

func (a *laying) path(e workspace.Entry) string {
	path := strings.TrimPrefix(a.to+"/"+e.Path, "/")
	if path == workspace.AgentData && e.Kind != beneath.Folder && a.local.cfg.Data != "" {
		return workspace.OwnAgentData // an earlier version stored what an agent had put there
	}
	return path
}

func (a *laying) run() error {
	a.modes = map[string]uint32{}
	if a.to != "" {
		if a.mirror {
			if err := a.clearMirror(); err != nil {
				return err
			}
		}
		if err := a.makeDir(a.to); err != nil {
			return err
		}
	}
	files, names, links, err := a.decide()
	if err != nil {
		return err
	}
	if err := a.files(files); err != nil {
		return err
	}
	if err := a.linkNames(names); err != nil {
		return err
	}
	at := &beneath.Cursor{Root: a.root}
	defer at.Close()
	for _, e := range links {
		dir, name, err := at.Parent(a.path(e), false)
		if err != nil {
			return refused(a.path(e), err)
		}
		if err := dir.Symlink(e.Link, name); err != nil {
			return fmt.Errorf("%q: %w", a.path(e), err)
		}
	}
	for _, e := range slices.Backward(a.tree.Entries) {
		mode, ok := a.modes[a.path(e)]
		if !ok {
			continue
		}
		dir, name, err := at.Parent(a.path(e), false)
		if err == nil && len(e.Attrs) > 0 {
			var sub *beneath.Dir
			if sub, err = dir.Sub(name); err == nil {
				err = errors.Join(sub.SetAttrs(e.Attrs), sub.Close())
			}
		}
		if err == nil {
			err = dir.Chmod(name, mode&beneath.ModeBits)
		}
		if err == nil && e.Mtime != 0 {
			a.times = append(a.times, dirTime{a.path(e), e.Mtime})
			err = dir.Chtimes(name, e.Mtime)
		}
		if err != nil {
			return refused(a.path(e), err)
		}
	}
	return nil
}

// clearMirror empties a read-only mount: what an earlier layer put there is not
// the layer's.
func (a *laying) clearMirror() error {
	dir, name, err := a.root.Parent(a.to, true)
	if err != nil {
		return refused(a.to, err)
	}
	defer dir.Close()
	if workspace.Overlaps(a.to, a.protected) {
		return thole.Errorf(thole.CodeInvalid, "read-only mount %q meets a protected path", a.to)
	}
	return dir.RemoveAll(name)
}

// decide makes the directories and room for what will be written, and returns
// the files to write, the other names that they have, and the links.
func (a *laying) decide() (files []workspace.Entry, names []link, links []workspace.Entry, err error) {
	at := &beneath.Cursor{Root: a.root}
	defer at.Close()
	skipped := ""
	first := map[string]string{} // files of several names, and where they are written
	for _, e := range a.tree.Entries {
		if e.Same != "" {
			first[e.Same] = ""
		}
	}
	for _, e := range a.tree.Entries {
		if err := a.ctx.Err(); err != nil {
			return nil, nil, nil, err
		}
		path := a.path(e)
		if !a.local.has(path) {
			continue
		}
		if skipped != "" && beneath.Within(path, skipped) {
			continue
		}
		if e.Kind == beneath.File && e.Unsettled && !e.Known {
			continue
		}
		dir, name, err := at.Parent(path, false)
		if err != nil {
			return nil, nil, nil, refused(path, err)
		}
		st, err := dir.Lstat(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, nil, err
		}
		exists := err == nil
		if exists && e.Kind == beneath.Folder && st.Kind == beneath.Folder {
			// Objects have no modes: only the thread's own directories say theirs.
			if a.modes[path] = st.Mode; a.layer == workspace.SessionOverlay {
				a.modes[path] = e.Mode
			}
			if err := dir.Chmod(name, st.Mode|0o700); err != nil {
				return nil, nil, nil, err
			}
			continue
		}
		if exists && !a.wins(path, e, st) {
			skipped = path
			continue
		}
		if exists {
			if st.Kind == beneath.Folder && a.layer != workspace.SessionOverlay && workspace.Overlaps(path, a.protected) {
				return nil, nil, nil, thole.Errorf(thole.CodeInvalid, "%q would replace a protected path", path)
			}
			at.Forget(path)
			if err := dir.RemoveAll(name); err != nil {
				return nil, nil, nil, err
			}
		}
		switch e.Kind {
		case beneath.Folder:
			a.modes[path] = e.Mode
			if err := dir.Mkdir(name, 0o700); err != nil {
				return nil, nil, nil, fmt.Errorf("%q: %w", path, err)
			}
		case beneath.Link:
			links = append(links, e)
		case beneath.File:
			file := cmp.Or(e.Same, e.Path)
			if to, several := first[file]; to != "" {
				names = append(names, link{e, to})
				continue
			} else if several {
				first[file] = path
			}
			files = append(files, e)
		}
	}
	return files, names, links, nil
}

// wins reports whether this layer's entry replaces what is there.
func (a *laying) wins(path string, e workspace.Entry, have beneath.Stat) bool {
	protected := beneath.Within(path, a.protected...)
	switch {
	case a.mirror:
		return true
	case a.layer == workspace.SessionOverlay && (protected || e.Kind == beneath.Folder && workspace.Overlaps(path, a.protected)):
		return true
	case protected, a.layer == workspace.RegistryBase:
		return false // only what is there before any layer can stand here
	}
	switch a.req.Plan.ConflictPolicy {
	case workspace.PreferRegistry:
		return a.layer != workspace.SessionOverlay || !a.registry[path]
	case workspace.Merge:
		if e.Kind == beneath.File && have.Kind == beneath.File {
			return e.Mtime >= have.Mtime
		}
		// Directories and links have no times of their own: the thread's work stays.
	}
	return a.layer == workspace.SessionOverlay
}

// files writes the contents, a few objects at once.
func (a *laying) files(files []workspace.Entry) error {
	byObject := map[int][]workspace.Entry{}
	var empty []workspace.Entry
	for _, e := range files {
		if e.Stored() {
			byObject[e.Object] = append(byObject[e.Object], e)
		} else {
			empty = append(empty, e)
		}
	}
	group, ctx := errgroup.WithContext(a.ctx)
	group.SetLimit(transfers)
	for n, list := range byObject {
		slices.SortFunc(list, func(x, y workspace.Entry) int {
			return cmp.Or(cmp.Compare(x.Offset, y.Offset), cmp.Compare(x.Size, y.Size), strings.Compare(x.Path, y.Path))
		})
		group.Go(func() error {
			w := &writer{laying: a, ctx: ctx, at: &beneath.Cursor{Root: a.root}}
			defer w.at.Close()
			return w.object(a.tree.Objects[n], list)
		})
	}
	w := &writer{laying: a, ctx: a.ctx, at: &beneath.Cursor{Root: a.root}}
	defer w.at.Close()
	for _, e := range empty {
		if err := w.writeBytes(e, nil); err != nil {
			return errors.Join(err, group.Wait())
		}
	}
	return group.Wait()
}
