// Package manager restores threads' files into executors and syncs them into
// snapshots: it has the rows and the object store, makes the links, and asks the
// side that is near the files to do the rest.
package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/side"
	"github.com/tholehq/thole/internal/workspace/unpack"
	"golang.org/x/sync/errgroup"
)

// Config makes a Manager.
type Config struct {
	Rows      workspace.Rows
	Objects   objects.Store
	Manifests workspace.ManifestSource // default BuiltIn
	// Client moves objects of stopped executors.
	Client *http.Client
	// Apart reads what stopped executors left in a process of its own; without it
	// that happens in this one.
	Apart Apart
	Log   *slog.Logger
	Now   func() time.Time
}

// Apart is another process that reads what agents left: see package apart.
type Apart interface {
	// Side is the side of a workspace and of conversations that lie elsewhere, until it
	// is released.
	Side(ctx context.Context, dir, data string) (side workspace.Side, release func() error, err error)
	// Export writes a snapshot's files into a directory.
	Export(ctx context.Context, req workspace.ExportRequest) (workspace.Exported, error)
	// Unpack writes an archive's files into a directory.
	Unpack(ctx context.Context, req unpack.Request) (unpack.Result, error)
}

// Manager decides what is restored and stored. Calls for one thread never
// overlap; calls for different ones may.
type Manager struct {
	cfg Config
}

// New makes a Manager.
func New(cfg Config) *Manager {
	if cfg.Manifests == nil {
		cfg.Manifests = workspace.BuiltIn{}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Manager{cfg: cfg}
}

// Target is one executor's workspace: Side while it runs, Dir and Data when it is
// stopped and they are on this machine. Without Data the conversations are in Dir;
// without Dir there is nothing else.
type Target struct {
	Thread   thole.ThreadID
	Owner    thole.Owner // empty once the thread was deleted
	Executor thole.ExecutorID
	Files    thole.Source // where they come from, until there is a snapshot
	Side     workspace.Side
	Dir      string
	Data     string
	// Lease and Token are the queue's claim under which the caller works.
	Lease thole.TurnID
	Token string
	// RuntimeVersion is the version the turn was made with, "" for the current one.
	// It counts for a fresh executor; afterwards the executor's own does.
	RuntimeVersion string
}

// linkTTL is how long links are good: long enough for the largest workspace,
// short enough to be worthless in a log.
const linkTTL = time.Hour

// side returns the end near the files and a function that releases it.
func (m *Manager) side(ctx context.Context, t Target) (workspace.Side, bool, func(), error) {
	if t.Side != nil {
		return t.Side, false, func() {}, nil
	}
	if t.Dir == "" && t.Data == "" {
		return nil, false, nil, thole.Errorf(thole.CodeUnavailable, "executor %s is stopped and its files are not on this machine", t.Executor)
	}
	var near workspace.Side
	var release func() error
	if m.cfg.Apart == nil {
		l := side.New(side.Config{Dir: t.Dir, Data: t.Data, Client: m.cfg.Client, Now: m.cfg.Now})
		near, release = l, l.Close
	} else {
		var err error
		if near, release, err = m.cfg.Apart.Side(ctx, t.Dir, t.Data); err != nil {
			return nil, false, nil, err
		}
	}
	return near, true, func() {
		if err := release(); err != nil {
			m.cfg.Log.Warn("drop staged files", "executor", t.Executor, "err", err)
		}
	}, nil
}

// manifest returns the manifest an executor lives by.
func (m *Manager) manifest(ctx context.Context, t Target) (workspace.Manifest, error) {
	version, err := m.cfg.Rows.Runtime(ctx, t.Executor)
	if err != nil {
		return workspace.Manifest{}, err
	}
	if version == "" {
		version = t.RuntimeVersion
	}
	app := t.Owner.App
	if app == "" {
		app = thole.DefaultApp // a deleted thread: only what is excluded from sync matters
	}
	return m.cfg.Manifests.Manifest(ctx, app, version)
}

// Link places the CLIs' data directories.
func (m *Manager) Link(ctx context.Context, t Target) error {
	side, _, release, err := m.side(ctx, t)
	if err != nil {
		return err
	}
	defer release()
	return side.Link(ctx)
}

// Validate checks what the manifest requires.
func (m *Manager) Validate(ctx context.Context, t Target) error {
	manifest, err := m.manifest(ctx, t)
	if err != nil {
		return err
	}
	side, _, release, err := m.side(ctx, t)
	if err != nil {
		return err
	}
	defer release()
	return side.Validate(ctx, workspace.ValidateRequest{RequiredPaths: manifest.RequiredPaths})
}

// Verify compares a workspace with a snapshot, byte for byte, and makes sure that
// the store has every object of it.
func (m *Manager) Verify(ctx context.Context, t Target, id workspace.SnapshotID) error {
	snap, refs, err := m.cfg.Rows.Snapshot(ctx, id)
	if err != nil {
		return err
	}
	manifest, err := m.manifest(ctx, t)
	if err != nil {
		return err
	}
	tree, err := m.treeLink(ctx, snap.Tree, refs)
	if err != nil {
		return err
	}
	if err := m.present(ctx, refs); err != nil {
		return err
	}
	side, _, release, err := m.side(ctx, t)
	if err != nil {
		return err
	}
	defer release()
	return side.Compare(ctx, workspace.CompareRequest{Tree: *tree, Exclude: workspace.ReadOnlyMounts(manifest.MountPoints)})
}

// present checks that objects are there in their size.
func (m *Manager) present(ctx context.Context, refs []workspace.Ref) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for _, r := range refs {
		group.Go(func() error {
			info, err := m.cfg.Objects.Stat(ctx, r.Key)
			if err != nil {
				return fmt.Errorf("check object: %w", err)
			}
			if info.Size != r.Size {
				return thole.Errorf(thole.CodeInternal, "object %s has %d bytes, not %d", r.Key, info.Size, r.Size)
			}
			return nil
		})
	}
	return group.Wait()
}

// treeRef is what the ref of a snapshot's tree is called among its refs.
func treeRef(sum objects.Sum) string { return "tree-" + sum.String() }

func (m *Manager) treeLink(ctx context.Context, tree objects.Sum, refs []workspace.Ref) (*workspace.TreeLink, error) {
	for _, r := range refs {
		if r.ID == treeRef(tree) {
			link, err := m.cfg.Objects.SignGet(ctx, r.Key, linkTTL)
			return &workspace.TreeLink{Sum: tree, Link: link}, err
		}
	}
	return nil, thole.Errorf(thole.CodeInternal, "no tree %s is stored", tree)
}

// head returns a thread's snapshot, nil if it has none.
func (m *Manager) head(ctx context.Context, id thole.ThreadID) (*workspace.Snapshot, []workspace.Ref, error) {
	s, refs, err := m.cfg.Rows.Head(ctx, id)
	if thole.CodeOf(err) == thole.CodeNotFound {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return &s, refs, nil
}

func isNotFound(err error) bool {
	return errors.Is(err, objects.ErrNotFound) || thole.CodeOf(err) == thole.CodeNotFound
}
