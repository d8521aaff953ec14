package manager

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// maxHoles is how large a file with holes may be where every byte is written.
const maxHoles = 5 << 30

// Export writes a snapshot's files below a prefix, one object each, under their
// paths: the layout that other tools read, and that restores as a plain layer.
// Modes, holes and links have no place in it, nor has a name that a sync's own
// objects could have: collection would take it for one of them.
func (m *Manager) Export(ctx context.Context, id workspace.SnapshotID, prefix string, raw bool) (x workspace.Exported, err error) {
	prefix = strings.TrimSuffix(prefix, "/")
	if err := objects.CheckKey(prefix); err != nil {
		return x, err
	}
	v, release, err := m.hold(ctx, id)
	if err != nil {
		return x, err
	}
	defer release()
	return v.export(ctx, raw, func(e workspace.Entry, body io.ReadCloser) (bool, error) {
		if e.Kind != beneath.File {
			return e.Kind == beneath.Folder, nil // keys imply directories
		}
		key := prefix + "/" + e.Path
		if objects.CheckKey(key) != nil || ofSnapshot(key) || e.Data != nil && e.Size > maxHoles {
			return false, nil //nolint:nilerr // an object cannot have such a name: counted as left out
		}
		whole, err := e.Data.Whole(0, e.Size, func(int64, int64) (io.ReadCloser, error) { return body, nil })
		if err != nil {
			return false, err
		}
		return true, m.cfg.Objects.Put(ctx, key, whole, e.Size)
	})
}

// ExportDir writes the files of the snapshot that a thread is at into a directory
// that is empty or not there yet, links as they are. It follows none: directories
// and files come first, opened name by name, and links last. No file is set-id. A
// name that the file system takes for one that is there already, as those do that
// know no case, is left out.
func (m *Manager) ExportDir(ctx context.Context, id thole.ThreadID, dir string, raw bool) (s workspace.Snapshot, x workspace.Exported, err error) {
	if s, _, err = m.cfg.Rows.Head(ctx, id); err != nil {
		return s, x, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return s, x, thole.Errorf(thole.CodeInvalid, "export: %w", err)
	}
	v, release, err := m.hold(ctx, s.ID)
	if err != nil {
		return s, x, err
	}
	defer release()
	if m.cfg.Apart == nil {
		x, err = v.exportDir(ctx, dir, raw)
		return s, x, err
	}
	tree, err := m.treeLink(ctx, s.Tree, v.refs)
	if err != nil {
		return s, x, err
	}
	req := workspace.ExportRequest{Tree: *tree, Links: map[string]objects.Link{}, Dir: dir, Raw: raw}
	for _, r := range v.refs {
		if req.Links[r.ID], err = m.cfg.Objects.SignGet(ctx, r.Key, linkTTL); err != nil {
			return s, x, err
		}
	}
	x, err = m.cfg.Apart.Export(ctx, req)
	return s, x, err
}

// hold keeps a snapshot while it is exported.
func (m *Manager) hold(ctx context.Context, id workspace.SnapshotID) (*View, func(), error) {
	holder := "export " + thole.NewID[string](m.cfg.Now())
	if err := m.cfg.Rows.Pin(ctx, holder, id, m.cfg.Now().Add(restoreTime)); err != nil {
		return nil, nil, err
	}
	release := func() {
		if err := m.cfg.Rows.Unpin(context.WithoutCancel(ctx), holder); err != nil {
			m.cfg.Log.Warn("let go of snapshot", "err", err)
		}
	}
	s, refs, err := m.cfg.Rows.Snapshot(ctx, id)
	if err != nil {
		release()
		return nil, nil, err
	}
	return m.view(s, refs), release, nil
}

// ExportLinked is ExportDir for a process that has links and nothing else.
func ExportLinked(ctx context.Context, req workspace.ExportRequest) (workspace.Exported, error) {
	v := &View{Snapshot: workspace.Snapshot{Tree: req.Tree.Sum}, get: linked(req)}
	return v.exportDir(ctx, req.Dir, req.Raw)
}

// maxNamed is how many names an export lists of what it left out.
const maxNamed = 1000

func firstOf(list []string) []string {
	if more := len(list) - maxNamed; more > 0 {
		return append(list[:maxNamed:maxNamed], fmt.Sprintf("… and %d more", more))
	}
	return list
}

func (v *View) exportDir(ctx context.Context, dir string, raw bool) (x workspace.Exported, err error) {
	root, err := beneath.Open(dir)
	if err != nil {
		return x, thole.Errorf(thole.CodeInvalid, "export: %w", err)
	}
	defer root.Close()
	if have, err := root.Names(); err != nil || len(have) > 0 {
		return x, errors.Join(err, thole.Errorf(thole.CodeConflict, "%s is not empty", dir).WithHint("name a directory that is not there yet"))
	}
	to := &exportDir{root: root, at: &beneath.Cursor{Root: root}}
	defer to.at.Close()
	if x, err = v.export(ctx, raw, to.put); err != nil {
		return x, err
	}
	err = to.finish(&x)
	x.Skipped, x.Stripped = firstOf(x.Skipped), firstOf(x.Stripped)
	return x, err
}

