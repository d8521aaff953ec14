package manager

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// restoreTime bounds a restore: so long its snapshot is held.
const restoreTime = 6 * time.Hour

// Restore lays the workspace's layers into a fresh executor.
func (m *Manager) Restore(ctx context.Context, t Target) error {
	manifest, err := m.manifest(ctx, t)
	if err != nil {
		return err
	}
	if _, err := m.cfg.Rows.Bind(ctx, t.Executor, manifest.RuntimeVersion); err != nil {
		return err
	}
	prefixes, err := workspace.PrefixesOf(t.Owner, t.Thread)
	if err != nil {
		return err
	}
	plan, err := workspace.Compile(manifest, prefixes)
	if err != nil {
		return err
	}
	head, refs, err := m.head(ctx, t.Thread)
	if err != nil {
		return err
	}
	if head != nil {
		holder := "restore " + string(t.Executor)
		if err := m.cfg.Rows.Pin(ctx, holder, head.ID, m.cfg.Now().Add(restoreTime)); err != nil {
			return err
		}
		defer func() {
			if err := m.cfg.Rows.Unpin(context.WithoutCancel(ctx), holder); err != nil {
				m.cfg.Log.Warn("let go of snapshot", "executor", t.Executor, "err", err)
			}
		}()
	}
	req := workspace.RestoreRequest{Plan: plan, Cleanup: manifest.CleanupRules, Mounts: manifest.MountPoints}
	for _, e := range plan.Entries {
		c, err := m.content(ctx, t, e, plan, head, refs)
		if err != nil {
			return fmt.Errorf("%s: %w", e.Layer, err)
		}
		req.Layers = append(req.Layers, c)
	}
	if err := m.seeds(ctx, manifest, &req); err != nil {
		return err
	}
	side, _, release, err := m.side(ctx, t)
	if err != nil {
		return err
	}
	defer release()
	res, err := side.Restore(ctx, req)
	m.reportMoved(t, res.Moved)
	return err
}

// content finds what a layer holds.
func (m *Manager) content(ctx context.Context, t Target, e workspace.PlanEntry, plan workspace.RestorePlan, head *workspace.Snapshot, refs []workspace.Ref) (workspace.LayerContent, error) {
	switch e.Layer {
	case workspace.SessionOverlay:
		switch {
		case head != nil:
			return m.stored(ctx, head.Tree, refs)
		case t.Files.Kind == thole.SourceUpload:
			up, err := m.Upload(ctx, t.Owner.User, t.Files.Upload)
			if err != nil {
				return workspace.LayerContent{}, err
			}
			return m.stored(ctx, up.Tree, up.Refs)
		}
		return workspace.LayerContent{}, nil
	case workspace.RegistryBase:
		// What the thread deleted of a template stays deleted, as long as it is the
		// same template.
		if head != nil && head.RuntimeVersion == plan.RuntimeVersion && plan.ConflictPolicy == workspace.KeepSession {
			return workspace.LayerContent{Plain: &workspace.Tree{Version: workspace.TreeVersion}}, nil
		}
		return m.template(ctx, e.FromPrefix)
	}
	return m.plain(ctx, e.FromPrefix)
}

// template is the plain objects below a prefix with the modes and links that are stored
// besides them.
func (m *Manager) template(ctx context.Context, prefix string) (workspace.LayerContent, error) {
	c, err := m.plain(ctx, prefix)
	if err != nil || c.Plain == nil {
		return c, err
	}
	i := slices.IndexFunc(c.Plain.Entries, func(e workspace.Entry) bool { return e.Path == workspace.TemplateFiles })
	if i < 0 {
		return c, nil
	}
	if size := c.Plain.Entries[i].Size; size > workspace.MaxTemplateFiles {
		return c, thole.Errorf(thole.CodeInvalid, "%s of the template has %d bytes, at most %d are read", workspace.TemplateFiles, size, workspace.MaxTemplateFiles)
	}
	c.Plain.Entries = slices.Delete(c.Plain.Entries, i, i+1)
	body, err := m.cfg.Objects.Get(ctx, prefix+workspace.TemplateFiles, 0, -1)
	if err != nil {
		return c, err
	}
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, workspace.MaxTemplateFiles))
	if err != nil {
		return c, thole.Errorf(thole.CodeUnavailable, "read template: %w", err)
	}
	if err := c.Plain.Describe(data); err != nil {
		return c, err
	}
	return c, c.Plain.Check()
}

