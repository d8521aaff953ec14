package system

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/tholehq/thole/internal/objects/s3"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/workspace"
)

// workspaces is the part of the graph that restores and syncs files. It is the
// dispatcher's dispatch.Workspaces.
type workspaces struct {
	manager *workspace.Manager
	objects objects.Store
	client  *http.Client
	close   func() error
}

var _ dispatch.Workspaces = (*workspaces)(nil)

// newWorkspaces opens the object store the configuration names. A directory is
// served to executors on a loopback port of its own, by signed links alone.
func newWorkspaces(cfg *config.Config, db *store.DB, log *slog.Logger) (*workspaces, error) {
	w := &workspaces{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8, DisableCompression: true, IdleConnTimeout: 30 * time.Second}}}
	if err := w.openObjects(cfg, log); err != nil {
		return nil, err
	}
	manifests, err := manifests(cfg.Workspace, db)
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
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

func (w *workspaces) openObjects(cfg *config.Config, log *slog.Logger) error {
	if cfg.Objects.Kind == "s3" {
		return w.openS3(cfg.Objects)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "serve objects: %w", err)
	}
	objects, err := dir.Open(filepath.Join(cfg.Home, "objects"), "http://"+ln.Addr().String())
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	srv := &http.Server{Handler: objects.Handler(), ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			log.Error("serve objects", "err", err)
		}
	}()
	w.objects = objects
	w.close = func() error {
		err := srv.Close()
		<-done
		return errors.Join(err, objects.Close())
	}
	return nil
}

func (w *workspaces) openS3(cfg config.Objects) error {
	keys := s3.Keys{Source: s3.Source(cfg.Credentials), Access: cfg.AccessKey, Endpoint: cfg.CredentialsAt}
	if cfg.SecretKeyFile != "" {
		secret, err := os.ReadFile(cfg.SecretKeyFile)
		if err != nil {
			return thole.Errorf(thole.CodeInvalid, "objects.secret_key_file: %w", err)
		}
		keys.Secret = strings.TrimSpace(string(secret))
	}
	store, err := s3.Open(s3.Config{Endpoint: cfg.Endpoint, Region: cfg.Region, Bucket: cfg.Bucket, Style: s3.Style(cfg.Style), Keys: keys})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := store.Check(ctx); err != nil {
		return errors.Join(err, store.Close())
	}
	w.objects, w.close = store, store.Close
	return nil
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

// Restore implements dispatch.Workspaces.
func (w *workspaces) Restore(ctx context.Context, t dispatch.Target) error {
	return w.manager.Restore(ctx, target(t))
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
	id, err := w.manager.Sync(ctx, target(t), reason)
	return string(id), err
}

// Verify implements dispatch.Workspaces.
func (w *workspaces) Verify(ctx context.Context, t dispatch.Target, snapshot string) error {
	return w.manager.Verify(ctx, target(t), workspace.SnapshotID(snapshot))
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
