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
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/depot"
	"github.com/tholehq/thole/internal/doctor"
	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/objects/dir"
	"github.com/tholehq/thole/internal/objects/late"
	"github.com/tholehq/thole/internal/objects/s3"
	"github.com/tholehq/thole/internal/source/branch"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/apart"
	"github.com/tholehq/thole/internal/workspace/manager"
)

// openFiles opens the object store the configuration names. A directory is served
// to executors on a loopback port of its own, by signed links alone. self is thole, for
// processes of its own.
func (s *System) openFiles(cfg *config.Config, db *store.DB, self string, branches *branch.Branches, log *slog.Logger) (*depot.Depot, workspace.ManifestSource, error) {
	at, check, err := s.openObjects(cfg, db, log)
	if err != nil {
		return nil, nil, err
	}
	manifests, err := manifests(cfg.Workspace, db)
	if err != nil {
		return nil, nil, err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8, DisableCompression: true, IdleConnTimeout: 30 * time.Second}}
	s.closes(func() error { client.CloseIdleConnections(); return nil })
	manager := manager.New(manager.Config{Rows: db.Workspaces(), Objects: at, Manifests: manifests, Client: client, Apart: apart.Processes{Self: self}, Log: log})
	return depot.New(depot.Config{Manager: manager, Rows: db.Workspaces(), Objects: at, Lay: branches.Lay, UploadNeeded: db.Index().UploadNeeded, Check: check, Log: log}), manifests, nil
}

// ServeFiles is the process that reads what a stopped executor left.
func ServeFiles(ctx context.Context, dir, data string) error { return apart.Serve(ctx, dir, data) }

// manifests is where runtime manifests come from: the file the configuration
// names, or built in.
func manifests(cfg config.Workspace, db *store.DB) (workspace.ManifestSource, error) {
	if cfg.Manifest == "" {
		return workspace.BuiltIn{}, nil
	}
	data, err := os.ReadFile(cfg.Manifest)
	if err != nil {
		return nil, thole.Errorf(thole.CodeInvalid, "workspace.manifest: %w", err).WithHint("correct the path in the configuration, or remove it: then the built-in one is used")
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
// what needs it waits. check tries it.
func (s *System) openObjects(cfg *config.Config, db *store.DB, log *slog.Logger) (_ objects.Store, check func(context.Context) error, _ error) {
	if cfg.Objects.Kind == "s3" {
		bucket, err := openS3(cfg.Objects)
		if err != nil {
			return nil, nil, err
		}
		s.closes(bucket.Close)
		return late.New(func() (late.Backend, error) { return bucket, nil }), bucket.Check, nil
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, thole.Errorf(thole.CodeUnavailable, "serve objects: %w", err)
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
	s.closes(func() error {
		err := srv.Close()
		<-done
		return errors.Join(err, objects.Close())
	})
	return objects, objects.Check, nil
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

// Doctor looks at this machine.
func Doctor(ctx context.Context, cfg *config.Config, kept doctor.Kept, tried daemon.Checks) []doctor.Finding {
	look := doctor.Config{Config: cfg, Agents: Providers(cfg.Providers), Kept: kept, Tried: tried}
	if cfg.Objects.Kind == "s3" {
		look.Objects = func(ctx context.Context) error {
			s, err := openS3(cfg.Objects)
			if err != nil {
				return err
			}
			return errors.Join(s.Check(ctx), s.Close())
		}
	}
	return doctor.Look(ctx, look)
}