// stored links to a tree and its objects.
func (m *Manager) stored(ctx context.Context, tree objects.Sum, refs []workspace.Ref) (workspace.LayerContent, error) {
	link, err := m.treeLink(ctx, tree, refs)
	if err != nil {
		return workspace.LayerContent{}, err
	}
	c := workspace.LayerContent{Stored: link, Links: map[string]objects.Link{}}
	for _, r := range refs {
		if c.Links[r.ID], err = m.cfg.Objects.SignGet(ctx, r.Key, linkTTL); err != nil {
			return workspace.LayerContent{}, err
		}
	}
	return c, nil
}

// plain describes the objects below a prefix as a tree: one object per file.
func (m *Manager) plain(ctx context.Context, prefix string) (workspace.LayerContent, error) {
	t := &workspace.Tree{Version: workspace.TreeVersion}
	c := workspace.LayerContent{Links: map[string]objects.Link{}}
	made := map[string]bool{}
	for after := ""; ; {
		page, err := m.cfg.Objects.List(ctx, prefix, after, 1000)
		if err != nil {
			return c, err
		}
		for _, info := range page {
			after = info.Key
			path := strings.TrimPrefix(info.Key, prefix)
			folder := strings.HasSuffix(path, "/")
			path = strings.TrimSuffix(path, "/")
			if path == "" {
				continue
			}
			if err := beneath.CheckPath(path); err != nil {
				return c, err
			}
			for i := range len(path) {
				if path[i] == '/' && !made[path[:i]] {
					made[path[:i]] = true
					t.Entries = append(t.Entries, workspace.Entry{Path: path[:i], Kind: beneath.Folder, Mode: 0o755})
				}
			}
			if folder {
				if !made[path] {
					made[path] = true
					t.Entries = append(t.Entries, workspace.Entry{Path: path, Kind: beneath.Folder, Mode: 0o755})
				}
				continue
			}
			id := fmt.Sprintf("plain-%d", len(t.Objects))
			if c.Links[id], err = m.cfg.Objects.SignGet(ctx, info.Key, linkTTL); err != nil {
				return c, err
			}
			t.Entries = append(t.Entries, workspace.Entry{Path: path, Kind: beneath.File, Mode: 0o644, Mtime: info.Modified.UnixNano(), Size: info.Size, Object: len(t.Objects)})
			t.Objects = append(t.Objects, workspace.Object{ID: id, Size: info.Size})
		}
		if len(page) < 1000 {
			break
		}
	}
	if len(t.Entries) == 0 {
		return workspace.LayerContent{}, nil
	}
	c.Plain = t
	return c, t.Check()
}

func (m *Manager) seeds(ctx context.Context, manifest workspace.Manifest, req *workspace.RestoreRequest) error {
	for _, s := range manifest.SeedFiles {
		missing := thole.Errorf(thole.CodeNotFound, "seed file %s is not stored", s.From).WithHint("publish it with the app's runtime version")
		if strings.HasSuffix(s.From, "/") {
			c, err := m.plain(ctx, s.From)
			if err != nil {
				return err
			}
			if c.Plain == nil {
				return missing
			}
			for _, e := range c.Plain.Entries {
				if e.Kind == beneath.File {
					req.Seeds = append(req.Seeds, workspace.SeedContent{To: strings.TrimSuffix(s.To, "/") + "/" + e.Path, Size: e.Size,
						Link: c.Links[c.Plain.Objects[e.Object].ID], IfMissingOnly: s.IfMissingOnly})
				}
			}
			continue
		}
		info, err := m.cfg.Objects.Stat(ctx, s.From)
		if isNotFound(err) {
			return missing
		}
		if err != nil {
			return err
		}
		link, err := m.cfg.Objects.SignGet(ctx, s.From, linkTTL)
		if err != nil {
			return err
		}
		req.Seeds = append(req.Seeds, workspace.SeedContent{To: s.To, Size: info.Size, Link: link, IfMissingOnly: s.IfMissingOnly})
	}
	return nil
}
