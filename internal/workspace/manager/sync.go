package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/workspace"
)

// rounds is how often a sync begins again because files, or executord, changed
// under it.
const rounds = 3

// Sync stores the tree and returns its snapshot, the old one if nothing changed.
func (m *Manager) Sync(ctx context.Context, t Target, reason string) (workspace.SnapshotID, error) {
	side, quiet, release, err := m.side(ctx, t)
	if err != nil {
		return "", err
	}
	defer release()
	manifest, err := m.manifest(ctx, t)
	if err != nil {
		return "", err
	}
	head, refs, err := m.head(ctx, t.Thread)
	if err != nil {
		return "", err
	}
	req := workspace.ScanRequest{Reason: reason, Template: manifest.RuntimeVersion, Exclude: workspace.ReadOnlyMounts(manifest.MountPoints), Quiet: quiet}
	if head != nil {
		if req.Base, err = m.treeLink(ctx, head.Tree, refs); err != nil {
			return "", err
		}
	}
	m.claim(ctx, t, side, manifest.MountPoints)
	for round := 1; ; round++ {
		id, err := m.syncOnce(ctx, t, side, head, refs, req)
		if err == nil || round == rounds || !errors.Is(err, errAgain) {
			return id, err
		}
		req.Copy = true
	}
}

// errAgain says that a sync may succeed when it begins again at once.
var errAgain = errors.New("the workspace changed during the sync")

func (m *Manager) syncOnce(ctx context.Context, t Target, side workspace.Side, head *workspace.Snapshot, refs []workspace.Ref, req workspace.ScanRequest) (workspace.SnapshotID, error) {
	scan, err := side.Scan(ctx, req)
	if err != nil {
		return "", err
	}
	c := workspace.Commit{Lease: t.Lease, Token: t.Token}
	if head != nil {
		if scan.Tree == head.Tree {
			return head.ID, nil
		}
		c.Base = head.ID
	}
	c.Snapshot = workspace.Snapshot{
		ID: thole.NewID[workspace.SnapshotID](m.cfg.Now()), Thread: t.Thread, Turn: t.Lease, Executor: t.Executor, Reason: req.Reason,
		Tree: scan.Tree, RuntimeVersion: req.Template, Files: scan.Files, Bytes: scan.Bytes, Unsettled: len(scan.Unsettled),
	}
	for _, id := range scan.Old {
		i := slices.IndexFunc(refs, func(r workspace.Ref) bool { return r.ID == id })
		if i < 0 {
			return "", thole.Errorf(thole.CodeInternal, "the executor's tree names object %s, which the last snapshot does not have", id)
		}
		c.Refs = append(c.Refs, refs[i])
	}
	prefix, err := m.objectPrefix(t, c.Snapshot.ID)
	if err != nil {
		return "", err
	}
	fresh, err := m.push(ctx, side, prefix, scan)
	if err != nil {
		return "", err
	}
	if err := m.present(ctx, fresh); err != nil {
		return "", err
	}
	c.Refs = append(c.Refs, fresh...)
	if len(scan.Unsettled) > 0 {
		m.cfg.Log.Info("files kept changing; the sync kept their older state", "thread", t.Thread, "executor", t.Executor, "files", scan.Unsettled)
	}
	return c.Snapshot.ID, m.cfg.Rows.Commit(ctx, c)
}

// objectPrefix is where a sync puts its objects. The snapshot's id makes every key
// new: no key is ever written by two syncs.
func (m *Manager) objectPrefix(t Target, id workspace.SnapshotID) (string, error) {
	if t.Owner == (thole.Owner{}) {
		key, err := objects.Key("session", string(t.Thread), "workspace", "snapshots", string(id))
		return key + "/", err
	}
	p, err := workspace.PrefixesOf(t.Owner, t.Thread)
	if err != nil {
		return "", err
	}
	return p.Thread + "snapshots/" + string(id) + "/", nil
}

// push lets the side store what the scan found, below a prefix, and returns where it is.
func (m *Manager) push(ctx context.Context, side workspace.Side, prefix string, scan workspace.ScanResult) (_ []workspace.Ref, err error) {
	tree := workspace.Ref{ID: treeRef(scan.Tree), Key: prefix + "tree", Size: scan.TreeSize}
	req := workspace.PushRequest{Tree: workspace.TreeLink{Sum: scan.Tree}, Links: map[string][]objects.Link{}}
	if req.Tree.Link, err = m.cfg.Objects.SignPut(ctx, tree.Key, tree.Size, scan.Tree, linkTTL); err != nil {
		return nil, err
	}
	refs := []workspace.Ref{tree}
	uploads := uploads{store: m.cfg.Objects}
	defer uploads.abort(context.WithoutCancel(ctx))
	for _, o := range scan.New {
		sum, err := objects.ParseSum(o.ID)
		if err != nil {
			return nil, err
		}
		r := workspace.Ref{ID: o.ID, Key: prefix + sum.String(), Size: o.Size}
		refs = append(refs, r)
		if len(o.Parts) == 0 {
			link, err := m.cfg.Objects.SignPut(ctx, r.Key, r.Size, sum, linkTTL)
			if err != nil {
				return nil, err
			}
			req.Links[o.ID] = []objects.Link{link}
			continue
		}
		if req.Links[o.ID], err = uploads.begin(ctx, r.Key, o); err != nil {
			return nil, err
		}
	}
	res, err := side.Push(ctx, req)
	if thole.CodeOf(err) == thole.CodeConflict {
		return nil, fmt.Errorf("%w: %w", errAgain, err) // executord restarted in between
	}
	if err != nil {
		return nil, err
	}
	if len(res.Changed) > 0 {
		return nil, errAgain
	}
	return refs, uploads.end(ctx, res.Parts)
}

// uploads are the multi-part uploads of one sync.
type uploads struct {
	store objects.Store
	open  []upload
}

type upload struct {
	key, id, object string
	parts           int
}

func (u *uploads) begin(ctx context.Context, key string, o workspace.Object) ([]objects.Link, error) {
	store, ok := u.store.(objects.Parts)
	if !ok {
		return nil, thole.Errorf(thole.CodeUnsupported, "the object store cannot take files of %d bytes", o.Size)
	}
	id, err := store.BeginParts(ctx, key)
	if err != nil {
		return nil, err
	}
	u.open = append(u.open, upload{key, id, o.ID, len(o.Parts)})
	var links []objects.Link
	for i, p := range o.Parts {
		link, err := store.SignPart(ctx, key, id, i+1, p.Size, p.Sum, linkTTL)
		if err != nil {
			return nil, err
		}
		links = append(links, link)
	}
	return links, nil
}

func (u *uploads) end(ctx context.Context, parts map[string][]objects.Part) error {
	for len(u.open) > 0 {
		up := u.open[0]
		list := slices.SortedFunc(slices.Values(parts[up.object]), func(a, b objects.Part) int { return cmp.Compare(a.Number, b.Number) })
		if len(list) != up.parts {
			return thole.Errorf(thole.CodeInternal, "object has %d parts, %d were stored", up.parts, len(list))
		}
		if err := u.store.(objects.Parts).EndParts(ctx, up.key, up.id, list); err != nil {
			return err
		}
		u.open = u.open[1:]
	}
	return nil
}

// abort forgets what did not end; the store drops what this misses by itself.
func (u *uploads) abort(ctx context.Context) {
	for _, up := range u.open {
		_ = u.store.(objects.Parts).AbortParts(ctx, up.key, up.id)
	}
}
