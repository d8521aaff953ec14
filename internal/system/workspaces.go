package system

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/objects/dir"
	"github.com/tholehq/thole/internal/objects/late"
	"github.com/tholehq/thole/internal/objects/s3"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/workspace"
)

// workspaces is the part of the graph that restores and syncs files. It is the
// dispatcher's dispatch.Workspaces.
type workspaces struct {
	manager *workspace.Manager
	rows    *store.Workspaces
	objects objects.Store
	depot   *depot
	client  *http.Client
	close   func() error
}

var _ dispatch.Workspaces = (*workspaces)(nil)

// newWorkspaces opens the object store the configuration names. A directory is
// served to executors on a loopback port of its own, by signed links alone.
func newWorkspaces(cfg *config.Config, db *store.DB, log *slog.Logger) (*workspaces, error) {
	w := &workspaces{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8, DisableCompression: true, IdleConnTimeout: 30 * time.Second}}}
	if err := w.openObjects(cfg, db, log); err != nil {
		return nil, err
	}
	manifests, err := manifests(cfg.Workspace, db)
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	w.rows = db.Workspaces()
	w.manager = workspace.New(workspace.Config{Rows: db.Workspaces(), Objects: w.objects, Manifests: manifests, Client: w.client, Log: log})
	return w, nil
}

// manifests is where runtime manifests come from: the file the configuration
// names, or built in.
func manifests(cfg config.Workspace, db *store.DB) (workspace.ManifestSource, error) {
	if cfg.Manifest == "" {
		return workspace.BuiltIn{}, nil
	}
	data, err := os.ReadFile(cfg.Manifest)
	if err != nil {
		return nil, thole.Errorf(thole.CodeInvalid, "workspace.manifest: %w", err)
	}
	m, err := workspace.ParseManifest(data)
	if err != nil {
		return nil, fmt.Errorf("workspace.manifest %s: %w", cfg.Manifest, err)
	}
	if m.AppID != string(thole.DefaultApp) {
		return nil, thole.Errorf(thole.CodeInvalid, "workspace.manifest %s is of app %q", cfg.Manifest, m.AppID).WithHint("this home has one app: set appId to " + string(thole.DefaultApp))
	}
	return workspace.Publish(context.Background(), db.Workspaces(), m)
}

// openObjects makes the object store the configuration names. It need not be there:
// what needs it waits.
func (w *workspaces) openObjects(cfg *config.Config, db *store.DB, log *slog.Logger) error {
	if cfg.Objects.Kind == "s3" {
		s, err := openS3(cfg.Objects)
		if err != nil {
			return err
		}
		w.keep(late.New(func() (late.Backend, error) { return s, nil }), s.Check, log)
		w.close = s.Close
		return nil
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "serve objects: %w", err)
	}
	at := filepath.Join(cfg.Home, "objects")
	objects := late.New(func() (late.Backend, error) {
		// A directory that is not there may be on a disk that is not there: another in
		// its place would hide what it holds.
		if _, err := os.Stat(at); errors.Is(err, fs.ErrNotExist) {
			if stored, err := db.Workspaces().Any(context.Background()); err != nil || stored {
				return nil, errors.Join(err, thole.Errorf(thole.CodeUnavailable, "object directory %s is missing, and threads have files in it", at).
					WithHint("put it back where it was; an empty one in its place gives them up"))
			}
		}
		return dir.Open(at, "http://"+ln.Addr().String())
	})
	srv := &http.Server{Handler: objects.Handler(), ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			log.Error("serve objects", "err", err)
		}
	}()
	w.keep(objects, objects.Check, log)
	w.close = func() error {
		err := srv.Close()
		<-done
		return errors.Join(err, objects.Close())
	}
	return nil
}

func (w *workspaces) keep(s objects.Store, check func(context.Context) error, log *slog.Logger) {
	w.objects, w.depot = s, newDepot(check, log)
}