// exportDir is a directory that a snapshot is written to.
type exportDir struct {
	root           *beneath.Dir
	at             *beneath.Cursor
	folders, links []workspace.Entry
}

func (d *exportDir) put(e workspace.Entry, body io.ReadCloser) (bool, error) {
	if e.Kind == beneath.Link {
		d.links = append(d.links, e)
		return true, nil
	}
	in, name, err := d.at.Parent(e.Path, true)
	if err != nil {
		return false, err
	}
	switch {
	case e.Kind == beneath.Folder:
		d.folders = append(d.folders, e)
		err = in.Mkdir(name, e.Mode&0o777|0o700)
	case e.Same != "" && d.name(e, in, name) == nil:
	default:
		err = d.file(e, in, name, body)
	}
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

// name makes a file another name of one that was written.
func (d *exportDir) name(e workspace.Entry, in *beneath.Dir, name string) error {
	dir, old, err := d.root.Parent(e.Same, false)
	if err != nil {
		return err
	}
	defer dir.Close()
	return in.HardLink(dir, old, name)
}

func (d *exportDir) file(e workspace.Entry, in *beneath.Dir, name string, body io.Reader) error {
	f, err := in.Create(name, e.Mode&0o777|0o600)
	if err != nil {
		return err
	}
	if e.Data != nil {
		err = f.Truncate(e.Size)
	}
	if err == nil {
		_, err = io.Copy(io.NewOffsetWriter(e.Data.Writer(f), 0), body)
	}
	if err == nil {
		err = beneath.SetAttrs(f, e.Attrs)
	}
	if err == nil && e.Mtime != 0 {
		err = beneath.SetTime(f, e.Mtime)
	}
	return errors.Join(err, f.Close())
}

// finish writes what has to come last: links, then what directories say of themselves.
func (d *exportDir) finish(x *workspace.Exported) error {
	for _, e := range d.links {
		in, name, err := d.at.Parent(e.Path, true)
		if err == nil {
			err = in.Symlink(e.Link, name)
		}
		if errors.Is(err, fs.ErrExist) {
			x.Skipped, x.Links = append(x.Skipped, e.Path), x.Links-1
			continue
		}
		if err != nil {
			return fmt.Errorf("export %q: %w", e.Path, err)
		}
	}
	for _, e := range d.folders {
		in, name, err := d.at.Parent(e.Path, false)
		if err == nil && len(e.Attrs) > 0 {
			var sub *beneath.Dir
			if sub, err = in.Sub(name); err == nil {
				err = errors.Join(sub.SetAttrs(e.Attrs), sub.Close())
			}
		}
		if err == nil && e.Mtime != 0 {
			err = in.Chtimes(name, e.Mtime)
		}
		if err != nil {
			return fmt.Errorf("export %q: %w", e.Path, err)
		}
	}
	return nil
}

// export hands every entry of a snapshot to put with what is stored of it,
// directories before what is in them; put says whether it has a place for it. Unless
// raw is set no repository has hooks or a configuration that runs something, and what
// agents keep for themselves is not there: git add would publish it with the files.
func (v *View) export(ctx context.Context, raw bool, put func(e workspace.Entry, body io.ReadCloser) (bool, error)) (x workspace.Exported, err error) {
	if err := v.read(ctx); err != nil {
		return x, err
	}
	caught := findTraps(v.tree)
	asIs := map[string]bool{} // files that may have other names
	for _, e := range v.tree.Entries {
		if e.Kind == beneath.File && e.Unsettled && !e.Known {
			x.Skipped = append(x.Skipped, e.Path)
			continue
		}
		if !raw && (caught.drops(e) || beneath.Within(e.Path, workspace.AgentData)) {
			continue
		}
		if !asIs[e.Same] {
			e.Same = ""
		}
		body := io.NopCloser(strings.NewReader(""))
		rewritten := !raw && caught.rewrites(e)
		switch {
		case rewritten:
			e, body, err = caught.rewrite(ctx, v, e)
		case e.Stored():
			body, err = v.stored(ctx, e, 0, e.Bytes())
		}
		if err != nil {
			return x, fmt.Errorf("export %q: %w", e.Path, err)
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
		asIs[e.Path] = !rewritten
		x.Files++
		x.Bytes += e.Size
	}
	x.Stripped = caught.Stripped
	return x, nil
}
