// Package depot is the dispatcher's way to threads' files: it restores and syncs
// them through the workspace manager, knows whether the object store can be used,
// and removes what nothing refers to. What fails while the store is away waits for
// it and blames nothing else.
package depot

import (
	"context"
	"errors"
	"log/slog"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/beneath"
	"github.com/tholehq/thole/internal/workspace/manager"
)

// Config makes a Depot.
type Config struct {
	Manager *manager.Manager
	Rows    *store.Workspaces
	Objects objects.Store
	// UploadNeeded reports whether a thread still has to be laid from an upload.
	UploadNeeded func(ctx context.Context, user thole.UserID, id string) (bool, error)
	// Lay makes the files of a thread's branch in a workspace.
	Lay func(ctx context.Context, id thole.ThreadID, from thole.Source, dir string) error
	// Check tries the object store.
	Check func(context.Context) error
	Log   *slog.Logger
}

// Depot is the dispatcher's dispatch.Workspaces.
type Depot struct {
	cfg   Config
	watch *watch
}

var _ dispatch.Workspaces = (*Depot)(nil)

// New makes a depot whose store is taken to be there.
func New(cfg Config) *Depot { return &Depot{cfg: cfg, watch: newWatch(cfg.Check, cfg.Log)} }

// Watch looks at the object store until ctx ends. back is called when it was away
// and is there again.
func (w *Depot) Watch(ctx context.Context, back func(context.Context)) { w.watch.run(ctx, back) }

// ExportDir writes the files of a thread's last sync into a directory.
func (w *Depot) ExportDir(ctx context.Context, id thole.ThreadID, dir string, raw bool) (workspace.Snapshot, workspace.Exported, error) {
	return w.cfg.Manager.ExportDir(ctx, id, dir, raw)
}

func target(t dispatch.ExecutorWorkspace) manager.Target {
	out := manager.Target{
		Thread: t.Thread.ID, Owner: t.Thread.Owner, Executor: t.Executor, Files: t.Thread.Files, Dir: t.Dir, Data: t.Data, Lease: t.Turn, Token: t.Token,
	}
	if t.Client != nil {
		out.Side = workspace.Remote(t.Client)
	}
	return out
}

// Restore implements dispatch.Workspaces. A thread that has nothing stored may do
// without the store.
func (w *Depot) Restore(ctx context.Context, t dispatch.ExecutorWorkspace) error {
	whole, away := ctx, w.watch.away()
	if away != nil {
		if _, _, err := w.cfg.Rows.Head(ctx, t.Thread.ID); thole.CodeOf(err) != thole.CodeNotFound {
			return errors.Join(err, away)
		}
		if t.Thread.Files.Kind == thole.SourceUpload {
			return away
		}
		within, cancel := context.WithTimeout(ctx, checkEvery)
		defer cancel()
		ctx = within
	}
	if err := w.try(ctx, func(ctx context.Context) error { return w.cfg.Manager.Restore(ctx, target(t)) }, away == nil); err != nil {
		return err
	}
	return w.lay(whole, t)
}

// lay makes the files of a thread that has none stored yet and comes from a branch. What
// was laid is flushed: after a power cut the executor counts as restored.
func (w *Depot) lay(ctx context.Context, t dispatch.ExecutorWorkspace) error {
	if t.Thread.Files.Kind != thole.SourceBranch {
		return nil
	}
	if _, _, err := w.cfg.Rows.Head(ctx, t.Thread.ID); thole.CodeOf(err) != thole.CodeNotFound {
		return err
	}
	if t.Dir == "" {
		return thole.Errorf(thole.CodeUnsupported, "files of a git repository need an executor on this machine")
	}
	if err := w.cfg.Lay(ctx, t.Thread.ID, t.Thread.Files, t.Dir); err != nil {
		return err
	}
	root, err := beneath.Open(t.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return root.Flush()
}

// Away implements dispatch.Workspaces.
func (w *Depot) Away() error { return w.watch.away() }

// try does what needs the object store, and says of a failure whether the store is
// why. It is given up when the store is found away, if it was there before.
func (w *Depot) try(ctx context.Context, do func(context.Context) error, there bool) error {
	held, release := ctx, func() {}
	if there {
		held, release = w.watch.while(ctx)
	}
	err := do(held)
	given := errors.Is(context.Cause(held), objects.ErrAway)
	release()
	if err == nil || ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return err
	}
	away := w.watch.away()
	if away == nil || !given {
		away = w.watch.look(context.WithoutCancel(ctx))
	}
	if away != nil {
		return away
	}
	return err
}

// Link implements dispatch.Workspaces.
func (w *Depot) Link(ctx context.Context, t dispatch.ExecutorWorkspace) error {
	return w.cfg.Manager.Link(ctx, target(t))
}

// Validate implements dispatch.Workspaces.
func (w *Depot) Validate(ctx context.Context, t dispatch.ExecutorWorkspace) error {
	return w.cfg.Manager.Validate(ctx, target(t))
}

// Sync implements dispatch.Workspaces.
func (w *Depot) Sync(ctx context.Context, t dispatch.ExecutorWorkspace, reason string) (string, error) {
	if away := w.watch.away(); away != nil {
		return "", away
	}
	var id workspace.SnapshotID
	err := w.try(ctx, func(ctx context.Context) (err error) {
		id, err = w.cfg.Manager.Sync(ctx, target(t), reason)
		return err
	}, true)
	return string(id), err
}

// Verify implements dispatch.Workspaces.
func (w *Depot) Verify(ctx context.Context, t dispatch.ExecutorWorkspace, snapshot string) error {
	return w.try(ctx, func(ctx context.Context) error {
		return w.cfg.Manager.Verify(ctx, target(t), workspace.SnapshotID(snapshot))
	}, true)
}

// UploadKept is how long an upload of which no thread was made is kept, at least.
const UploadKept = 24 * time.Hour

// StoreUpload unpacks and stores what a client sent.
func (w *Depot) StoreUpload(ctx context.Context, user thole.UserID, id, archive, dir string) (manager.Upload, error) {
	if away := w.watch.away(); away != nil {
		return manager.Upload{}, away
	}
	return w.cfg.Manager.StoreUpload(ctx, user, id, archive, dir)
}

// Upload describes what a client sent.
func (w *Depot) Upload(ctx context.Context, user thole.UserID, id string) (manager.Upload, error) {
	return w.cfg.Manager.Upload(ctx, user, id)
}

// collectGrace is how long an object that nothing refers to is kept, and
// collectEvery how often they are looked for.
const (
	collectGrace = 24 * time.Hour
	collectEvery = time.Hour
)

// Collect removes objects that nothing refers to any more, until ctx ends.
func (w *Depot) Collect(ctx context.Context) {
	ticker := time.NewTicker(collectEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			if w.watch.away() != nil {
				continue
			}
			_, err := w.cfg.Manager.Collect(ctx, collectGrace)
			if w.cfg.UploadNeeded != nil {
				_, uerr := w.cfg.Manager.ExpireUploads(ctx, now.Add(-UploadKept), w.cfg.UploadNeeded)
				err = errors.Join(err, uerr)
			}
			if sweeper, ok := w.cfg.Objects.(interface{ Sweep(time.Time) error }); ok {
				err = errors.Join(err, sweeper.Sweep(now.Add(-collectGrace)))
			}
			if err != nil && ctx.Err() == nil {
				w.cfg.Log.Warn("collect objects", "err", err)
			}
		}
	}
}