func openS3(cfg config.Objects) (*s3.Store, error) {
	keys := s3.Keys{Source: s3.Source(cfg.Credentials), Access: cfg.AccessKey, Endpoint: cfg.CredentialsAt}
	if cfg.SecretKeyFile != "" {
		secret, err := os.ReadFile(cfg.SecretKeyFile)
		if err != nil {
			return nil, thole.Errorf(thole.CodeInvalid, "objects.secret_key_file: %w", err)
		}
		keys.Secret = strings.TrimSpace(string(secret))
	}
	return s3.Open(s3.Config{Endpoint: cfg.Endpoint, Region: cfg.Region, Bucket: cfg.Bucket, Style: s3.Style(cfg.Style), Keys: keys})
}

// Close releases the object store.
func (w *workspaces) Close() error {
	w.client.CloseIdleConnections()
	return w.close()
}

func target(t dispatch.Target) workspace.Target {
	out := workspace.Target{
		Thread: t.Thread.ID, Owner: t.Thread.Owner, Executor: t.Executor, Dir: t.Dir, Lease: t.Turn, Token: t.Token,
	}
	if t.Client != nil {
		out.Side = workspace.Remote(t.Client)
	}
	return out
}

// Restore implements dispatch.Workspaces. A thread that has nothing stored may do
// without the store.
func (w *workspaces) Restore(ctx context.Context, t dispatch.Target) error {
	away := w.depot.away()
	if away != nil {
		if _, _, err := w.rows.Head(ctx, t.Thread.ID); thole.CodeOf(err) != thole.CodeNotFound {
			return errors.Join(err, away)
		}
		within, cancel := context.WithTimeout(ctx, checkEvery)
		defer cancel()
		ctx = within
	}
	return w.try(ctx, func(ctx context.Context) error { return w.manager.Restore(ctx, target(t)) }, away == nil)
}

// Away implements dispatch.Depot.
func (w *workspaces) Away() error { return w.depot.away() }

// try does what needs the object store, and says of a failure whether the store is
// why. It is given up when the store is found away, if it was there before.
func (w *workspaces) try(ctx context.Context, do func(context.Context) error, there bool) error {
	held, release := ctx, func() {}
	if there {
		held, release = w.depot.while(ctx)
	}
	err := do(held)
	given := errors.Is(context.Cause(held), objects.ErrAway)
	release()
	if err == nil || ctx.Err() != nil && context.Cause(ctx) != context.DeadlineExceeded {
		return err
	}
	away := w.depot.away()
	if away == nil || !given {
		away = w.depot.look(context.WithoutCancel(ctx))
	}
	if away != nil {
		return away
	}
	return err
}

// Link implements dispatch.Workspaces.
func (w *workspaces) Link(ctx context.Context, t dispatch.Target) error {
	return w.manager.Link(ctx, target(t))
}

// Validate implements dispatch.Workspaces.
func (w *workspaces) Validate(ctx context.Context, t dispatch.Target) error {
	return w.manager.Validate(ctx, target(t))
}

// Sync implements dispatch.Workspaces.
func (w *workspaces) Sync(ctx context.Context, t dispatch.Target, reason string) (string, error) {
	if away := w.depot.away(); away != nil {
		return "", away
	}
	var id workspace.SnapshotID
	err := w.try(ctx, func(ctx context.Context) (err error) {
		id, err = w.manager.Sync(ctx, target(t), reason)
		return err
	}, true)
	return string(id), err
}

// Verify implements dispatch.Workspaces.
func (w *workspaces) Verify(ctx context.Context, t dispatch.Target, snapshot string) error {
	return w.try(ctx, func(ctx context.Context) error {
		return w.manager.Verify(ctx, target(t), workspace.SnapshotID(snapshot))
	}, true)
}

// collectGrace is how long an object that nothing refers to is kept, and
// collectEvery how often they are looked for.
const (
	collectGrace = 24 * time.Hour
	collectEvery = time.Hour
)

// collect removes objects that nothing refers to any more, until ctx ends.
func (w *workspaces) collect(ctx context.Context, log *slog.Logger) {
	ticker := time.NewTicker(collectEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			if w.depot.away() != nil {
				continue
			}
			_, err := w.manager.Collect(ctx, collectGrace)
			if sweeper, ok := w.objects.(interface{ Sweep(time.Time) error }); ok {
				err = errors.Join(err, sweeper.Sweep(now.Add(-collectGrace)))
			}
			if err != nil && ctx.Err() == nil {
				log.Warn("collect objects", "err", err)
			}
		}
	}
}
